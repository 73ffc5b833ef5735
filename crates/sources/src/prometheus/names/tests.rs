#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn accepts_what_go_accepts() {
    for (pattern, text, matches) in [
        ("^http_", "http_requests", true),
        ("(?i)HTTP", "http_requests", true),
        ("a{", "a{", true),
        ("a{,5}", "a{,5}", true),
        ("a{01}", "a{01}", true),
        (r"\Qa.b\E$", "a.b", true),
        (r"\Qa.b\E", "axb", false),
        ("[a&&b]", "&", true),
        ("[]a]", "]", true),
        ("[^]a]", "]", false),
        ("[a[b]", "[", true),
        ("[[:alpha:]_]+$", "ab_", true),
        (r"^[\d\-_]+$", "1-_", true),
        (r"^\w+$", "é", false),
        (r"^\s$", "\u{b}", false),
        (r"\x41\x{42}\103", "ABC", true),
        (r"^\pL\P{Greek}$", "ab", true),
        ("(?P<a>x)(?P<a>y)", "xy", true),
        ("(?s:a.b)|(?U)c*", "a\nb", true),
        ("x*?y+?z??", "y", true),
        ("a||b", "", true),
        ("^*", "", true),
        ("é", "é", true),
        ("a{2}$", "aa", true),
    ] {
        let compiled = GoRegex::new(pattern);
        assert_eq!(compiled.map(|compiled| compiled.is_match(text)), Ok(matches), "{pattern}");
    }
}

#[test]
fn rejects_what_go_rejects() {
    for pattern in [
        "(",
        ")",
        "a)",
        "[",
        "[a",
        "[]",
        "*",
        "a**",
        "a*+",
        "a{2}{3}",
        "a*??",
        "a{2,1}",
        "a{1001}",
        "(?!a)",
        "(?=a)",
        "(?<!a)",
        r"(a)\1",
        r"\8",
        r"\p{Foo}",
        r"\p",
        r"\x",
        r"\x{110000}",
        r"\q",
        r"\",
        "[b-a]",
        r"[a-\d]",
        "[[:foo:]]",
        "(?P<>a)",
        "(?P<a-b>x)",
        "(?P<a",
        "(?i",
        "(?-)",
        "(?x)a",
        "(*)",
        "|*",
        "(?i)*",
        r"\C",
        r"\Z",
    ] {
        assert!(GoRegex::new(pattern).is_err(), "{pattern}");
    }
    assert!(GoRegex::new(&"(".repeat(5000)).is_err());
}

fn named(matches: &str, layout: &str, series: &str) -> Option<String> {
    let mapping = NameMapping { matches: matches.to_owned(), as_: layout.to_owned() };
    MetricNaming::new(&mapping).unwrap().name(series)
}

#[test]
fn expands_as_go_does() {
    let series = "http_requests_total";
    for (matches, layout, expected) in [
        ("", "", "http_requests_total"),
        ("^(.*)_total$", "", "http_requests"),
        ("_total", "", "_total"),
        ("^(.*)_total$", "${1}_per_second", "http_requests_per_second"),
        ("^(.*)_total$", "$1_per_second", ""),
        ("^(.*)_total$", "$1-x", "http_requests-x"),
        ("^(.*)_total$", "$$1", "$1"),
        ("^(.*)_total$", "x$", "x$"),
        ("^(.*)_total$", "${1x", "${1x"),
        ("^(.*)_total$", "${2}x$01", "x"),
        ("^(?P<x>.*)_(?P<y>.*)$", "${y}_$x", "total_http_requests"),
        ("(?P<a>nope)?(?P<a>http)", "$a", "http"),
        ("", "<$0>", "<http_requests_total>"),
    ] {
        assert_eq!(named(matches, layout, series).as_deref(), Some(expected), "{matches} {layout}");
    }
    assert_eq!(named("nope", "x", series), None);
}

#[test]
fn several_groups_need_a_layout() {
    let mapping = NameMapping { matches: "(a)(b)".to_owned(), as_: String::new() };
    assert_eq!(MetricNaming::new(&mapping).unwrap_err(), NamingError::NoLayout);
    let mapping = NameMapping { matches: "(a)".to_owned(), as_: "$1_x${1}$$2$y".to_owned() };
    assert_eq!(MetricNaming::new(&mapping).unwrap().empty_references(), ["1_x", "y"]);
}

#[test]
fn filter_errors_are_specific() {
    let filter = |is: &str, is_not: &str| {
        SeriesNameFilter::new(&SeriesFilter { is: is.to_owned(), is_not: is_not.to_owned() })
    };
    assert!(filter("^a", "").unwrap().accepts("ab"));
    assert!(!filter("", "^a").unwrap().accepts("ab"));
    assert!(filter("", "").unwrap_err().to_string().contains("must have either"));
    assert!(filter("a", "b").unwrap_err().to_string().contains(r#"both an `is` ("a") and `isNot` ("b")"#));
    assert!(filter("(", "").unwrap_err().to_string().starts_with("unable to compile series filter \"(\": "));
}
