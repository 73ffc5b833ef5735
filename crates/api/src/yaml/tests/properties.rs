use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;

/// Texts of the characters that mean something to YAML.
fn awkward() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "b",
        " ",
        "  ",
        "\n",
        "\t",
        "\r",
        ":",
        ": ",
        "#",
        " #",
        "-",
        "- ",
        "?",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&",
        "*",
        "!",
        "|",
        ">",
        "'",
        "\"",
        "%",
        "@",
        "`",
        "~",
        "=",
        "<<",
        ".",
        "0",
        "1",
        "9",
        "_",
        "e",
        "+",
        "x",
        "y",
        "n",
        "yes",
        "null",
        "\\",
        "é",
        "漢",
        "😀",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\u{0}",
        "\u{7f}",
        "---",
        "...",
        "2026-11-30",
    ]);
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![awkward(), any::<String>(), "[a-zA-Z0-9./ -]{0,12}"]
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        text().prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|entries| entries.into_iter().collect::<Json>()),
        ]
    })
}

/// Calls every public function with a text; nothing may panic.
fn enter(text: &str) {
    match parse(&SourceFile::new("x", text)) {
        Err(problem) => assert!(problem.render(true).contains("error")),
        Ok(documents) => {
            for document in documents {
                let _ = document
                    .decode::<BTreeMap<String, Vec<u8>>>()
                    .map_err(|problems| problems[0].render(false));
                let json = document.root.to_json();
                assert_eq!(document.decode::<Json>().unwrap(), json);
                assert_eq!(parse(&SourceFile::new("x", to_yaml(&json))).unwrap()[0].root.to_json(), json);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_yaml_parses_to_the_same_value(value in value()) {
        let yaml = to_yaml(&value);
        let documents = parse(&SourceFile::new("x", yaml.as_str())).map_err(|problem| TestCaseError::fail(format!("{problem}\n{yaml}")))?;
        let read = documents.first().map_or(Json::Null, |document| document.root.to_json());
        prop_assert_eq!(read, value, "{}", yaml);
    }

    #[test]
    fn any_text_parses_or_is_an_error(text in prop_oneof![awkward(), any::<String>()]) {
        enter(&text);
    }

    #[test]
    fn any_bytes_parse_or_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        match SourceFile::from_bytes("x", &bytes) {
            Ok(source) => enter(&source.text),
            Err(problem) => prop_assert!(problem.render(false).contains("error")),
        }
    }

    #[test]
    fn any_path_has_a_position(path in text()) {
        let document = document("a: [{b: 1}]");
        prop_assert!(document.locate(&path).line == 1);
    }

    #[test]
    fn any_words_can_be_compared(word in text(), candidates in prop::collection::vec(text(), 0..5)) {
        let _ = nearest(&word, candidates.iter().map(String::as_str));
    }
}

fn joined(numbers: std::ops::Range<usize>, text: impl Fn(usize) -> String) -> String {
    numbers.map(text).collect::<Vec<_>>().concat()
}

#[test]
fn hostile_texts_end_quickly() {
    let start = Instant::now();
    for piece in ["[", "{", "- ", "? ", "{a: ", "[[", "&a [", "a: b: ", "!", "'", "\"", "*a", "%", "{?", "[:"]
    {
        assert!(parse(&SourceFile::new("x", piece.repeat(100_001))).is_err(), "{piece}");
    }
    let ladder = joined(0..1000, |level| format!("{}a:\n", " ".repeat(level)));
    assert!(refused(&ladder).contains("nested too deeply: expected at most 128 levels"));
    let names = |level: usize| vec![format!("*a{level}"); 10].join(", ");
    let laughs = joined(1..30, |level| format!("- &a{level} [{}]\n", names(level - 1)));
    assert!(refused(&format!("- &a0 [lol]\n{laughs}")).contains("anchors and aliases repeat too much"));
    let chain = joined(1..300, |level| format!("- &a{level} [*a{}]\n", level - 1));
    assert!(refused(&format!("- &a0 [x]\n{chain}")).contains("nested too deeply"));
    let texts = format!("- &a {}\n- [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(10_000));
    assert!(refused(&texts).contains("anchors and aliases repeat too much"));
    assert!(refused(&" ".repeat(33 << 20)).contains("the file is too large"));
    let unknown = joined(0..50_000, |field| format!("\"f{field}\": 1, "));
    let problems = document(&format!("{{{unknown}}}")).decode::<Empty>().unwrap_err();
    assert_eq!(problems.len(), 1000);
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
}

#[derive(Debug, serde::Deserialize)]
struct Empty {}
