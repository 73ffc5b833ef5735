//! Valid and invalid values of every type of parameter.
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{ParseError, Trigger};

crate::parameters! {
    /// All kinds.
    pub struct All {
        /// A text
        /// of two lines.
        text: String = "text" | "words" in [Metadata, Environment, Authentication], required;
        /// A whole number.
        whole: i64 = "whole" in [Metadata], default "5";
        /// Another.
        small: Option<isize> = "small" in [Metadata];
        /// A number.
        number: f64 = "number" in [Metadata], default "0";
        /// A truth.
        truth: bool = "truth" in [Metadata], default "true";
        /// A time.
        time: Option<Duration> = "time" in [Metadata];
        /// A list.
        list: Vec<String> = "list" in [Metadata], separator ';', one_of ["a", "b", "c"], only_one_of ["a", "b"];
        /// Numbers.
        ranges: Ranges = "ranges" in [Metadata];
        /// Pairs.
        pairs: Pairs = "pairs" in [Metadata];
        /// A query.
        query: QueryValues = "query" in [Metadata];
        /// Something hidden.
        secret: Secret = "secret" in [Authentication];
        /// Gone.
        gone: Removed = "gone" in [Metadata], removed "It is gone.";
        /// Going.
        going: Option<String> = "going" in [Metadata], deprecated "It will go.";
        /// Some more.
        more: More;
    }
    check All::check
}

crate::parameters! {
    /// Stands in another one.
    pub struct More {
        /// A mode.
        mode: Option<String> = "mode" in [Authentication, Metadata], one_of ["x", "y"];
    }
}

impl All {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.whole == 0 { Err(format!("{} has nothing to do", trigger.type_).into()) } else { Ok(()) }
    }
}

fn trigger(metadata: &[(&str, &str)]) -> Trigger {
    let pairs =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Trigger { type_: "all".into(), metadata: pairs(metadata), ..Trigger::default() }
}

fn error(metadata: &[(&str, &str)]) -> String {
    All::read(&trigger(metadata)).unwrap_err().message
}

#[test]
fn all_parameters_are_read() {
    let mut given = trigger(&[
        ("words", "  several words "),
        ("small", "-7"),
        ("number", "1e3"),
        ("truth", "F"),
        ("time", "1500"),
        ("list", "a; c"),
        ("ranges", "1-4, 7,5-1"),
        ("pairs", "a=b, c = d"),
        ("query", "a=b+c&d=%26"),
    ]);
    given.auth.insert("secret".into(), "hush".into());
    given.auth.insert("mode".into(), "y".into());
    let all = All::read(&given).unwrap();
    assert_eq!(all.text, "several words");
    assert_eq!((all.whole, all.small, all.number, all.truth), (5, Some(-7), 1000.0, false));
    assert_eq!(all.time, Some(Duration::from_millis(1500)));
    assert_eq!(all.list, ["a", "c"]);
    assert_eq!(all.ranges.0, [1, 2, 3, 4, 7]);
    assert_eq!(all.pairs.0["c"], "d");
    assert_eq!(all.query.0, [("a".to_owned(), "b c".to_owned()), ("d".to_owned(), "&".to_owned())]);
    assert_eq!(all.more.mode.as_deref(), Some("y"));
    assert!(!format!("{all:?}").contains("hush"), "{all:?}");
}

#[test]
fn sources_are_ordered_and_empty_counts_as_missing() {
    let mut given = trigger(&[("text", "  "), ("wordsFromEnv", "WORDS"), ("textFromEnv", "NOT_SET")]);
    given.auth.insert("text".into(), "from authentication".into());
    assert_eq!(All::read(&given).unwrap().text, "from authentication");
    given.environment.insert("WORDS".into(), "from environment".into());
    assert_eq!(All::read(&given).unwrap().text, "from environment");
    given.metadata.insert("words".into(), "from metadata".into());
    assert_eq!(All::read(&given).unwrap().text, "from metadata");
    // The parameter has no source Environment.
    given.metadata.insert("numberFromEnv".into(), "WORDS".into());
    assert!(All::read(&given).is_ok());
}

