use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::test_support::{self, FakeCluster, ServerAction, server, texts, trigger};

fn forecast(address: &str) -> Trigger {
    let mut given = trigger(
        "elastic-forecast",
        &[
            ("addresses", address),
            ("jobID", "j.1"),
            ("targetValue", "5"),
            ("username", "u"),
            ("byFieldValue", "b"),
        ],
    );
    given.auth = texts(&[("password", "hunter2")]);
    given
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn a_forecast_is_created_once_and_searched_for() {
    let created = Arc::new(AtomicUsize::new(0));
    let searched = AtomicUsize::new(0);
    let counted = Arc::clone(&created);
    let address = server(move |request| {
        assert!(request.contains("authorization: Basic dTpodW50ZXIy"), "{request}");
        if request.starts_with("POST /_ml/anomaly_detectors/j.1/_forecast ") {
            assert_eq!(body(request), json!({"duration": "1200s", "expires_in": "1200s"}));
            counted.fetch_add(1, Ordering::SeqCst);
            return ServerAction::Answer(200, r#"{"acknowledged": true, "forecast_id": "f1"}"#.to_owned());
        }
        assert!(request.starts_with("POST /.ml-anomalies-%2A/_search "), "{request}");
        let requested = body(request);
        let filters = requested.pointer("/query/bool/filter").and_then(Value::as_array).unwrap();
        let expected = [
            json!({"term": {"job_id": "j.1"}}),
            json!({"term": {"forecast_id": "f1"}}),
            json!({"term": {"result_type": "model_forecast"}}),
            json!({"term": {"by_field_value": "b"}}),
        ];
        assert_eq!(filters[..4], expected);
        assert!(filters[4].pointer("/range/timestamp/lte").is_some_and(Value::is_i64));
        // The first search comes too early.
        let hits = match searched.fetch_add(1, Ordering::SeqCst) {
            0 => json!([]),
            _ => json!([{"_source": {"forecast_prediction": 7.5, "timestamp": 1}}]),
        };
        ServerAction::Answer(200, json!({"hits": {"hits": hits}}).to_string())
    })
    .await;
    let backends = test_support::backends(FakeCluster::default());
    // Scalers are built anew after an error.
    let read = async || crate::table::build(&forecast(&address), &backends).unwrap().read("m").await;
    assert!(read().await.unwrap_err().message.contains("it is still being computed"));
    for _ in 0..2 {
        let reading = read().await.unwrap();
        assert_eq!((&*reading.values[0].value.canonical(), reading.active), ("7500m", true));
    }
    assert_eq!(created.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn forecasts_are_renewed_and_the_one_before_is_kept() {
    let forecasts = Forecasts::default();
    let given = forecast("http://e:9200");
    let key = Parameters::read(&given).unwrap().key();
    let ids = async |created: Result<&str, &str>| {
        let created = created.map(str::to_owned).map_err(ScalerError::new);
        forecasts.of(&key, std::future::ready(created)).await.map_err(|error| error.message)
    };
    assert_eq!(ids(Err("busy")).await, Err("busy".to_owned()));
    assert_eq!(ids(Ok("1")).await, Ok(vec!["1".to_owned()]));
    assert_eq!(ids(Ok("2")).await, Ok(vec!["1".to_owned()]));
    tokio::time::advance(Duration::from_mins(11)).await;
    // The old one is used if no new one can be had.
    assert_eq!(ids(Err("busy")).await, Ok(vec!["1".to_owned()]));
    assert_eq!(ids(Ok("2")).await, Ok(vec!["2".to_owned(), "1".to_owned()]));
    tokio::time::advance(Duration::from_mins(10)).await;
    assert_eq!(ids(Ok("3")).await, Ok(vec!["2".to_owned()]));
    tokio::time::advance(Duration::from_mins(20)).await;
    assert_eq!(ids(Err("busy")).await, Err("busy".to_owned()));
}

#[test]
fn answers_without_a_number_are_errors() {
    let reported =
        |status, body: &str| query::prediction(status, body.as_bytes()).map_err(|error| error.message);
    assert_eq!(reported(200, r#"{"hits": {"hits": []}}"#), Ok(None));
    assert_eq!(
        reported(200, r#"{"hits": {"hits": [{"_source": {"forecast_prediction": "2.5"}}]}}"#),
        Ok(Some(2.5))
    );
    assert!(reported(200, "{}").unwrap_err().contains("nothing at hits.hits"));
    assert!(reported(401, "").unwrap_err().contains("check username/password or apiKey"));
    assert!(
        reported(404, r#"{"error": {"reason": "no such index"}}"#)
            .unwrap_err()
            .ends_with("404: no such index")
    );
    assert!(query::forecast_id(200, b"{}").is_err());
}
