use serde_json::json;

use super::*;

#[test]
fn plain_scalars_have_the_values_of_kubectl() {
    let table = [
        (json!(null), "~ null Null NULL"),
        (json!(true), "y Y yes Yes YES true True TRUE on On ON"),
        (json!(false), "n N no No NO false False FALSE off Off OFF"),
        (json!(511), "0777 0o777 0O777 0x1FF 0X1ff 0b111111111 511 5_1_1 +511"),
        (json!(-5), "-5 -0x5 -0b101 0b-101 -0o5 -05"),
        (json!(8.0), "08 8.0 8. 0.8e1 +8e0"),
        (json!(0.5), ".5 0.5 .5_0 +.5 5e-1 0_.5"),
        (json!(18_446_744_073_709_551_615_u64), "18446744073709551615 0xffffffffffffffff"),
        (json!(18_446_744_073_709_551_616_f64), "18446744073709551616 +18446744073709551615"),
        (json!(-9_223_372_036_854_775_808_i64), "-9223372036854775808"),
        (json!(-9_223_372_036_854_775_809_f64), "-9223372036854775809"),
    ];
    for (value, words) in table {
        for word in words.split(' ') {
            assert_eq!(json(&format!("a: {word}")), json!({"a": value}), "{word}");
        }
    }
    let texts = "nUll yEs tRUE 1e999 2026-11-30 2026-11-30T10:00:00Z 1:20 10m 1.2.3 0x 0b2 0o8 ._5 + = << 1Gi inf nan v1 5.5.";
    for word in texts.split(' ') {
        assert_eq!(json(&format!("a: {word}")), json!({"a": word}), "{word}");
    }
}

#[test]
fn quotes_and_tags_override_the_type() {
    let text = "[\"1\", 'yes', !!str 1, ! 5, !!int \"5\", !!float 5, !!null '', !!bool \"on\", !!timestamp 2026-01-01]";
    assert_eq!(json(text), json!(["1", "yes", "1", "5", 5, 5.0, null, true, "2026-01-01"]));
}

#[test]
fn documents_are_separated_and_empty_ones_skipped() {
    let text =
        "# only a comment\n---\na: 1\n---\n\n---\n# nothing\n...\n---\n{\"b\":\n\t2}\n--- \n- c\n---\n~\n";
    let documents = parse(&SourceFile::new("x", text)).unwrap();
    let values: Vec<_> = documents.iter().map(|document| document.root.to_json()).collect();
    assert_eq!(values, [json!({"a": 1}), json!({"b": 2}), json!(["c"])]);
    assert!(parse(&SourceFile::new("x", "")).unwrap().is_empty());
}

#[test]
fn json_and_windows_files_are_read() {
    let text = "{\"a\":[1,-2.5e3,true,null,\"\\ud834\\udd1e\\/\\n\"],\r\n\t\"b\":{\"c\":{}}}";
    assert_eq!(json(text), json!({"a": [1, -2500.0, true, null, "𝄞/\n"], "b": {"c": {}}}));
    assert_eq!(json("\u{feff}a: 1\r\nb: |\r\n  x\r\n  y\r\n"), json!({"a": 1, "b": "x\ny\n"}));
    let bytes: Vec<u8> = "\u{feff}ä: 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let source = SourceFile::from_bytes("x", &bytes).unwrap();
    assert_eq!(parse(&source).unwrap()[0].root.to_json(), json!({"ä": 1}));
}

#[test]
fn aliases_and_merge_keys_are_expanded() {
    let text = "\
base: &base {a: 1, b: &two 2}
more: &more {b: 3, c: 4}
one: {<<: *base, b: *two}
two: {b: 5, <<: [*more, *base]}
quoted: {'<<': 1}
? &key name
: *key
";
    let expected = json!({
        "base": {"a": 1, "b": 2}, "more": {"b": 3, "c": 4},
        "one": {"b": 2, "a": 1}, "two": {"b": 5, "c": 4, "a": 1},
        "quoted": {"<<": 1}, "name": "name",
    });
    assert_eq!(json(text), expected);
}

#[test]
fn keys_must_be_strings() {
    assert_eq!(
        json("{1: a, true: b, 2.5: c, '010': d}"),
        json!({"1": "a", "true": "b", "2.5": "c", "010": "d"})
    );
    assert_shown(
        &refused("data:\n  y: 1\n"),
        r#"
        error: shop.yaml:2:3: expected a text as key, found `y`, which means true
          |
        2 |   y: 1
          |   ^ quote it: "y""#,
    );
    for text in ["010: a", "1_0: a", "1.0: a", "null: a", "[a]: b", "{a: b}: c", ": a", "? - a\n: b"] {
        assert!(refused(text).contains("expected a text as key"), "{text}");
    }
}

