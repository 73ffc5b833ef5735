use crate::test_support::{ServerAction, read, server, texts, trigger};

#[tokio::test]
async fn all_shards_are_counted() {
    let url = server(|head| {
        ServerAction::Answer(
            200,
            match head {
                _ if head.contains("DynamoDB_20120810.DescribeTable")
                    && head.contains(r#"{"TableName":"none"}"#) =>
                {
                    r#"{"Table":{}}"#
                }
                _ if head.contains("DynamoDB_20120810.DescribeTable") => {
                    r#"{"Table":{"LatestStreamArn":"arn"}}"#
                }
                _ if head.contains("ExclusiveStartShardId") => r#"{"StreamDescription":{"Shards":[{}]}}"#,
                _ => r#"{"StreamDescription":{"Shards":[{},{}],"LastEvaluatedShardId":"s2"}}"#,
            }
            .to_owned(),
        )
    })
    .await;
    let mut trigger =
        trigger("aws-dynamodb-streams", &[("tableName", "t"), ("awsRegion", "r"), ("awsEndpoint", &*url)]);
    trigger.auth = texts(&[("awsAccessKeyID", "AK"), ("awsSecretAccessKey", "SK")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "3");
    trigger.metadata.insert("tableName".into(), "none".into());
    assert_eq!(read(&trigger).await.unwrap_err().message, "table none has no stream");
}
