use super::query::depth;
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn responses_are_decoded_or_refused() {
    let good = br#"{"commandResponse":[{"completionCode":0,"reasonCode":0,"parameters":{"curdepth":7}}],"overallCompletionCode":0}"#;
    assert_eq!(depth(200, good, "Q"), Ok(7.0));
    for (status, bad, why) in [
        (
            200,
            r#"{"commandResponse":[{"completionCode":2,"message":["AMQ8147E: IBM MQ object Q not found."]}]}"#,
            "AMQ8147E",
        ),
        (200, r#"{"commandResponse":[{"parameters":{"curdepth":"7"}}]}"#, "a string as depth"),
        (200, r#"{"commandResponse":[]}"#, "a list at commandResponse"),
        (200, "{}", "nothing at commandResponse"),
        (200, "<html>", "not JSON"),
        (401, "{}", "returned 401 for queue Q"),
    ] {
        let error = depth(status, bad.as_bytes(), "Q").unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[tokio::test]
async fn reads_each_queue() {
    let url = server(|head| {
        assert!(head.starts_with("POST /ibmmq/rest/v2/admin/action/qmgr/QM/mqsc "), "{head}");
        assert!(head.contains("ibm-mq-rest-csrf-token: value\r\n"), "{head}");
        assert!(head.contains("authorization: Basic dTpw\r\n"), "{head}");
        let depth = if head.contains(r#""name":"A""#) { 1 } else { 4 };
        ServerAction::Answer(
            200,
            format!(r#"{{"commandResponse":[{{"parameters":{{"curdepth":{depth}}}}}]}}"#),
        )
    })
    .await;
    let host = format!("{url}/ibmmq/rest/v2/admin/action/qmgr/QM/mqsc");
    let mut trigger = trigger("ibmmq", &[("host", &host), ("queueNames", "A, B")]);
    trigger.auth = texts(&[("username", "u"), ("password", "p")]);
    for (operation, value) in [("", "4"), ("sum", "5"), ("avg", "2500m"), ("max", "4")] {
        trigger.metadata.insert("operation".into(), operation.into());
        assert_eq!(
            read(&trigger).await.unwrap().values.first().unwrap().value.canonical(),
            value,
            "{operation}"
        );
    }
}
