use crate::test_support::{ServerAction, read, server, texts, trigger};

#[tokio::test]
async fn reads_value() {
    for (status, body, expected) in [
        (200, r#"{"StreamDescriptionSummary":{"OpenShardCount":3}}"#, Ok("3")),
        (200, r#"{"StreamDescriptionSummary":{"OpenShardCount":null}}"#, Err("null at")),
        (200, "{}", Err("nothing at StreamDescriptionSummary.OpenShardCount")),
        (
            400,
            r#"{"__type":"ResourceNotFoundException","message":"no stream"}"#,
            Err("ResourceNotFoundException: no stream"),
        ),
    ] {
        let url = server(move |head| {
            assert!(head.contains("x-amz-target: Kinesis_20131202.DescribeStreamSummary\r\n"), "{head}");
            assert!(
                head.contains("/eu-west-1/kinesis/aws4_request") && head.ends_with(r#"{"StreamName":"s"}"#),
                "{head}"
            );
            ServerAction::Answer(status, body.to_owned())
        })
        .await;
        let pairs = [("streamName", "s"), ("awsRegion", "eu-west-1"), ("awsEndpoint", &*url)];
        let mut trigger = trigger("aws-kinesis-stream", &pairs);
        trigger.auth = texts(&[("awsAccessKeyID", "AK"), ("awsSecretAccessKey", "SK")]);
        match (read(&trigger).await, expected) {
            (Ok(reading), Ok(value)) => assert_eq!(reading.values.first().unwrap().value.canonical(), value),
            (Err(error), Err(why)) => assert!(error.message.contains(why), "{error}"),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }
}
