use std::sync::Mutex;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use sources::http::HttpResponse;

use super::query::{CloudEyeMetric, authorization, date, host, path, request_body, value};
use super::*;
use crate::test_support::{texts, trigger};

fn now() -> Timestamp {
    "2030-05-06T07:08:09Z".parse().unwrap()
}

#[test]
fn requests_are_signed_as_documented() {
    let keys = (&Secret::new("ak"), &Secret::new("sk"));
    let host = host("cn-north-4", "myhuaweicloud.com").unwrap();
    assert_eq!(path("p1"), "/V1.0/p1/batch-query-metric-data");
    // Computed with another implementation of HMAC and SHA-256.
    assert_eq!(
        authorization(keys, (&host, "p1"), &date(now()), r#"{"x":1}"#),
        "SDK-HMAC-SHA256 Access=ak, SignedHeaders=content-type;host;x-project-id;x-sdk-date, \
         Signature=01bb9787dd903fc3610a16f4e70a3a6b4cc41ae66b9d648d5ec81b29be7d5cf6"
    );
}

#[test]
fn host_is_built_from_labels_only() {
    assert_eq!(host("r", "c.example").as_deref(), Ok("ces.r.c.example"));
    for (region, cloud) in [("", "c"), ("r", ""), ("r/", "c"), ("r", "c@other"), ("r", "c:1"), ("r#", "c")] {
        assert!(host(region, cloud).is_err(), "{region} {cloud}");
    }
}

#[test]
fn request_bodies() {
    let metric = CloudEyeMetric {
        namespace: "SYS.ELB",
        name: "m1",
        dimension: ("lb", "x"),
        period: "300",
        filter: "max",
    };
    let read: serde_json::Value = serde_json::from_str(&request_body(&metric, 300, now())).unwrap();
    let end = now().as_second() - 9;
    let metric = serde_json::json!({"namespace": "SYS.ELB", "metric_name": "m1", "dimensions": [{"name": "lb", "value": "x"}]});
    assert_eq!(
        read,
        serde_json::json!({
            "metrics": [metric],
            "from": (end - 300) * 1000,
            "to": end * 1000,
            "period": "300",
            "filter": "max",
        })
    );
}

#[test]
fn responses_are_decoded_or_refused() {
    let good =
        r#"{"metrics":[{"unit":"%","datapoints":[{"max":2.5,"timestamp":1},{"max":9,"timestamp":2}]}]}"#;
    assert_eq!(value(200, good.as_bytes(), "max"), Ok(2.5));
    for (status, bad, why) in [
        (200, r#"{"metrics":[{"datapoints":[]}]}"#, "metric Data not received"),
        (200, r#"{"metrics":[]}"#, "nothing at metrics.0.datapoints"),
        (200, r#"{"metrics":[{"datapoints":[{"max":"1"}]}]}"#, "a string at max"),
        (200, r#"{"metrics":[{"datapoints":[{"max":null}]}]}"#, "null at max"),
        (200, r#"{"metrics":[{"datapoints":[{"min":1}]}]}"#, "nothing at max"),
        (200, "<html>", "not JSON"),
        (204, "", "204"),
        (401, good, "check AccessKey"),
        (400, r#"{"code":"ces.0014","message":"Invalid period"}"#, "400: Invalid period"),
        (500, "<html>", "(6 bytes, not shown)"),
    ] {
        let error = value(status, bad.as_bytes(), "max").unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

fn given(changed: &[(&str, &str)]) -> Parameters {
    let pairs = [
        ("namespace", "SYS.ELB"),
        ("metricName", "m1"),
        ("dimensionName", "lb"),
        ("dimensionValue", "x"),
        ("targetMetricValue", "5"),
        ("metricFilter", "max"),
    ];
    let mut trigger = trigger("huawei-cloudeye", &pairs);
    trigger.auth = texts(&[("ProjectID", "p1"), ("Region", "r"), ("AccessKey", "ak"), ("SecretKey", "sk")]);
    trigger.auth.extend(texts(changed));
    Parameters::read(&trigger).unwrap()
}

#[tokio::test]
async fn sends_a_signed_request() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let web = SharedHttpClient::answered_by(move |call| {
        let text = |name: &str| call.headers.get(name).unwrap().to_str().unwrap().to_owned();
        let names = ["x-project-id", "content-type", "authorization"];
        seen.lock().unwrap().push((call.url.clone(), names.map(text)));
        let body = r#"{"metrics":[{"datapoints":[{"max":7}]}]}"#;
        HttpResponse { status: StatusCode::OK, headers: HeaderMap::new(), body: Bytes::from(body) }
    });
    let web = Arc::new(web);
    let source = HttpSource { parameters: given(&[]), within: Duration::from_secs(1), web: Arc::clone(&web) };
    assert_eq!(source.value().await, Ok(7.0));
    let (url, [project, kind, authorization]) = sent.lock().unwrap().pop().unwrap();
    assert_eq!(url, "https://ces.r.myhuaweicloud.com/V1.0/p1/batch-query-metric-data");
    assert_eq!((&*project, &*kind), ("p1", "application/json"));
    assert!(authorization.starts_with("SDK-HMAC-SHA256 Access=ak, "), "{authorization}");
    for missing in ["ProjectID", "Region", "AccessKey", "SecretKey"] {
        let parameters = given(&[(missing, "")]);
        let source = HttpSource { parameters, within: Duration::from_secs(1), web: Arc::clone(&web) };
        let error = source.value().await.unwrap_err().message;
        assert!(error.contains(missing), "{missing}: {error}");
    }
    assert!(sent.lock().unwrap().is_empty());
}
