use super::rules::{check_duration, is_absolute_url, is_token};

#[test]
fn durations_have_units() {
    for good in ["2h", "7d", "1w2d3h", "1.5h", "0"] {
        assert_eq!(check_duration("x", good), Ok(()), "{good}");
    }
    let error = |text| check_duration("x", text).unwrap_err().to_string();
    assert_eq!(error(""), "x parsing error time: invalid duration \"\"");
    assert_eq!(error("1000"), "x parsing error time: missing unit in duration \"1000\"");
    assert!(error("padded").contains("invalid duration") && error("5y").contains("unknown unit"));
}

#[test]
fn addresses_are_urls_and_keys_are_tokens() {
    assert!(is_absolute_url("http://p:9090") && !is_absolute_url("padded") && !is_absolute_url("/x"));
    assert!(is_token("eyJh.eyJz.c2ln") && is_token("a.b.") && !is_token("日本") && !is_token(""));
}
