use serde_json::{from_str, json, to_string};

use super::*;
use crate::Format;

fn read(json: &str) -> Quantity {
    from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn strings_numbers_and_null_are_read() {
    for (json, text) in [
        ("\"100m\"", "100m"),
        ("\" 1Ki \"", "1Ki"),
        ("null", "0"),
        ("820", "820"),
        ("-1", "-1"),
        ("18446744073709551615", "18446744073709551615"),
        ("1.5", "1500m"),
        ("1e3", "1k"),
        ("-0.0", "0"),
        ("1e21", "1e21"),
        ("1e-7", "100e-9"),
    ] {
        assert_eq!(read(json).to_string(), text, "{json}");
    }
    assert_eq!(read("1e21").format(), Format::DecimalExponent);
}

#[test]
fn other_json_types_are_errors_with_the_text_of_kubernetes() {
    for json in ["\"\"", "\"1 Ki\"", "true", "{}", "[]", "[1]"] {
        let error = from_str::<Quantity>(json).unwrap_err().to_string();
        assert!(error.starts_with("quantities must match the regular expression"), "{json}: {error}");
    }
    let error = from_str::<Quantity>("\"1K\"").unwrap_err().to_string();
    assert!(error.starts_with("unable to parse quantity's suffix"), "{error}");
}

#[test]
fn strings_are_written() {
    assert_eq!(to_string(&read("\"1024Ki\"")).unwrap(), "\"1Mi\"");
    assert_eq!(to_string(&read("\"+1\"")).unwrap(), "\"+1\"");
    assert_eq!(to_string(&Quantity::default()).unwrap(), "\"0\"");
}

#[test]
fn absent_is_not_zero() {
    assert_eq!(from_str::<Option<Quantity>>("null").unwrap(), None);
    assert_eq!(serde_json::from_value::<Option<Quantity>>(json!("5")).unwrap().unwrap().value(), 5);
}
