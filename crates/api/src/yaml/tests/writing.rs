use serde_json::json;

use super::*;

#[test]
fn yaml_equals_that_of_kubectl() {
    let value = json!({
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "shop", "labels": {}, "annotations": {
            "when": "2026-11-30T10:00:00Z", "note": "one\ntwo\n", "end": "a\nb", "more": "a\n\n", "odd": " a\nb\n",
        }},
        "spec": {"maxReplicas": 10, "ratio": 1.0, "big": 1e20, "paused": false, "none": null, "empty": [],
            "metrics": [{"type": "Resource", "names": ["a", "b"]}, [1, [2]], {"script": "x\ny\n"}]},
    });
    let expected = r#"apiVersion: autoscaling/v2
metadata:
  name: shop
  labels: {}
  annotations:
    when: "2026-11-30T10:00:00Z"
    note: |
      one
      two
    end: |-
      a
      b
    more: |+
      a

    odd: " a\nb\n"
spec:
  maxReplicas: 10
  ratio: 1.0
  big: 1e+20
  paused: false
  none: null
  empty: []
  metrics:
  - type: Resource
    names:
    - a
    - b
  - - 1
    - - 2
  - script: |
      x
      y
"#;
    assert_eq!(to_yaml(&value), expected);
    assert_eq!(json(expected), value);
}

#[test]
fn texts_are_quoted_only_when_needed() {
    let bare = "a|a b|10m|1Gi|10.0.0.1|1.2.3|-x|--flag=1|:x|a:b|a#b|it's|http://x:80/y?z=1|x, y|漢字|v1|a-b|yesterday|0xg|{|";
    for text in bare.split('|').filter(|text| !matches!(*text, "{" | "")) {
        assert_eq!(to_yaml(&json!(text)), format!("{text}\n"));
    }
    let doubled = [
        "",
        "yes",
        "y",
        "null",
        "~",
        "1",
        "0777",
        "1_000",
        "1e3",
        ".5",
        ".inf",
        "2026-11-30",
        "12:30",
        "=",
        "<<",
        "a\tb",
        "\u{85}",
    ];
    for text in doubled {
        assert!(to_yaml(&json!(text)).starts_with('"'), "{text}");
    }
    let single = [
        " a", "a ", "a: b", "a #b", "a:", "- a", "-", "? a", "#a", "&a", "*a", "!a", "|", ">", "'a'",
        "\"a\"", "%a", "@a", "`a`", "[a", "{a", "---", "...",
    ];
    for text in single {
        assert!(to_yaml(&json!(text)).starts_with('\''), "{text}");
    }
}

#[test]
fn long_texts_are_folded_as_by_go() {
    let letters = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 1234567890";
    let (single, plain) = (format!("{letters} {letters} "), format!("{letters} {letters}"));
    // The test of goyaml.v2.
    assert_eq!(
        to_folded_yaml(&json!({"a": single})),
        "a: 'abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 1234567890 abcdefghijklmnopqrstuvwxyz\n  \
         ABCDEFGHIJKLMNOPQRSTUVWXYZ 1234567890 '\n"
    );
    assert_eq!(
        to_folded_yaml(&json!({"a": {"b": [plain]}})),
        "a:\n  b:\n  - abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 1234567890 abcdefghijklmnopqrstuvwxyz\n    \
         ABCDEFGHIJKLMNOPQRSTUVWXYZ 1234567890\n"
    );
    let (line, many) = ("x".repeat(77), "y".repeat(90));
    for (text, expected) in [
        // Column 80 is not behind it; a text without spaces is not folded.
        (format!("{line} b c"), format!("a: {line} b\n  c\n")),
        (many.clone(), format!("a: {many}\n")),
        (format!("{many}  b c"), format!("a: {many}  b\n  c\n")),
        (format!("{many}\t  b c"), format!("a: \"{many}\\t\n  \\ b c\"\n")),
        (format!("{many}: b"), format!("a: '{many}:\n  b'\n")),
    ] {
        assert_eq!(to_folded_yaml(&json!({"a": text})), expected);
        assert_eq!(json(&expected), json!({"a": text}), "{expected}");
    }
    assert_eq!(to_yaml(&json!({"a": plain})), format!("a: {plain}\n"));
}

#[test]
fn unusual_values_round_trip() {
    let long = "k".repeat(2000);
    let values = [
        json!({long.as_str(): {long.as_str(): [long.as_str()]}}),
        json!([[[]], {}, [{}], {"": ""}, {"a\nb": "\n"}, "\r\n", "\n\n", "a\n b\n  c", "\u{feff}", "\u{0}", "😀\n😀"]),
        json!("a\nb\n"),
        json!([u64::MAX, i64::MIN, 0.1, -0.0, 5e-324, 1.797_693_134_862_315_7e308]),
    ];
    for value in values {
        assert_eq!(json(&to_yaml(&value)), value);
    }
}
