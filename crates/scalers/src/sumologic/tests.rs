use super::*;
use crate::parameters::unknown;
use crate::test_support::{build, texts, trigger};

fn metrics(changed: &[(&str, &str)]) -> Trigger {
    let metadata = [
        ("host", "h"),
        ("queryType", "metrics"),
        ("quantization", "15s"),
        ("timerange", "15m"),
        ("threshold", "2"),
    ];
    let mut given = trigger("sumologic", &metadata);
    given.metadata.extend(texts(changed));
    given.auth = texts(&[("accessID", "i"), ("accessKey", "k")]);
    given
}

fn error(trigger: &Trigger) -> String {
    build(trigger).err().map(|error| error.message).unwrap_or_default()
}

#[test]
fn rows_of_queries_have_ids() {
    let rows = [("query.A", "a"), ("query.B", "b")];
    let given = metrics(&[rows[0], rows[1], ("resultQueryRowID", "B")]);
    assert_eq!(error(&given), "");
    assert_eq!(unknown(TYPE.parameters, &given), []);
    assert!(error(&metrics(&[rows[0], ("resultQueryRowID", "Z")])).ends_with("'Z' not found in queries"));
    assert!(error(&metrics(&[("query.", "a")])).ends_with("unable to parse rowID from key: query."));
}
