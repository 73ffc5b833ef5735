use super::query::{ArtemisTemplate, template, url};
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

#[test]
fn rest_template_is_parsed_or_refused() {
    let expected = ArtemisTemplate {
        endpoint: "a:8161".into(),
        broker: "\"b\"".into(),
        address: "\"x\"".into(),
        queue: "\"q\"".into(),
    };
    assert_eq!(template(&url("a:8161", "b", "x", "q")).unwrap(), expected);
    for bad in [
        "",
        "x",
        "http://h",
        "http://h/a:broker=\"b\"/c",
        "http://h/a:broker=\"\",address=\"a\",queue=\"q\"/c",
    ] {
        assert!(template(bad).is_err(), "{bad}");
    }
}

#[test]
fn invalid_parameters_are_refused() {
    let mut given = trigger("artemis-queue", &[("restApiTemplate", "with space")]);
    given.auth = texts(&[("username", "u"), ("password", "p")]);
    let error = build(&given).err().unwrap().message;
    let prefix = "error parsing artemis metadata: error parsing prometheus metadata: ";
    let why = "can't parse restApiTemplate : unable to parse the artemis restAPITemplate: ";
    assert!(error.starts_with(&format!("{prefix}{why}")), "{error}");
    given.metadata.insert("restApiTemplate".into(), url("a:8161", "b", "x", "q"));
    given.auth.insert("cert".into(), "c".into());
    assert_eq!(build(&given).err().unwrap().message, format!("{prefix}both cert and key must be provided"));
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(
            head.starts_with("GET /console/jolokia/read/org.apache.activemq.artemis:broker=%22b%22,"),
            "{head}"
        );
        assert!(head.contains("queue=%22q%22/MessageCount HTTP"), "{head}");
        assert!(head.contains("origin: https://console\r\n"), "{head}");
        ServerAction::Answer(200, r#"{"value":10,"status":200}"#.to_owned())
    })
    .await;
    let endpoint = url.strip_prefix("http://").unwrap();
    let mut trigger = trigger(
        "artemis-queue",
        &[
            ("managementEndpoint", endpoint),
            ("brokerName", "b"),
            ("brokerAddress", "x"),
            ("queueName", "q"),
            ("corsHeader", "https://console"),
        ],
    );
    trigger.auth = texts(&[("username", "u"), ("password", "p")]);
    // The default activation is ten here, unlike in other scalers.
    assert!(!read(&trigger).await.unwrap().active);
    trigger.metadata.insert("activationQueueLength".into(), "9".into());
    assert!(read(&trigger).await.unwrap().active);
}
