use jiff::Timestamp;

use super::query::{start, url, value};
use crate::test_support::{ServerAction, read, server, texts, trigger};

#[test]
fn windows_start_at_full_minutes() {
    let now: Timestamp = "2030-05-06T07:08:09Z".parse().unwrap();
    for (granularity, expected) in [
        (1, "2030-05-06T07:08:00"),
        (60, "2030-05-06T07:08:00"),
        (119, "2030-05-06T07:08:00"),
        (300, "2030-05-06T07:04:00"),
        (3600, "2030-05-06T06:09:00"),
    ] {
        assert_eq!(start(granularity, now).as_deref(), Ok(expected), "{granularity}");
    }
    assert_eq!(start(0, now).unwrap_err().message, "granularity value is less than 1");
    assert!(start(-300, now).is_err());
    assert!(start(isize::MAX, now).unwrap_err().message.contains("too long"));
}

#[test]
fn url_has_metric_and_window() {
    let start = "2030-05-06T07:08:00";
    let rest = "aggregation=mean&granularity=300&start=2030-05-06T07%3A08%3A00";
    assert_eq!(
        url("http://g/v1/metric/", "a/b", ("mean", 300), start),
        format!("http://g/v1/metric/a%2Fb/measures?{rest}")
    );
    assert_eq!(
        url("http://g/v1/metric?refresh=true", "m", ("mean", 300), start),
        format!("http://g/v1/metric/m/measures?refresh=true&{rest}")
    );
}

#[test]
fn newest_measures() {
    let measures = r#"[["2030-05-06T07:00:00+00:00",300.0,1.5],["2030-05-06T07:05:00+00:00",300.0,42.25]]"#;
    assert_eq!(value(200, measures.as_bytes()), Ok(42.25));
    // KEDA takes a metric without measures for 0.
    assert_eq!(value(200, b"[]"), Ok(0.0));
    for (status, bad, why) in [
        (200, r#"[["t",300.0]]"#, "2 fields"),
        (200, r#"[["t",300.0,null]]"#, "null instead of a number"),
        (200, r#"[["t",300.0,"1"]]"#, "a string instead of a number"),
        (200, "[7]", "a number instead of a list"),
        (200, "{}", "an object instead of a list of measures"),
        (200, "null", "null instead of a list of measures"),
        (200, "<html>", "not JSON"),
        (403, measures, "no right"),
        (404, r#"{"code":404,"description":"Metric m does not exist"}"#, "404: Metric m does not exist"),
        (500, measures, "not shown"),
    ] {
        let error = value(status, bad.as_bytes()).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[tokio::test]
async fn reads_the_newest_measure() {
    let url = server(|head| {
        if head.starts_with("POST /v3/auth/tokens ") {
            assert!(head.contains(r#""methods":["password"]"#) && !head.contains("scope"), "{head}");
            let head = "HTTP/1.1 201 Created\r\nx-subject-token: tok\r\nconnection: close\r\n";
            return ServerAction::Raw(format!("{head}content-length: 2\r\n\r\n{{}}").into_bytes());
        }
        let path = "GET /v1/metric/m/measures?aggregation=max&granularity=300&start=";
        assert!(head.starts_with(path) && head.contains("x-auth-token: tok\r\n"), "{head}");
        ServerAction::Answer(200, r#"[["2030-05-06T07:05:00+00:00",300.0,2.5]]"#.to_owned())
    })
    .await;
    let metrics = format!("{url}/v1/metric");
    let pairs = [
        ("metricsURL", &*metrics),
        ("metricID", "m"),
        ("aggregationMethod", "max"),
        ("granularity", "300"),
        ("threshold", "1"),
        ("activationThreshold", "2.5"),
    ];
    let mut trigger = trigger("openstack-metric", &pairs);
    trigger.auth = texts(&[("authURL", &format!("{url}/v3/")), ("userID", "u"), ("password", "p")]);
    let reading = read(&trigger).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "2500m");
    assert!(!reading.active);
}
