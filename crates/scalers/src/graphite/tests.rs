use super::query::{url, value};
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn url_has_the_escaped_query() {
    assert_eq!(
        url("http://g/", "a.b(c, 1)", "-1h"),
        "http://g/render?from=-1h&target=a.b%28c%2C+1%29&format=json"
    );
}

#[test]
fn responses_are_decoded_or_refused() {
    let read = |body: &str| value(200, body.as_bytes());
    assert_eq!(read("[]"), Ok(None));
    assert_eq!(read(r#"[{"target":"x","datapoints":[]}]"#), Ok(None));
    assert_eq!(read(r#"[{"datapoints":[[1,1],[2.5,2],[null,3]]}]"#), Ok(Some(2.5)));
    for (bad, why) in [
        (r#"[{"datapoints":[[1,1]]},{"datapoints":[]}]"#, "2 series"),
        (r#"[{"datapoints":[[null,1],[null,2]]}]"#, "every value of the series is null"),
        (r#"[{"target":"x"}]"#, "nothing at datapoints"),
        (r#"[{"datapoints":[["1",1]]}]"#, "a string instead of a value"),
        (r#"[{"datapoints":[[]]}]"#, "nothing instead of a value"),
        (r#"{"error":"x"}"#, "an object instead of a list"),
        ("<html></html>", "not JSON"),
        ("null", "null instead of a list"),
    ] {
        let error = read(bad).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
    assert!(value(500, b"boom").unwrap_err().message.ends_with("status: 500 response: (4 bytes, not shown)"));
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(head.starts_with("GET /render?from=-10Minutes&target=stats.x&format=json "), "{head}");
        assert!(head.contains("authorization: Basic dTpw\r\n"), "{head}");
        ServerAction::Answer(200, r#"[{"datapoints":[[7,1]]}]"#.to_owned())
    })
    .await;
    let mut trigger =
        trigger("graphite", &[("serverAddress", &url), ("query", "stats.x"), ("queryTime", "-10Minutes")]);
    trigger.auth = texts(&[("username", "u"), ("password", "p")]);
    let reading = read(&trigger).await.unwrap();
    assert!(reading.active);
    assert_eq!(reading.values.first().unwrap().value.canonical(), "7");
}
