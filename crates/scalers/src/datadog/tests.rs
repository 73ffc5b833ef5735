use std::sync::Arc;
use std::time::Duration;

use super::query::{Aggregator, agent_url, agent_value, metric, value};
use super::{Datadog, Parameters};
use crate::single::ValueSource as _;
use crate::test_support::{FakeCluster, ServerAction, backends, build, server, texts, trigger};

const SERIES: &str =
    r#"{"status":"ok","series":[{"pointlist":[[1,3],[2,4.5],[3,null]]},{"pointlist":[[1,10]]}]}"#;

#[test]
fn metric_name_and_url_of_the_agent_are_built() {
    assert_eq!(metric("sum:a.b{x}.as_count()").unwrap(), "sum:a.b");
    assert!(metric("a.b").is_err());
    assert!(metric("a{b").is_err());
    assert!(metric("a}b{").is_err());
    let url = agent_url("svc", "dd", 8443, "default", "datadogmetric@default:m");
    let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/datadogmetric@default:m";
    assert_eq!(url, format!("https://svc.dd:8443{path}"));
}

#[test]
fn responses_are_decoded_or_refused() {
    let of = |body: &str, how, back| value(200, body.as_bytes(), how, back);
    let one = r#"{"series":[{"pointlist":[[1,3],[2,4.5],[3,null]]}]}"#;
    assert_eq!(of(one, None, 0), Ok(Some(4.5)));
    assert_eq!(of(one, None, 1), Ok(Some(3.0)));
    assert_eq!(of(one, None, 2), Ok(None));
    assert_eq!(of(SERIES, Some(Aggregator::Max), 0), Ok(Some(10.0)));
    assert_eq!(of(SERIES, Some(Aggregator::Average), 0), Ok(Some(7.25)));
    assert_eq!(of(r#"{"series":[]}"#, None, 0), Ok(None));
    assert_eq!(of(r#"{"series":[{"pointlist":[]}]}"#, None, 0), Ok(None));
    let gap = r#"{"series":[{"pointlist":[[1,3]]},{"pointlist":[[1,null]]}]}"#;
    assert_eq!(of(gap, Some(Aggregator::Max), 0), Ok(None));
    for (bad, why) in [
        (of(SERIES, None, 0), "more than 1 series"),
        (of(r#"{"status":"error","error":"Rule 'x' failed"}"#, None, 0), "Rule 'x' failed"),
        (of(r#"{"series":null}"#, None, 0), "null at series"),
        (of(r#"{"series":[{}]}"#, None, 0), "nothing at pointlist"),
        (of(r#"{"series":[{"pointlist":[[1,"2"]]}]}"#, None, 0), "a string instead of a value"),
        (of("<html>", None, 0), "not JSON"),
        (value(429, b"", None, 0), "rate limit"),
        (value(403, br#"{"errors": ["Forbidden"]}"#, None, 0), "403: Forbidden"),
        (value(502, b"<html>", None, 0), "502: (6 bytes, not shown)"),
    ] {
        let error = bad.unwrap_err().message;
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn answers_of_the_agent() {
    let of = |body: &str| agent_value(200, body.as_bytes());
    assert_eq!(
        of(r#"{"kind":"ExternalMetricValueList","items":[{"metricName":"m","value":"2500m"}]}"#),
        Ok(Some(2.5))
    );
    assert_eq!(of(r#"{"items":[]}"#), Ok(None));
    assert!(of(r#"{"items":[{"value":2}]}"#).is_err());
    assert!(of(r#"{"items":[{"value":"x"}]}"#).is_err());
    assert!(of(r#"{"items":null}"#).is_err());
    assert!(agent_value(404, b"no").is_err());
}

fn source(url: String, parameters: Parameters) -> Datadog {
    let aggregator = Some(Aggregator::Max);
    let web = Arc::clone(&backends(FakeCluster::default()).web);
    Datadog { parameters, aggregator, url, within: Duration::from_secs(10), web }
}

#[tokio::test]
async fn reads_from_datadog_api() {
    let url = server(|head| {
        assert!(head.starts_with("GET /api/v1/query?from="), "{head}");
        assert!(head.contains("&query=sum%3Ax%7Ba%7D "), "{head}");
        assert!(head.contains("dd-api-key: a\r\n") && head.contains("dd-application-key: b\r\n"), "{head}");
        let number = |key: &str| -> i64 {
            let rest = head.split_once(key).unwrap().1;
            rest.split(['&', ' ']).next().unwrap().parse().unwrap()
        };
        assert_eq!(number("to=") - number("from="), 120, "{head}");
        ServerAction::Answer(200, SERIES.to_owned())
    })
    .await;
    let mut trigger = trigger("datadog", &[("query", "sum:x{a}"), ("queryValue", "7"), ("age", "120")]);
    trigger.auth = texts(&[("apiKey", "a"), ("appKey", "b")]);
    let datadog = source(url, Parameters::read(&trigger).unwrap());
    assert_eq!(datadog.value().await, Ok(10.0));
}

#[tokio::test]
async fn reads_from_cluster_agent() {
    let url = server(|head| {
        assert!(head.contains("authorization: Bearer t\r\n"), "{head}");
        ServerAction::Answer(200, r#"{"items":[]}"#.to_owned())
    })
    .await;
    let mut trigger = trigger("datadog", &[("useClusterAgentProxy", "true")]);
    trigger.auth = texts(&[("token", "t"), ("authMode", "bearer")]);
    let none = source(url.clone(), Parameters::read(&trigger).unwrap());
    assert!(none.value().await.unwrap_err().message.contains("no Datadog metrics"));
    trigger.metadata.insert("metricUnavailableValue".into(), "1.5".into());
    assert_eq!(source(url, Parameters::read(&trigger).unwrap()).value().await, Ok(1.5));
}

#[tokio::test]
async fn metric_that_cannot_be_computed_is_filled() {
    let url = server(|_| ServerAction::Answer(422, r#"{"message":"not valid"}"#.to_owned())).await;
    for proxy in ["true", "false"] {
        let metadata = [("useClusterAgentProxy", proxy), ("query", "sum:x{a}"), ("queryValue", "7")];
        let mut trigger = trigger("datadog", &metadata);
        trigger.auth = texts(&[("token", "t"), ("apiKey", "a"), ("appKey", "b")]);
        let none = source(url.clone(), Parameters::read(&trigger).unwrap());
        assert!(none.value().await.unwrap_err().message.contains("returned 422"));
        trigger.metadata.insert("metricUnavailableValue".into(), "1.5".into());
        let filled = source(url.clone(), Parameters::read(&trigger).unwrap());
        assert_eq!(filled.value().await, Ok(1.5));
    }
}

#[test]
fn invalid_parameters_are_refused() {
    let refused = |metadata: &[(&str, &str)], auth: &[(&str, &str)]| {
        let mut given = trigger("datadog", metadata);
        given.auth = texts(auth);
        build(&given).err().map(|error| error.message).unwrap_or_default()
    };
    let keys = [("apiKey", "a"), ("appKey", "b")];
    let query = |key, value| refused(&[("query", "x{a}"), ("queryValue", "1"), (key, value)], &keys);
    assert_eq!(query("age", "0"), "");
    assert_eq!(
        query("age", "-1"),
        "error parsing Datadog metadata: age should not be smaller than 0 seconds"
    );
    let offset = "error parsing Datadog metadata: lastAvailablePointOffset should not be smaller than 0";
    assert_eq!(query("lastAvailablePointOffset", "-1"), offset);
    assert_eq!(query("queryValue", "-1"), "no targetValue or queryValue given");
    assert_eq!(query("query", ""), "error parsing Datadog metadata: missing Query");
    assert_eq!(query("type", ""), "type has to be global or average");
    assert_eq!(query("type", "Global"), "");
    let agent = [("useClusterAgentProxy", "true"), ("datadogMetricName", "m"), ("targetValue", "1")];
    let place = [("datadogMetricsService", "s"), ("datadogNamespace", "n")];
    assert_eq!(refused(&agent, &place), "datadog metric namespace is required");
    assert_eq!(refused(&agent, &[]), "datadog metrics service is required");
    // Without a mode the request to the cluster agent has no token.
    let mut whole = agent.to_vec();
    whole.push(("datadogMetricNamespace", "n"));
    assert_eq!(refused(&whole, &place), "");
}