#[test]
fn syntax_errors_have_position_and_expectation() {
    let table = [
        ("a:\n\tb: 1\n", "2:2: expected spaces, found a tab", "YAML is indented with spaces only"),
        ("\ta: 1\n", "1:1: expected spaces, found a tab", "YAML is indented with spaces only"),
        ("a: b: c\n", "1:5: expected a value, found a second `:`", "put the whole text in quotes"),
        ("a:\n  b: 1\n c: 2\n", "3:2: expected a key at this indentation", "align it with its neighbours"),
        ("- a\nb: 1\n", "2:1: expected another `- ` item or the end of the list", "align it"),
        ("a: - b\n", "1:4: a list cannot begin here", "on a line of its own"),
        ("a: [1, 2\n", "1:4: expected `]`: this `[` is never closed", ""),
        ("{\"a\": 1", "1:1: expected `}`: this `{` is never closed", ""),
        ("a: {b: 1]\n", "1:4: expected `}`: this `{` is closed by `]`", ""),
        ("a: [1 2: 3}\n", "1:4: expected `]`: this `[` is closed by `}`", ""),
        ("a: }\n", "1:4: this bracket closes nothing", ""),
        ("a: \"x\nb: 1\n", "2:1: expected the rest of a quoted text", "is a closing quote missing?"),
        ("a: 'x", "1:4: expected a closing quote", "is a closing quote missing?"),
        ("a: 'it's'\n", "1:8: expected the end of the line after the closing quote", "escape a quote"),
        ("a: \"\\q\"\n", "1:4: unknown escape in double quotes", "for a backslash"),
        ("a: @x\n", "1:4: a text cannot begin with `@`", "put it in quotes"),
        ("a: *x\n", "1:4: no anchor of this name is defined above", "cannot begin with `*`"),
        ("a: &x [*x]\n", "1:8: this alias stands inside the value it repeats", ""),
        ("{}\n{}\n", "2:1: expected the end of the document or `---`", ""),
        ("a: 1\nb: 2\na: 3\n", "3:1: duplicate key `a`", "first given in line 1"),
        ("a: !foo b\n", "1:4: unknown tag `!foo`", "cannot begin with `!`"),
        ("a: !!int b\n", "1:10: the tag `!!int` does not fit this value", ""),
        ("a: .inf\n", "1:4: expected a finite number, found `.inf`", "quote it if a text is meant: \".inf\""),
        ("a:\n  <<: 1\n", "2:3: expected a map or a list of maps to merge", ""),
    ];
    for (text, message, hint) in table {
        let shown = refused(text);
        assert!(shown.starts_with(&format!("error: shop.yaml:{message}")), "{text:?}\n{shown}");
        assert!(shown.contains(hint), "{text:?}\n{shown}");
    }
}

#[test]
fn bytes_that_are_not_text_are_rejected() {
    let problem = SourceFile::from_bytes("shop.yaml", b"a: 1\nb: \xff\n").unwrap_err();
    assert_shown(
        &problem.render(false),
        "
        error: shop.yaml:2:4: expected text, found a byte that is not UTF-8
          |
        2 | b: \u{fffd}
          |    ^ save the file as UTF-8",
    );
    assert!(SourceFile::from_bytes("x", &[0xFF, 0xFE, 0x00, 0xD8]).is_err());
}

#[test]
fn excerpts_are_printable() {
    assert_shown(
        &refused("{\t漢字: é, x: \"\u{1b}[31m\"}"),
        "
        error: shop.yaml:1:14: expected text, found a control character
          |
        1 | {    漢字: é, x: \"\u{fffd}[31m\"}
          |                   ^ write it as an escape in double quotes",
    );
    let long = format!("{{a: xxxxxxxx, b: *no, {}}}", "c, ".repeat(5000));
    let shown = refused(&long);
    assert!(shown.lines().all(|line| line.chars().count() < 130), "{shown}");
    let far = refused(&format!("[{}*no, {}]", "a, ".repeat(5000), "c, ".repeat(5000)));
    assert!(far.lines().nth(2).is_some_and(|line| line.starts_with("1 | …") && line.ends_with('…')), "{far}");
    let caret = far.lines().nth(3).and_then(|line| line.find('^')).unwrap();
    assert_eq!(far.lines().nth(2).and_then(|line| line.chars().nth(caret)), Some('*'), "{far}");
}

#[test]
fn colour_only_adds_escapes() {
    let problem = parse(&SourceFile::new("x", "a: *b")).unwrap_err();
    let coloured = problem.render(true);
    assert!(coloured.starts_with("\u{1b}[1;31merror\u{1b}[0m"));
    let mut plain = coloured;
    for escape in ["\u{1b}[1;31m", "\u{1b}[1;34m", "\u{1b}[1m", "\u{1b}[0m"] {
        plain = plain.replace(escape, "");
    }
    assert_eq!(plain, problem.render(false));
}

#[test]
fn nearest_finds_only_misspelt_words() {
    let fields =
        ["averageUtilization", "averageValue", "type", "value", "minReplicas", "maxReplicas", "name"];
    let table = [
        ("averageUtilisation", Some("averageUtilization")),
        ("AverageValue", Some("averageValue")),
        ("tpye", Some("type")),
        ("minreplica", Some("minReplicas")),
        ("maxReplcas", Some("maxReplicas")),
        ("min", Some("minReplicas")),
        ("nmae", Some("name")),
        ("namespace", None),
        ("labels", None),
        ("x", None),
        ("", None),
    ];
    for (word, expected) in table {
        assert_eq!(nearest(word, fields), expected, "{word}");
    }
    assert_eq!(nearest(&"a".repeat(1000), fields), None);
}
