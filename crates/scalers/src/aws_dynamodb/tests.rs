use crate::test_support::{ServerAction, build, read, server, texts, trigger};

#[tokio::test]
async fn all_pages_are_counted() {
    let url = server(|head| {
        assert!(
            head.contains("x-amz-target: DynamoDB_20120810.Query\r\n")
                && head.contains(r#""Select":"COUNT""#)
                && head.contains(r#""FilterExpression":"age > :a""#),
            "{head}"
        );
        ServerAction::Answer(
            200,
            match head.split_once("ExclusiveStartKey") {
                None => r#"{"Count":3,"LastEvaluatedKey":{"id":{"S":"x"}}}"#.to_owned(),
                Some(_) => r#"{"Count":4}"#.to_owned(),
            },
        )
    })
    .await;
    let pairs = [
        ("tableName", "t"),
        ("awsRegion", "eu-west-1"),
        ("awsEndpoint", &*url),
        ("keyConditionExpression", "#n = :v"),
        ("expressionAttributeNames", r##"{"#n":"name"}"##),
        ("expressionAttributeValues", r#"{":v":{"S":"x"}}"#),
        ("filterExpression", "age > :a"),
        ("targetValue", "3"),
    ];
    let mut trigger = trigger("aws-dynamodb", &pairs);
    trigger.auth = texts(&[("awsAccessKeyID", "AK"), ("awsSecretAccessKey", "SK")]);
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "7");
    trigger.metadata.insert("expressionAttributeValues".into(), "[]".into());
    assert!(build(&trigger).err().unwrap().message.contains("invalid expressionAttributeValues"));
}

#[tokio::test]
async fn non_numeric_count_is_an_error() {
    let url = server(|_| ServerAction::Answer(200, r#"{"Count":"3"}"#.to_owned())).await;
    let pairs = [
        ("tableName", "t"),
        ("awsRegion", "r"),
        ("awsEndpoint", &*url),
        ("keyConditionExpression", "#n = :v"),
        ("expressionAttributeNames", "{}"),
        ("expressionAttributeValues", "{}"),
        ("targetValue", "3"),
    ];
    let mut trigger = trigger("aws-dynamodb", &pairs);
    trigger.auth = texts(&[("awsAccessKeyID", "AK"), ("awsSecretAccessKey", "SK")]);
    assert!(read(&trigger).await.unwrap_err().message.contains("a string at Count"));
}
