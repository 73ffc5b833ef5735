use super::query::{DELAYED, IN_FLIGHT, WAITING, length, name};
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn queue_name_is_the_end_of_the_queue_url() {
    assert_eq!(name("https://sqs.eu-west-1.amazonaws.com/1/q").unwrap(), "q");
    assert_eq!(name("/1/q").unwrap(), "q");
    assert_eq!(name("q.fifo").unwrap(), "q.fifo");
    for bad in ["https://sqs/1/q/x", "https://sqs/q", "https://sqs/1/", "https://sqs", "/q"] {
        assert_eq!(name(bad).unwrap_err().message, "cannot get queueName from queueURL", "{bad}");
    }
}

#[test]
fn responses_are_decoded_or_refused() {
    let good =
        br#"{"Attributes":{"ApproximateNumberOfMessages":"3","ApproximateNumberOfMessagesNotVisible":"4"}}"#;
    assert_eq!(length(200, good, &[WAITING]), Ok(3));
    assert_eq!(length(200, good, &[WAITING, IN_FLIGHT]), Ok(7));
    let missing = "metric ApproximateNumberOfMessagesDelayed not found in SQS queue attributes";
    assert_eq!(length(200, good, &[WAITING, DELAYED]).unwrap_err().message, missing);
    for (status, bad, why) in [
        (200, r#"{"Attributes":{"ApproximateNumberOfMessages":"x"}}"#, "a string as"),
        (200, r#"{"Attributes":{"ApproximateNumberOfMessages":null}}"#, "null as"),
        (200, r#"{"Attributes":null}"#, "not found"),
        (200, "<html>", "not JSON"),
        (
            400,
            r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no queue"}"#,
            "QueueDoesNotExist: no queue",
        ),
        (403, r#"{"Message":"denied"}"#, "403: denied"),
        (503, "busy", "503: (4 bytes, not shown)"),
    ] {
        let error = length(status, bad.as_bytes(), &[WAITING]).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[tokio::test]
async fn requests_are_signed() {
    let url = server(|head| {
        assert!(head.starts_with("POST / "), "{head}");
        let text = head.to_lowercase();
        assert!(text.contains("x-amz-target: amazonsqs.getqueueattributes\r\n"), "{head}");
        assert!(text.contains("content-type: application/x-amz-json-1.0\r\n"), "{head}");
        assert!(text.contains("authorization: aws4-hmac-sha256 credential=ak/"), "{head}");
        assert!(text.contains("/eu-west-1/sqs/aws4_request, signedheaders=content-type;host;x-amz-date;x-amz-target,"), "{head}");
        let body = r#"{"QueueUrl":"https://sqs/1/q","AttributeNames":["ApproximateNumberOfMessages","ApproximateNumberOfMessagesNotVisible"]}"#;
        assert!(head.ends_with(body), "{head}");
        ServerAction::Answer(
            200,
            r#"{"Attributes":{"ApproximateNumberOfMessages":"3","ApproximateNumberOfMessagesNotVisible":"4"}}"#.to_owned(),
        )
    })
    .await;
    let mut trigger = trigger(
        "aws-sqs-queue",
        &[("queueURL", "https://sqs/1/q"), ("awsRegion", "eu-west-1"), ("awsEndpoint", &url)],
    );
    trigger.auth = texts(&[("awsAccessKeyID", "AK"), ("awsSecretAccessKey", "SK")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "7");
    trigger.auth = texts(&[("awsRoleArn", "arn:aws:iam::1:role/r")]);
    let error = read(&trigger).await.unwrap_err().message;
    assert!(error.contains("sent to hosts of AWS only"), "{error}");
}