#[test]
fn all_errors_are_reported_in_order() {
    assert_eq!(
        error(&[]),
        r#"missing required parameter "text,words" in [triggerMetadata resolvedEnv authParams]"#
    );
    let text = error(&[("whole", "5.0"), ("truth", "yes"), ("gone", "x"), ("mode", "z"), ("list", "a;b")]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[1].starts_with(
        r#"unable to set param "whole" value "5.0": unable to unmarshal to field type int64: "#
    ));
    assert!(
        lines[2]
            .starts_with(r#"unable to set param "truth" value "yes": unable to parse boolean value "yes": "#)
    );
    assert_eq!(lines[3], r#"parameter "list" value "a;b" must contain only one of [a b]"#);
    assert_eq!(lines[4], "scaler all info: It is gone.");
    assert_eq!(lines[5], r#"parameter "mode" value "z" must be one of [x y]"#);
    // Invalid values are empty when the check runs.
    assert_eq!(lines[6], "all has nothing to do");
}

#[test]
fn numbers_use_json_notation() {
    for bad in [
        "05", "+5", ".5", "5.", "1_000", "0x10", "NaN", "Inf", "null", "true", "\"7\"", "1,5", "1e400", "5 5",
    ] {
        let text = error(&[("text", "x"), ("number", bad)]);
        let begin =
            format!("unable to set param \"number\" value {}: unable to unmarshal", api::gotext::quote(bad));
        assert!(text.starts_with(&begin), "{text}");
    }
    for bad in ["1e3", "1.5", "99999999999999999999", "-9223372036854775809"] {
        assert!(error(&[("text", "x"), ("whole", bad)]).contains("field type int64: "), "{bad}");
        assert!(error(&[("text", "x"), ("small", bad)]).contains("field type int: "), "{bad}");
    }
    let read = All::read(&trigger(&[
        ("text", "x"),
        ("number", "99999999999999999999"),
        ("whole", "-9223372036854775808"),
    ]));
    let read = read.unwrap();
    assert_eq!((read.number, read.whole), (1e20, i64::MIN));
    let zero = All::read(&trigger(&[("text", "x"), ("small", "-0")])).unwrap();
    assert_eq!(zero.small, Some(0));
    for (text, number) in [("null", None), ("2.5", Some(2.5))] {
        assert_eq!(NullableNumber::parse(text, ','), Ok(NullableNumber(number)));
    }
    let wrong = NullableNumber::parse("x", ',').unwrap_err().to_string();
    assert!(wrong.starts_with("unable to unmarshal to field type *float64: "), "{wrong}");
}

#[test]
fn checks_see_no_value_that_is_not_allowed() {
    let mut given = Trigger::default();
    given.auth.insert("authModes".into(), "basic,x".into());
    assert_eq!(
        groups::HttpAuth::read(&given).unwrap_err().message,
        r#"parameter "authModes,authMode" value "basic,x" must be one of [apiKey basic tls bearer custom oauth]"#
    );
}

#[test]
fn durations_are_go_durations_or_milliseconds() {
    let time =
        |text: &str| All::read(&trigger(&[("text", "x"), ("time", text)])).map(|all| all.time.unwrap());
    assert_eq!(time("10"), Ok(Duration::from_millis(10)));
    assert_eq!(time("1m30s"), Ok(Duration::from_secs(90)));
    assert_eq!(time("0"), Ok(Duration::ZERO));
    let wrong = |text: &str| time(text).unwrap_err().message;
    assert_eq!(
        wrong("3 s"),
        "unable to set param \"time\" value \"3 s\": unable to parse duration value \"3 s\": must be either a duration \
         string (e.g. '30s', '5m') or a number of milliseconds"
    );
    assert!(wrong("-5").ends_with(": duration cannot be negative: -5 milliseconds"));
    assert!(wrong("-5s").contains("duration cannot be negative"));
    assert!(wrong("9999999999999h").contains("unable to parse duration"));
}

#[test]
fn pairs_have_one_sign_each() {
    for (bad, which) in [("a=b=c", "a=b=c"), ("a", "a"), ("x,y=z", "x"), ("a=b,,c=d", ""), ("a=b, c ", "c")] {
        let text = error(&[("text", "x"), ("pairs", bad)]);
        let end = format!(": expected format key=value, got {}", api::gotext::quote(which));
        assert!(text.ends_with(&end), "{text}");
    }
}

#[test]
fn ranges_are_limited() {
    for (bad, why) in [
        ("1-2-3", "slice element 0: expected format start-end, got \"1-2-3\""),
        ("a", "slice element 0: unable to unmarshal to field type int: "),
        ("1-", "slice element 0: unable to parse end value \"\": "),
        ("3,-2", "slice element 1: unable to parse start value \"\": "),
        ("0-2147483647", "slice element 0: 0-2147483647 is too long a range"),
        ("1,,2", "slice element 1: unable to unmarshal to field type int: "),
        ("05", "slice element 0: unable to unmarshal to field type int: "),
    ] {
        let text = error(&[("text", "x"), ("ranges", bad)]);
        let begin = format!("unable to set param \"ranges\" value {}: {why}", api::gotext::quote(bad));
        assert!(text.starts_with(&begin), "{text}");
    }
}

#[test]
fn reference_contains_all_parameters() {
    let names: Vec<_> = All::PARAMETERS.iter().map(Parameter::name).collect();
    assert_eq!(
        names.join(" "),
        "text,words whole small number truth time list ranges pairs query secret gone going mode"
    );
    let text = All::PARAMETERS.first().unwrap();
    assert_eq!((text.kind, text.required, text.default), ("text", true, None));
    assert!(text.about.starts_with("A text\n"), "{:?}", text.about);
    assert_eq!(All::PARAMETERS[1].default, Some("5"));
    assert_eq!(All::PARAMETERS[13].sources, [ParameterSource::Authentication, ParameterSource::Metadata]);
}

#[test]
fn unknown_keys_suggest_the_nearest() {
    let given =
        trigger(&[("text", "x"), ("numbr", "1"), ("textFromEnv", "X"), ("secret", "s"), ("zzzzzz", "1")]);
    let found = unknown(All::PARAMETERS, &given);
    let reported: Vec<_> = found.map(|unknown| unknown.to_string()).collect();
    assert_eq!(
        reported,
        [
            r#"unknown parameter "numbr"; did you mean "number"?"#,
            // The parameter has only the source Authentication.
            r#"unknown parameter "secret""#,
            r#"unknown parameter "zzzzzz""#,
        ]
    );
}

#[test]
fn deprecated_parameters_cause_notices() {
    let reported = notices(All::PARAMETERS, &trigger(&[("going", "x")]));
    assert_eq!(
        reported,
        [ParameterNotice { warning: false, text: "scaler all info: It will go.".to_owned() }]
    );
    assert_eq!(notices(All::PARAMETERS, &trigger(&[("going", " ")])), []);
}

proptest! {
    #[test]
    fn arbitrary_input_does_not_panic(key in "text|whole|small|number|truth|time|list|ranges|pairs|query|gone|mode", value in ".{0,40}") {
        let _ = All::read(&trigger(&[("text", "x"), (&key, &value)]));
    }
}
