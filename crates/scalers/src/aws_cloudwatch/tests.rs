use serde_json::json;

use super::Parameters;
use super::query::{CloudwatchPage, newest, request_body, window};
use crate::Trigger;
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

fn error(changed: &[(&str, &str)]) -> String {
    let mut given = trigger(
        "aws-cloudwatch",
        &[("expression", "e"), ("targetMetricValue", "1"), ("minMetricValue", "0"), ("awsRegion", "r")],
    );
    given.metadata.extend(texts(changed));
    given.auth = texts(&[("awsAccessKeyID", "a"), ("awsSecretAccessKey", "s")]);
    let error = build(&given).err().map(|error| error.message).unwrap_or_default();
    error.rsplit_once("metadata: ").map(|(_, text)| text.to_owned()).unwrap_or_default()
}

#[test]
fn periods_are_those_of_cloudwatch() {
    assert_eq!(error(&[]), "");
    assert_eq!(error(&[("metricStatPeriod", "30")]), "");
    assert!(error(&[("metricStatPeriod", "7")]).starts_with("metricStatPeriod < 60 has to be one of"));
    assert!(error(&[("metricStatPeriod", "61")]).starts_with("metricStatPeriod >= 60"));
    assert!(error(&[("metricStatPeriod", "0")]).contains("can not be smaller than 1"));
    assert!(error(&[("metricStatPeriod", "60"), ("metricCollectionTime", "100")]).contains("multiple of"));
    assert_eq!(error(&[("metricCollectionTime", "0")]), "");
    // CloudWatch refuses a request with a name that it does not know.
    assert_eq!(error(&[("metricStat", "p99"), ("metricUnit", "x")]), "");
}

#[test]
fn a_metric_has_matching_dimensions() {
    let metric = |names, values| {
        error(&[
            ("expression", ""),
            ("namespace", "n"),
            ("metricName", "m"),
            ("dimensionName", names),
            ("dimensionValue", values),
        ])
    };
    assert_eq!(metric("a;b", "c;d"), "");
    assert_eq!(metric("a;b", "c"), "dimensionName and dimensionValue are not matching in size");
    assert_eq!(metric("a", ""), "dimension value not given");
}

fn metric(changed: &[(&str, &str)]) -> Trigger {
    let mut given = trigger(
        "aws-cloudwatch",
        &[
            ("namespace", "AWS/SQS"),
            ("metricName", "m"),
            ("dimensionName", "a;b"),
            ("dimensionValue", "c;d"),
            ("targetMetricValue", "1"),
            ("minMetricValue", "2"),
            ("awsRegion", "eu-west-1"),
        ],
    );
    given.metadata.extend(texts(changed));
    given.auth = texts(&[("awsAccessKeyID", "AK"), ("awsSecretAccessKey", "SK")]);
    given
}

fn parameters(changed: &[(&str, &str)]) -> Parameters {
    Parameters::read(&metric(changed)).unwrap()
}

#[test]
fn windows_end_with_a_whole_period() {
    // 2026-01-01T00:07:10Z.
    let now = 1_767_226_030;
    assert_eq!(window(now, &parameters(&[])), (1_767_225_600, 1_767_225_900));
    let changed =
        [("metricStatPeriod", "60"), ("metricCollectionTime", "120"), ("metricEndTimeOffset", "60")];
    assert_eq!(window(now, &parameters(&changed)), (1_767_225_840, 1_767_225_960));
    // However large the offset, nothing overflows.
    let (start, end) = window(now, &parameters(&[("metricEndTimeOffset", "9223372036854775807")]));
    assert!(start < end);
}

#[test]
fn request_bodies() {
    let now = 1_767_226_030;
    let body = |parameters: &Parameters, token| {
        serde_json::from_str::<serde_json::Value>(&request_body(parameters, now, token)).unwrap()
    };
    let metric = json!({
        "Namespace": "AWS/SQS",
        "MetricName": "m",
        "Dimensions": [{"Name": "a", "Value": "c"}, {"Name": "b", "Value": "d"}],
    });
    let stat = json!({"Metric": metric, "Period": 300, "Stat": "Average"});
    let expected = json!({
        "StartTime": 1_767_225_600,
        "EndTime": 1_767_225_900,
        "ScanBy": "TimestampDescending",
        "MetricDataQueries": [{"Id": "c1", "MetricStat": stat, "ReturnData": true}],
    });
    assert_eq!(body(&parameters(&[]), ""), expected);
    let other = body(&parameters(&[("metricUnit", "Count"), ("awsAccountId", "123456789012")]), "next");
    assert_eq!(other.pointer("/MetricDataQueries/0/MetricStat/Unit"), Some(&json!("Count")));
    assert_eq!(other.pointer("/MetricDataQueries/0/AccountId"), Some(&json!("123456789012")));
    assert_eq!(other.get("NextToken"), Some(&json!("next")));
    let expression = body(&parameters(&[("expression", "SUM(x)")]), "");
    let query = json!([{"Id": "q1", "Expression": "SUM(x)", "Period": 300}]);
    assert_eq!(expression.get("MetricDataQueries"), Some(&query));
}

