use crate::Trigger;
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

/// A trigger whose values of the condition are these.
fn query(key_id: &str, values: &str) -> Trigger {
    let pairs = [
        ("tableName", "t"),
        ("awsRegion", "eu-west-1"),
        ("keyConditionExpression", "#n = :v"),
        ("expressionAttributeNames", r##"{"#n":"name"}"##),
        ("expressionAttributeValues", values),
        ("targetValue", "3"),
    ];
    let mut trigger = trigger("aws-dynamodb", &pairs);
    trigger.auth = texts(&[("awsAccessKeyID", key_id), ("awsSecretAccessKey", "SK")]);
    trigger
}

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
    let mut trigger = query("AK", r#"{":v":{"S":"x"}}"#);
    trigger.metadata.insert("awsEndpoint".into(), url);
    trigger.metadata.insert("filterExpression".into(), "age > :a".into());
    assert_eq!(read(&trigger).await.unwrap().values.first().unwrap().value.canonical(), "7");
    trigger.metadata.insert("expressionAttributeValues".into(), "[]".into());
    assert!(
        build(&trigger).err().unwrap().message.contains("error parsing expressionAttributeValues: json: ")
    );
}

#[tokio::test]
async fn non_numeric_count_is_an_error() {
    let url = server(|_| ServerAction::Answer(200, r#"{"Count":"3"}"#.to_owned())).await;
    let mut trigger = query("AK", "{}");
    trigger.metadata.insert("awsEndpoint".into(), url);
    assert!(read(&trigger).await.unwrap_err().message.contains("a string at Count"));
}

#[test]
fn invalid_parameters_are_refused() {
    let refused = |key: &str, value: &str| {
        let mut trigger = query(" ", "null");
        trigger.metadata.insert(key.into(), value.into());
        let error = build(&trigger).err().map(|error| error.message).unwrap_or_default();
        error.replace("error parsing DynamoDb metadata: ", "")
    };
    assert_eq!(refused("targetValue", "3"), "");
    assert_eq!(refused("targetValue", "-1"), "no targetValue given");
    let names = |value: &str| refused("expressionAttributeNames", value);
    for empty in ["{}[]", "null"] {
        assert_eq!(names(empty), "error parsing expressionAttributeNames: empty map");
    }
    for (value, kind) in [
        ("true", "boolean"),
        ("5", "32-bit integer"),
        ("99999999999", "64-bit integer"),
        ("1e3", "double"),
        ("[1]", "array"),
    ] {
        let expected = format!(
            "error parsing expressionAttributeNames: invalid expressionAttributeNames\ncannot decode {kind} into a map[string]string"
        );
        assert_eq!(names(value), expected);
    }
    assert_eq!(
        names(r#"{"a":1}"#),
        "error parsing expressionAttributeNames: invalid expressionAttributeNames\nerror decoding key a: cannot decode \
         32-bit integer into a string type"
    );
    assert_eq!(
        refused("expressionAttributeValues", r#"{"a":1}"#),
        "error parsing expressionAttributeValues: unsupported data type for attribute value"
    );
}
