use super::query::{ActivemqTemplate, template};
use crate::jolokia::value;
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn rest_template_is_parsed_or_refused() {
    let url = "http://u:p@mq:8161/api/jolokia/read/org.apache.activemq:type=Broker,brokerName=b,destinationType=Queue,destinationName=d/QueueSize";
    let expected =
        ActivemqTemplate { endpoint: "mq:8161".into(), broker: "b".into(), destination: "d".into() };
    assert_eq!(template(url).unwrap(), expected);
    for bad in [
        "",
        "x",
        "http://h",
        "http://h/",
        "http://h/a:b/c",
        "http://h/a:brokerName=b/c",
        "http://h/a:destinationName=b",
    ] {
        assert!(template(bad).is_err(), "{bad}");
    }
}

#[test]
fn responses_are_decoded_or_refused() {
    assert_eq!(value(200, br#"{"request":{},"value":12,"timestamp":1,"status":200}"#), Ok(12.0));
    for (status, bad, why) in [
        (200, r#"{"error":"no such MBean","status":404}"#, "status 404: no such MBean"),
        (200, r#"{"value":12}"#, "nothing at status"),
        (200, r#"{"value":"12","status":200}"#, "a string at value"),
        (200, r#"{"value":null,"status":200}"#, "null at value"),
        (200, r#"{"status":200}"#, "nothing at value"),
        (200, "<html>Login</html>", "not JSON"),
        (200, "[]", "nothing at status"),
        (401, "who are you", "returned 401: (11 bytes, not shown)"),
    ] {
        let error = value(status, bad.as_bytes()).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        let path = "GET /api/jolokia/read/org.apache.activemq:type=Broker,brokerName=b,destinationType=Queue,destinationName=q.1/QueueSize ";
        assert!(head.starts_with(path), "{head}");
        assert!(head.contains("authorization: Basic dTpw\r\n") && head.contains("origin: http://127.0.0.1:"), "{head}");
        ServerAction::Answer(200, r#"{"value":3,"status":200}"#.to_owned())
    })
    .await;
    let endpoint = url.strip_prefix("http://").unwrap();
    let mut trigger = trigger(
        "activemq",
        &[("managementEndpoint", endpoint), ("brokerName", "b"), ("destinationName", "q.1")],
    );
    trigger.auth = texts(&[("username", "u"), ("password", "p")]);
    let reading = read(&trigger).await.unwrap();
    assert!(reading.active);
    assert_eq!(reading.values.first().unwrap().value.canonical(), "3");
}
