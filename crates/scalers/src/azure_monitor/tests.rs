use super::Parameters;
use super::query::{newest, path};
use crate::Trigger;
use crate::test_support::{azure_token, read_answered, texts, trigger};

fn metric(changed: &[(&str, &str)]) -> Trigger {
    let mut given = trigger(
        "azure-monitor",
        &[
            ("resourceURI", "Microsoft.X/kinds/name"),
            ("tenantId", "t"),
            ("subscriptionId", "s"),
            ("resourceGroupName", "g h"),
            ("metricName", "CPU Credits"),
            ("metricAggregationType", "Average"),
            ("targetValue", "5"),
        ],
    );
    given.metadata.extend(texts(changed));
    given.auth = texts(&[("activeDirectoryClientId", "c"), ("activeDirectoryClientPassword", "hunter2")]);
    given
}

#[test]
fn requests_have_path_filter_and_timespan() {
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let paths = |changed: &[(&str, &str)]| path(&Parameters::read(&metric(changed)).unwrap(), now).unwrap();
    let (url, same) = paths(&[]);
    let base = "/subscriptions/s/resourceGroups/g%20h/providers/Microsoft.X/kinds/name/providers/Microsoft.Insights/\
                metrics?api-version=2018-01-01&metricnames=CPU+Credits&aggregation=Average";
    let span = "&timespan=2026-01-01T00%3A55%3A00Z%2F2026-01-01T01%3A00%3A00Z";
    assert_eq!((url, same), (format!("{base}{span}"), format!("300 {base}")));
    let (url, _) = paths(&[
        ("metricAggregationInterval", "0:10:30"),
        ("metricFilter", "a eq '*'"),
        ("metricNamespace", "ns"),
    ]);
    let more = "&metricnamespace=ns&$filter=a+eq+%27%2A%27&timespan=2026-01-01T00%3A49%3A30Z%2F";
    assert!(url.starts_with(&format!("{base}{more}")), "{url}");
    let (url, _) = paths(&[("subscriptionId", "s/../x"), ("metricAggregationInterval", "4294967295:0:0")]);
    assert!(url.starts_with("/subscriptions/s%2F..%2Fx/resourceGroups/"), "{url}");
    assert!(url.contains("&timespan=1970-01-01T00%3A00%3A00Z%2F"), "{url}");
    let words = Parameters::read(&metric(&[("metricAggregationInterval", "a:b:c")])).unwrap();
    let error = path(&words, now).unwrap_err().message;
    assert_eq!(error, "metricAggregationInterval a:b:c does not have the form hh:mm:ss");
}

fn answer(metric: &str) -> String {
    format!(r#"{{"cost": 0, "value": [{{"name": {{"value": "m"}}, {metric}}}]}}"#)
}

#[test]
fn responses_are_decoded_or_refused() {
    let read = |body: &str| newest(200, body.as_bytes(), "Average").map_err(|error| error.message);
    let points = |points: &str| answer(&format!(r#""timeseries": [{{"data": [{points}]}}]"#));
    assert_eq!(read(&points(r#"{"average": 1}, {"average": 2.5, "total": 7}"#)), Ok(2.5));
    assert_eq!(newest(200, points(r#"{"total": 7}"#).as_bytes(), "Total"), Ok(7.0));
    for (bad, why) in [
        ("{}".to_owned(), "has nothing instead of one metric"),
        (r#"{"value": []}"#.to_owned(), "a list instead of one metric"),
        (r#"{"value": [{}, {}]}"#.to_owned(), "a list instead of one metric"),
        (answer(r#""timeseries": []"#), "no time series"),
        (answer(r#""timeseries": [{}]"#), "has no values"),
        (points(""), "has no values"),
        (points(r#"{"average": 1}, {"timeStamp": "x"}"#), "has nothing as Average"),
        (points(r#"{"average": null}"#), "has null as Average"),
        (points(r#"{"average": "1"}"#), "has a string as Average"),
        (answer(r#""errorCode": "Throttled", "errorMessage": "later""#), "Throttled: later"),
        ("[]".to_owned(), "is not an object"),
    ] {
        let error = read(&bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let none = newest(200, points(r#"{"none": 1}"#).as_bytes(), "None").unwrap_err().message;
    assert_eq!(none, "unsupported aggregation type None");
    let error = newest(400, br#"{"code": "BadRequest", "message": "no such metric"}"#, "Average");
    assert_eq!(error.unwrap_err().message, "Azure Monitor returned 400: no such metric");
}

#[tokio::test]
async fn requests_carry_the_token_of_the_principal() {
    let reply = |call: &crate::web::HttpCall| {
        azure_token(call, "https://management.azure.com/.default").unwrap_or_else(|| {
            assert!(call.url.starts_with("https://management.azure.com/subscriptions/s/"), "{}", call.url);
            assert_eq!(call.headers.get("authorization").unwrap(), "Bearer token");
            (200, answer(r#""timeseries": [{"data": [{"average": 5.5}]}]"#))
        })
    };
    let reading = read_answered(&metric(&[("activationTargetValue", "5")]), reply).await.unwrap();
    assert_eq!(
        (reading.values.first().unwrap().value.canonical(), reading.active),
        ("5500m".to_owned(), true)
    );
    let refused = |call: &crate::web::HttpCall| {
        azure_token(call, "https://management.azure.com/.default").unwrap_or((401, String::new()))
    };
    let error = read_answered(&metric(&[]), refused).await.unwrap_err().message;
    assert_eq!(error, "Azure Monitor returned 401: (nothing)");
}

/// A token of the operator is sent to Azure's hosts only.
#[tokio::test]
async fn pod_identity_is_for_hosts_of_azure() {
    let nowhere = |call: &crate::web::HttpCall| -> (u16, String) { panic!("{call:?} must not be sent") };
    let mut given = metric(&[]);
    given.identity.provider = "azure-workload".into();
    let error = read_answered(&given, nowhere).await.unwrap_err().message;
    assert!(error.contains("the operator's pod has no federated token"), "{error}");
    let private = [("cloud", "Private"), ("azureResourceManagerEndpoint", "https://evil.example")];
    given.metadata.extend(texts(&private));
    let error = read_answered(&given, nowhere).await.unwrap_err().message;
    assert!(error.contains("in Azure's own clouds only"), "{error}");
}
