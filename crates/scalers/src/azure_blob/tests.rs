use super::glob::check;

/// As KEDA 2.20 and 2.21 do.
const V2_20: bool = false;
const V2_21: bool = true;

#[test]
fn brackets_and_braces_are_closed() {
    for good in ["", "*.json", "a/**/[a-z]?.{txt,md}", "\\["] {
        assert_eq!((check(good, V2_20), check(good, V2_21)), (Ok(()), Ok(())), "{good}");
    }
    assert_eq!(check("[", V2_20).unwrap_err().to_string(), "unexpected end of input");
    assert_eq!(
        check("[", V2_21).unwrap_err().to_string(),
        "glob: syntax error at 1: unexpected end of input"
    );
    assert_eq!(check("{a,b", V2_20), Ok(()));
    assert_eq!(check("{a,b", V2_21).unwrap_err().to_string(), "glob: syntax error at 4: unclosed `{`");
}
