//! The query of Prometheus and the messages of PredictKube, without IO.

use jiff::Timestamp;
use serde_json::Value;

use super::Parameters;
use super::rules::seconds;
use crate::ScalerError;
use crate::responses::{error_field, json, kind};
use crate::web::escaped;

/// The method that predicts.
pub(super) const GET_PREDICT_METRIC: &str = "/services.MlEngineService/GetPredictMetric";
/// The step of a query with `queryStep` 0, in seconds, as in KEDA.
const DEFAULT_STEP_SECONDS: f64 = 300.0;
/// Maximum number of samples that are sent.
const MAX_SAMPLES: usize = 50_000;

/// A point in time (`google.protobuf.Timestamp`).
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SampleTime {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

/// A sample (`commonproto.Item`).
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Observation {
    #[prost(message, optional, tag = "1")]
    pub(super) timestamp: Option<SampleTime>,
    #[prost(double, tag = "2")]
    pub(super) value: f64,
    #[prost(string, tag = "3")]
    pub(super) metric_name: String,
}

/// The request of [`GET_PREDICT_METRIC`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PredictRequest {
    /// How many steps ahead.
    #[prost(uint64, tag = "1")]
    pub(super) forecast_horizon: u64,
    #[prost(message, repeated, tag = "2")]
    pub(super) observations: Vec<Observation>,
}

/// The response of [`GET_PREDICT_METRIC`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PredictResponse {
    #[prost(int64, tag = "1")]
    pub(super) result: i64,
}

impl Parameters {
    fn step_seconds(&self) -> f64 {
        match seconds(&self.step) {
            step if step > 0.0 => step,
            _ => DEFAULT_STEP_SECONDS,
        }
    }

    /// How many steps the prediction looks ahead.
    pub(super) fn steps_ahead(&self) -> u64 {
        (seconds(&self.horizon) / self.step_seconds()).max(0.0).floor() as u64
    }

    /// The URL of the query for the samples of the past.
    pub(super) fn history_url(&self, now: Timestamp) -> String {
        let end = now.as_millisecond() as f64 / 1e3;
        let start = end - seconds(&self.history).max(0.0);
        let (server, query) = (self.address.trim_end_matches('/'), escaped(&self.query));
        let step = self.step_seconds();
        format!("{server}/api/v1/query_range?query={query}&start={start:.3}&end={end:.3}&step={step}")
    }
}

/// The samples in the result of a query.
pub(super) fn observations(status: u16, body: &[u8], metric: &str) -> Result<Vec<Observation>, ScalerError> {
    if status != 200 {
        bail!("Prometheus returned {status}: {}", error_field(body, "/error"));
    }
    let answer = json(body)?;
    let result = answer.pointer("/data/result");
    let Some(series) = result.and_then(Value::as_array) else {
        bail!("the answer of Prometheus has {} at data.result instead of a list", kind(result));
    };
    let samples = series.iter().filter_map(|one| one.get("values").and_then(Value::as_array)).flatten();
    let (mut all, mut is_newest_a_number) = (Vec::new(), true);
    for sample in samples {
        let time = sample.get(0).and_then(Value::as_f64);
        let value = sample.get(1).and_then(Value::as_str).and_then(|text| text.parse::<f64>().ok());
        let (Some(time), Some(value)) = (time, value) else {
            bail!("the answer of Prometheus has a sample without time or number");
        };
        // A `NaN` of the past, e.g. of a division by zero, would otherwise fail all reads until it leaves the time window.
        is_newest_a_number = value.is_finite();
        if !is_newest_a_number {
            continue;
        }
        if all.len() == MAX_SAMPLES {
            bail!("the query has more than {MAX_SAMPLES} samples: increase queryStep");
        }
        let nanos = ((time - time.floor()) * 1e9) as i32;
        let timestamp = Some(SampleTime { seconds: time.floor() as i64, nanos });
        all.push(Observation { timestamp, value, metric_name: metric.to_owned() });
    }
    if !is_newest_a_number {
        bail!("the newest sample of the query is NaN or infinite");
    }
    if all.is_empty() {
        bail!("the query has no samples in the time window");
    }
    Ok(all)
}
