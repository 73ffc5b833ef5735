use std::time::Duration;

use api::provider::Compat;

use super::query::{connection, counted, peeked};
use crate::backends::Backends;
use crate::test_support::{ServerAction, read, read_answered, server, texts, trigger};
use crate::web::HttpSettings;

#[test]
fn connection_strings_are_parsed_or_refused() {
    let found = connection(
        "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5;EndpointSuffix=core.windows.net",
    );
    let request = found.unwrap().count("q x", "Fri, 26 Jun 2015 23:39:12 GMT").unwrap();
    assert_eq!(request.url, "https://acc.queue.core.windows.net/q%20x?comp=metadata");
    assert!(request.authorization.unwrap().starts_with("SharedKey acc:"));
    let given = connection("QueueEndpoint=https://q/;SharedAccessSignature=sv=1&sig=x").unwrap();
    let request = given.peek("q", "").unwrap();
    assert_eq!(request.url, "https://q/q/messages?numofmessages=32&peekonly=true&sv=1&sig=x");
    assert!(request.authorization.is_none());
    let malformed = "connection string is either blank or malformed.";
    let no_endpoint = "connection string needs either AccountName or QueueEndpoint";
    for (bad, expected) in [
        ("", malformed),
        ("garbage", malformed),
        ("AccountName=a;AccountKey=c2VjcmV0;secret", malformed),
        ("AccountName=a", "connection string needs either AccountKey or SharedAccessSignature"),
        ("AccountKey=c2VjcmV0", no_endpoint),
        ("SharedAccessSignature=secret", no_endpoint),
    ] {
        let error = connection(bad).unwrap_err().message;
        assert!(error.starts_with(expected) && !error.contains("secret"), "{error}");
    }
    assert!(connection("AccountName=a;AccountKey=!!").unwrap().count("q", "").is_err());
}

/// Computed with OpenSSL over the string that the documentation of Azure Storage describes.
#[test]
fn requests_are_signed_as_documented() {
    let found = connection("AccountName=acc;AccountKey=a2V5").unwrap();
    let request = found.count("q", "Fri, 26 Jun 2015 23:39:12 GMT").unwrap();
    assert_eq!(request.authorization.unwrap(), "SharedKey acc:2hFL2omp0w1Izv86/ailVRjH5sTQ+7JsBmAFM1d/+2M=");
}

#[test]
fn responses_are_decoded_or_refused() {
    assert_eq!(counted(200, Some("7"), b""), Ok(7.0));
    assert!(counted(200, None, b"").is_err());
    assert!(counted(200, Some("-1"), b"").is_err());
    let error = counted(404, None, b"<?xml version=\"1.0\"?><Error><Code>QueueNotFound</Code></Error>")
        .unwrap_err()
        .message;
    assert_eq!(error, "the storage queue returned 404: QueueNotFound");
    let list = |count: usize| {
        format!("<QueueMessagesList>{}</QueueMessagesList>", "<QueueMessage></QueueMessage>".repeat(count))
    };
    assert_eq!(peeked(200, list(3).as_bytes()), Ok(3));
    assert_eq!(peeked(200, b"<QueueMessagesList />"), Ok(0));
    assert!(peeked(200, b"<html>").is_err());
    assert!(peeked(200, &[0xff]).is_err());
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(head.contains("authorization: SharedKey acc:") && head.contains("x-ms-version: "), "{head}");
        if head.starts_with("GET /acc/q/messages?numofmessages=32&peekonly=true ") {
            return ServerAction::Answer(
                200,
                "<QueueMessagesList><QueueMessage></QueueMessage></QueueMessagesList>".to_owned(),
            );
        }
        assert!(head.starts_with("GET /acc/q?comp=metadata "), "{head}");
        ServerAction::Raw(
            b"HTTP/1.1 200 OK\r\nx-ms-approximate-messages-count: 9\r\ncontent-length: 0\r\n\r\n".to_vec(),
        )
    })
    .await;
    let text = format!("AccountName=acc;AccountKey=a2V5;QueueEndpoint={url}/acc");
    let mut trigger = trigger("azure-queue", &[("queueName", "q")]);
    trigger.auth = texts(&[("connection", &text)]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "9");
    trigger.metadata.insert("queueLengthStrategy".into(), "visibleonly".into());
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "1");
}

/// Concurrent readers send the same signature, but each needs the response header, which is not shared.
#[tokio::test]
async fn concurrent_reads_of_one_queue_all_succeed() {
    let url = server(|_| {
        ServerAction::Raw(
            b"HTTP/1.1 200 OK\r\nx-ms-approximate-messages-count: 9\r\ncontent-length: 0\r\n\r\n".to_vec(),
        )
    })
    .await;
    let text = format!("QueueEndpoint={url}/acc;SharedAccessSignature=sig=x");
    let mut trigger = trigger("azure-queue", &[("queueName", "q")]);
    trigger.auth = texts(&[("connection", &text)]);
    let settings = HttpSettings { fresh: Duration::from_mins(1), ..HttpSettings::allowing_loopback() };
    let backends = Backends::without_cluster(settings, Compat::Better);
    for _ in 0..20 {
        let reading = crate::table::build(&trigger, &backends).unwrap().read("m").await;
        assert_eq!(reading.unwrap().values.first().unwrap().value.canonical(), "9");
    }
}

#[tokio::test]
async fn pod_identity_names_what_is_missing() {
    let mut trigger = trigger("azure-queue", &[("queueName", "q"), ("accountName", "acc")]);
    trigger.identity.provider = "azure-workload".into();
    let nowhere = |call: &crate::web::HttpCall| -> (u16, String) { panic!("{call:?} must not be sent") };
    let error = read_answered(&trigger, nowhere).await.unwrap_err().message;
    assert!(error.contains("the operator's pod has no federated token"), "{error}");
    // A token of the operator is sent to Azure's hosts only.
    trigger.metadata.extend(texts(&[("cloud", "Private"), ("endpointSuffix", "evil.example")]));
    let error = read_answered(&trigger, nowhere).await.unwrap_err().message;
    assert!(error.contains("in Azure's own clouds only"), "{error}");
}
