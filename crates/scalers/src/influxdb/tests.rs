use super::query::{rows, table};
use crate::test_support::{ServerAction, read, server, texts, trigger};

const CSV: &str = "#datatype,string,long,dateTime:RFC3339,double,string\r\n,result,table,_time,_value,_field\r\n\
                   ,_result,0,2020-01-01T00:00:00Z,2.5,\"a \"\"b\"\", c\"\r\n,_result,0,2020-01-01T00:00:01Z,9,x\r\n\r\n";

#[test]
fn tables_are_decoded_or_refused() {
    assert_eq!(table(200, CSV.as_bytes()), Ok(2.5));
    assert_eq!(table(200, CSV.replace("double", "long").replace("2.5", "7").as_bytes()), Ok(7.0));
    for (status, bad, why) in [
        (200, String::new(), "no results found from query"),
        (200, CSV.replace("double", "string"), "a type which is not a number"),
        (200, CSV.replace("2.5", ""), "not a number"),
        (200, CSV.replace("2.5", "NaN"), "not a number"),
        (200, CSV.replace("_value", "value"), "no _value"),
        (200, "error,reference\r\nboom,897\r\n".to_owned(), "error: boom"),
        (
            401,
            r#"{"code":"unauthorized","message":"unauthorized access"}"#.to_owned(),
            "401: unauthorized access",
        ),
        (502, "<html>".to_owned(), "502: (6 bytes, not shown)"),
    ] {
        let error = table(status, bad.as_bytes()).unwrap_err().message;
        assert!(error.contains(why), "{why}: {error}");
    }
    // No truncated body hangs or panics.
    for end in 0..CSV.len() {
        let _ = table(200, CSV.as_bytes().get(..end).unwrap());
    }
}

#[test]
fn last_rows() {
    assert_eq!(rows(200, br#"[{"v":1},{"v":2.5}]"#, "v"), Ok(2.5));
    assert_eq!(rows(200, b"[]", "v"), Ok(0.0));
    for bad in [r#"[{"v":null}]"#, r#"[{"v":"1"}]"#, r#"[{"x":1}]"#, "{}", "null", "<html>"] {
        assert!(rows(200, bad.as_bytes(), "v").is_err(), "{bad}");
    }
    assert!(rows(400, br#"{"error":"bad query"}"#, "v").unwrap_err().message.ends_with("bad query"));
}

#[tokio::test]
async fn reads_version_two() {
    let url = server(|head| {
        assert!(head.starts_with("POST /api/v2/query?org=my+org "), "{head}");
        assert!(
            head.contains("authorization: Token t\r\n") && head.contains(r#""query":"from(x)""#),
            "{head}"
        );
        ServerAction::Answer(200, CSV.to_owned())
    })
    .await;
    let pairs =
        [("serverURL", &*url), ("organizationName", "my org"), ("query", "from(x)"), ("thresholdValue", "1")];
    let mut trigger = trigger("influxdb", &pairs);
    trigger.auth = texts(&[("authToken", "t")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "2500m");
}

#[tokio::test]
async fn reads_version_three() {
    let url = server(|head| {
        assert!(
            head.starts_with("POST /api/v3/query_sql ") && head.contains("authorization: Bearer t\r\n"),
            "{head}"
        );
        assert!(head.ends_with(r#"{"db":"d","q":"SELECT 1 AS v","format":"json"}"#), "{head}");
        ServerAction::Answer(200, r#"[{"v":4}]"#.to_owned())
    })
    .await;
    let pairs = [
        ("serverURL", &*url),
        ("influxVersion", "3"),
        ("database", "d"),
        ("metricKey", "v"),
        ("queryType", "FlightSQL"),
        ("query", "SELECT 1 AS v"),
        ("thresholdValue", "1"),
    ];
    let mut trigger = trigger("influxdb", &pairs);
    trigger.auth = texts(&[("authToken", "t")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "4");
}
