use prost::Message as _;
use sources::http::ProxyRules;

use super::query::{self, PredictRequest, PredictResponse};
use super::rules::{check_duration, is_absolute_url, is_token, seconds};
use super::*;
use crate::dial::Dialer;
use crate::test_support::grpc_server::grpc_server;
use crate::test_support::{FakeCluster, ServerAction, backends, server, texts, trigger};

#[test]
fn durations_have_units() {
    for good in ["2h", "7d", "1w2d3h", "1.5h", "0"] {
        assert_eq!(check_duration("x", good), Ok(()), "{good}");
    }
    let error = |text| check_duration("x", text).unwrap_err().to_string();
    assert_eq!(error(""), "x parsing error time: invalid duration \"\"");
    assert_eq!(error("1000"), "x parsing error time: missing unit in duration \"1000\"");
    assert!(error("padded").contains("invalid duration") && error("5y").contains("unknown unit"));
}

#[test]
fn addresses_are_urls_and_keys_are_tokens() {
    assert!(is_absolute_url("http://p:9090") && !is_absolute_url("padded") && !is_absolute_url("/x"));
    assert!(is_token("eyJh.eyJz.c2ln") && is_token("a.b.") && !is_token("日本") && !is_token(""));
}

#[test]
fn durations_in_seconds() {
    for (text, expected) in
        [("2h", 7200.0), ("1w2d", 777_600.0), ("1.5m", 90.0), ("250ms", 0.25), ("-1s", -1.0), ("0", 0.0)]
    {
        assert_eq!(seconds(text), expected, "{text}");
    }
}

fn predictkube(address: &str) -> Trigger {
    let mut given = trigger(
        "predictkube",
        &[
            ("prometheusAddress", address),
            ("predictHorizon", "2h"),
            ("query", "sum(x)"),
            ("queryStep", "2m"),
            ("historyTimeWindow", "1h"),
            ("threshold", "5"),
            ("activationThreshold", "3"),
        ],
    );
    given.auth = texts(&[("apiKey", "a.b.hunter2")]);
    given
}

/// Reads a trigger whose service predicts this value.
async fn read(samples: &'static str, predicted: i64) -> Result<Reading, ScalerError> {
    let address = server(move |request| {
        let rest = request.strip_prefix("GET /api/v1/query_range?query=sum%28x%29&start=");
        let (start, rest) = rest.unwrap_or_else(|| panic!("{request}")).split_once("&end=").unwrap();
        let (end, rest) = rest.split_once("&step=120 ").unwrap();
        assert!(rest.starts_with("HTTP/1.1"));
        assert!((end.parse::<f64>().unwrap() - start.parse::<f64>().unwrap() - 3600.0).abs() < 0.01);
        ServerAction::Answer(200, samples.to_owned())
    })
    .await;
    let service = grpc_server(move |path, headers, message| {
        assert_eq!(path, "/services.MlEngineService/GetPredictMetric");
        assert_eq!(headers.get("x-auth-api-key").unwrap(), "a.b.hunter2");
        let requested = PredictRequest::decode(message).unwrap();
        assert_eq!((requested.forecast_horizon, requested.observations.len()), (60, 2));
        let first = requested.observations[0].clone();
        assert_eq!((first.value, &*first.metric_name), (1.0, "s0-predictkube-predictkube_metric"));
        assert_eq!(first.timestamp.unwrap().seconds, 1_700_000_000);
        Ok(PredictResponse { result: predicted }.encode_to_vec())
    })
    .await;
    let destination = Destination {
        what: "PredictKube",
        address: service,
        tls: None,
        server_name: String::new(),
        dialer: Dialer::allowing_loopback(),
        proxies: ProxyRules::default(),
    };
    let backends = backends(FakeCluster::default());
    PredictKube::build(&predictkube(&address), &backends, destination)?.read("m").await
}

#[tokio::test]
async fn predictions_below_the_newest_sample_are_raised() {
    let samples = r#"{"status": "success", "data": {"resultType": "matrix", "result": [{"values": [[1700000000, "1"], [1700000120, "4"]]}]}}"#;
    let reading = read(samples, 9).await.unwrap();
    assert_eq!((&*reading.values[0].value.canonical(), reading.active), ("9", true));
    let reading = read(samples, 2).await.unwrap();
    assert_eq!((&*reading.values[0].value.canonical(), reading.active), ("4", true));
    let zeros = r#"{"data": {"result": [{"values": [[1700000000, "1"], [1700000120, "0"]]}]}}"#;
    assert_eq!(read(zeros, 0).await, Ok(Reading::default()));
    assert!(!read(zeros, 7).await.unwrap().active);
}

#[tokio::test]
async fn prometheus_gets_credentials() {
    let address = server(|request| {
        assert!(request.contains("authorization: Basic dTpw\r\n"), "{request}");
        ServerAction::Answer(400, r#"{"error": "seen"}"#.to_owned())
    })
    .await;
    let mut given = predictkube(&address);
    given.metadata.extend(texts(&[("authModes", "basic")]));
    let backends = backends(FakeCluster::default());
    let refused = build(&given, &backends).err().unwrap().message;
    assert!(refused.ends_with(": username=<empty> is required when basic auth is enabled"), "{refused}");
    given.auth.extend(texts(&[("username", "u"), ("password", "p")]));
    let error = build(&given, &backends).unwrap().read("m").await.unwrap_err().message;
    assert!(error.ends_with("400: seen"), "{error}");
}

#[test]
fn results_without_samples_are_errors() {
    let reported =
        |status, body: &str| query::observations(status, body.as_bytes(), "m").unwrap_err().message;
    assert!(reported(200, r#"{"data": {"result": []}}"#).contains("no samples"));
    let values = |values: &str| format!(r#"{{"data": {{"result": [{{"values": [{values}]}}]}}}}"#);
    assert!(reported(200, &values(r#"[1, "x"]"#)).contains("without time or number"));
    assert!(reported(200, &values(r#"[1, "2"], [2, "NaN"]"#)).contains("newest sample of the query is NaN"));
    let past = query::observations(200, values(r#"[1, "+Inf"], [2, "NaN"], [3, "4"]"#).as_bytes(), "m");
    assert_eq!(past.unwrap().iter().map(|sample| sample.value).collect::<Vec<_>>(), [4.0]);
    assert!(reported(200, "{}").contains("nothing at data.result"));
    assert!(reported(400, r#"{"error": "parse error"}"#).ends_with("400: parse error"));
}