#[test]
fn responses_are_decoded_or_refused() {
    let page = |body: &str| newest(200, body.as_bytes()).map_err(|error| error.message);
    let two = r#"{"MetricDataResults": [{"Id": "c1", "StatusCode": "Complete", "Values": [3.5, 9]}, {"Values": [1]}]}"#;
    assert_eq!(page(two), Ok(CloudwatchPage::Value(3.5)));
    for nothing in [r#"{"MetricDataResults": []}"#, r#"{"MetricDataResults": [{"Values": []}]}"#] {
        assert_eq!(page(nothing), Ok(CloudwatchPage::Nothing), "{nothing}");
    }
    assert_eq!(
        page(r#"{"MetricDataResults": [{"Values": [], "StatusCode": "PartialData"}], "NextToken": "n"}"#),
        Ok(CloudwatchPage::Next("n".to_owned()))
    );
    for (bad, why) in [
        ("{}", "has nothing as MetricDataResults"),
        ("[]", "has nothing as MetricDataResults"),
        (r#"{"MetricDataResults": null}"#, "has null as MetricDataResults"),
        (r#"{"MetricDataResults": [{"Values": 7}]}"#, "has a number as Values"),
        (r#"{"MetricDataResults": [{"Values": ["NaN"]}]}"#, "a string as value"),
        (
            r#"{"MetricDataResults": [{"Values": [], "StatusCode": "Forbidden", "Messages": [{"Value": "not yours"}]}]}"#,
            "(Forbidden): not yours",
        ),
        (
            r#"{"MetricDataResults": [{"StatusCode": "InternalError"}], "Messages": [{"Value": "later"}]}"#,
            "(InternalError): later",
        ),
    ] {
        let error = page(bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let refused =
        br#"{"__type": "com.amazonaws.cloudwatch#InvalidParameterValue", "message": "no such period"}"#;
    let error = newest(400, refused).unwrap_err().message;
    assert_eq!(error, "CloudWatch returned 400: InvalidParameterValue: no such period");
    assert!(newest(503, b"busy").unwrap_err().message.ends_with("(4 bytes, not shown)"));
}

#[tokio::test]
async fn requests_are_signed_and_pages_followed() {
    let url = server(|head| {
        let text = head.to_lowercase();
        assert!(text.starts_with("post / "), "{head}");
        assert!(text.contains("x-amz-target: graniteserviceversion20100801.getmetricdata\r\n"), "{head}");
        assert!(text.contains("content-type: application/x-amz-json-1.0\r\n"), "{head}");
        assert!(text.contains("authorization: aws4-hmac-sha256 credential=ak/"), "{head}");
        assert!(text.contains("/eu-west-1/monitoring/aws4_request"), "{head}");
        let answer = if head.contains(r#""NextToken":"n""#) {
            r#"{"MetricDataResults": [{"Values": [7.5]}]}"#
        } else {
            r#"{"MetricDataResults": [{"Values": []}], "NextToken": "n"}"#
        };
        ServerAction::Answer(200, answer.to_owned())
    })
    .await;
    let reading =
        read(&metric(&[("awsEndpoint", &url), ("activationTargetMetricValue", "7.5")])).await.unwrap();
    assert_eq!(
        (reading.values.first().unwrap().value.canonical(), reading.active),
        ("7500m".to_owned(), false)
    );
    let mut role = metric(&[("awsEndpoint", &url)]);
    role.auth = texts(&[("awsRoleArn", "arn:aws:iam::1:role/r")]);
    let error = read(&role).await.unwrap_err().message;
    assert!(error.contains("sent to hosts of AWS only"), "{error}");
}

#[tokio::test]
async fn missing_data_is_the_minimum_or_an_error() {
    let url = server(|_| ServerAction::Answer(200, r#"{"MetricDataResults": []}"#.to_owned())).await;
    let reading = read(&metric(&[("awsEndpoint", &url)])).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "2");
    let error = read(&metric(&[("awsEndpoint", &url), ("ignoreNullValues", "false")])).await.unwrap_err();
    assert!(error.message.starts_with("empty metric data received, ignoreNullValues is false"), "{error}");
    // Pages without end are an error.
    let endless = r#"{"MetricDataResults": [], "NextToken": "n"}"#;
    let url = server(move |_| ServerAction::Answer(200, endless.to_owned())).await;
    let error = read(&metric(&[("awsEndpoint", &url)])).await.unwrap_err();
    assert!(error.message.contains("5 pages without a value"), "{error}");
}
