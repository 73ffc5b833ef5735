use super::Parameters;
use super::query::{path, value};
use crate::Trigger;
use crate::test_support::{azure_token, build, read_answered, texts, trigger};

fn metric(changed: &[(&str, &str)]) -> Trigger {
    let mut given = trigger(
        "azure-app-insights",
        &[
            ("applicationInsightsId", "app"),
            ("tenantId", "t"),
            ("metricId", "requests/count"),
            ("metricAggregationTimespan", "1:5"),
            ("metricAggregationType", "sum"),
            ("targetValue", "5"),
        ],
    );
    given.metadata.extend(texts(changed));
    given.auth = texts(&[("activeDirectoryClientId", "c"), ("activeDirectoryClientPassword", "hunter2")]);
    given
}

#[test]
fn requests_have_path_timespan_and_filter() {
    let path = |changed: &[(&str, &str)]| {
        path(&Parameters::read(&metric(changed)).unwrap()).map_err(|error| error.message)
    };
    let base = "/v1/apps/app/metrics/requests/count?aggregation=sum&timespan=PT01H05M";
    assert_eq!(path(&[]).unwrap(), base);
    let filtered = format!("{base}&filter=a+eq+%27b%27");
    assert_eq!(path(&[("metricFilter", "a eq 'b'")]).unwrap(), filtered);
    assert_eq!(path(&[("metricFilter", "a%20eq%20%27b%27")]).unwrap(), filtered);
    assert!(path(&[("metricFilter", "100%")]).unwrap_err().contains("metricFilter"));
    assert_eq!(path(&[("metricAggregationTimespan", "a:b")]).unwrap_err(), "invalid interval a:b");
    let evil = path(&[("applicationInsightsId", "../x?y")]).unwrap();
    assert!(evil.starts_with("/v1/apps/..%2Fx%3Fy/metrics/"), "{evil}");
}

#[test]
fn responses_are_decoded_or_refused() {
    let read =
        |body: &str| value(200, body.as_bytes(), "requests/count", "sum").map_err(|error| error.message);
    assert_eq!(read(r#"{"value": {"start": "x", "requests/count": {"sum": 7.5}}}"#), Ok(Some(7.5)));
    for nothing in [
        r#"{"value": {"requests/count": {"sum": null}}}"#,
        r#"{"value": {"requests/count": {"avg": 1}}}"#,
        r#"{"value": {"start": "x"}}"#,
    ] {
        assert_eq!(read(nothing), Ok(None), "{nothing}");
    }
    for (bad, why) in [
        ("{}", "has nothing as value"),
        (r#"{"value": []}"#, "has a list as value"),
        (r#"{"value": {"requests/count": {"sum": "7"}}}"#, "has a string as sum"),
        ("[]", "is not an object"),
        ("<html>", "not JSON"),
    ] {
        let error = read(bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let error = value(403, br#"{"error": {"message": "no access", "code": "x"}}"#, "m", "sum").unwrap_err();
    assert_eq!(error.message, "Application Insights returned 403: no access");
}

const SCOPE: &str = "https://api.applicationinsights.io/.default";

#[tokio::test]
async fn requests_carry_the_token_of_the_principal() {
    let reply = |call: &crate::web::HttpCall| {
        azure_token(call, SCOPE).unwrap_or_else(|| {
            let base = "https://api.applicationinsights.io/v1/apps/app/metrics/requests/count?";
            assert!(call.url.starts_with(base), "{}", call.url);
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer token");
            (200, r#"{"value": {"requests/count": {"sum": 7.5}}}"#.to_owned())
        })
    };
    let reading = read_answered(&metric(&[]), reply).await.unwrap();
    assert_eq!(
        (reading.values.first().unwrap().value.canonical(), reading.active),
        ("7500m".to_owned(), true)
    );
}

/// KEDA defines that missing data is 0 unless `ignoreNullValues` is false.
#[tokio::test]
async fn missing_data_is_zero_only_if_ignored() {
    let reply = |call: &crate::web::HttpCall| {
        azure_token(call, SCOPE)
            .unwrap_or((200, r#"{"value": {"requests/count": {"sum": null}}}"#.to_owned()))
    };
    let reading = read_answered(&metric(&[("ignoreNullValues", "true")]), reply).await.unwrap();
    assert_eq!((reading.values.first().unwrap().value.canonical(), reading.active), ("0".to_owned(), false));
    let error = read_answered(&metric(&[]), reply).await.unwrap_err();
    assert_eq!(error.message, "metric requests/count has no value for aggregation type sum");
    let broken = |call: &crate::web::HttpCall| azure_token(call, SCOPE).unwrap_or((200, "{}".to_owned()));
    assert!(read_answered(&metric(&[]), broken).await.is_err());
}

/// A token of the operator is sent to Azure's hosts only.
#[tokio::test]
async fn pod_identity_is_for_hosts_of_azure() {
    let nowhere = |call: &crate::web::HttpCall| -> (u16, String) { panic!("{call:?} must not be sent") };
    let mut given = metric(&[
        ("cloud", "Private"),
        ("appInsightsResourceURL", "https://evil.example"),
        ("activeDirectoryEndpoint", "https://login.evil.example"),
    ]);
    given.identity.provider = "azure-workload".into();
    let error = read_answered(&given, nowhere).await.unwrap_err().message;
    assert!(error.contains("in Azure's own clouds only"), "{error}");
}

#[test]
fn invalid_parameters_are_refused() {
    let build = |given: &Trigger| build(given).map(|_| ()).map_err(|error| error.message);
    let refused = |changed: &[(&str, &str)]| build(&metric(changed)).unwrap_err();
    let wrong = |why: &str| format!("error parsing azure app insights metadata: {why}");
    assert_eq!(refused(&[("targetValue", "")]), wrong("no targetValue given"));
    let mut formula = metric(&[("targetValue", "")]);
    formula.feeds_formula = true;
    assert_eq!(build(&formula), Ok(()));
    assert_eq!(refused(&[("cloud", "x")]), wrong("there is no cloud environment matching the name x"));
    let private = [("cloud", "Private"), ("appInsightsResourceURL", "https://h")];
    assert_eq!(refused(&private), wrong("activeDirectoryEndpoint must be provided for Private cloud type"));
    let mut other = metric(&[]);
    other.identity.provider = "gcp".into();
    assert_eq!(build(&other), Err(wrong("azure Monitor doesn't support pod identity gcp")));
    let timespan = "metricAggregationTimespan not in the correct format. Should be hh:mm";
    assert_eq!(refused(&[("metricAggregationTimespan", "1:2:3")]), wrong(&wrong(timespan)));
}
