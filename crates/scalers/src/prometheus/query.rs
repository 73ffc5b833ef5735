//! Builds query URLs and decodes responses, without IO.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::Parameters;
use crate::ScalerError;
use crate::responses::{error_field, kind, problem};
use crate::tree;
use crate::web::escaped;

/// The URL of a query.
pub struct PrometheusAddress {
    /// The URL without the time.
    whenever: Box<str>,
    /// Position of the time in the URL.
    time: usize,
}

impl PrometheusAddress {
    /// Builds the URL from parameters.
    pub fn of(parameters: &Parameters) -> Self {
        let Parameters { server_address, query, namespace, query_parameters, .. } = parameters;
        let server = server_address.trim_end_matches('/');
        let mut url = format!("{server}/api/v1/query?query={}", escaped(query));
        let time = url.len();
        // Writing to a string cannot fail.
        if let Some(namespace) = namespace {
            let _ = write!(url, "&namespace={namespace}");
        }
        for (key, value) in query_parameters.iter().flat_map(|pairs| &pairs.0) {
            let _ = write!(url, "&{}={}", escaped(key), escaped(value));
        }
        Self { whenever: url.into(), time }
    }

    /// The URL at a time.
    pub fn at(&self, now: Timestamp) -> String {
        let (before, after) = self.whenever.split_at_checked(self.time).unwrap_or((&self.whenever, ""));
        [before, "&time=", &api::instant::format(now), after].concat()
    }

    /// The part of the URL that does not depend on the time.
    pub fn whenever(&self) -> &str {
        &self.whenever
    }
}

#[derive(Deserialize)]
struct Body {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    /// Required, so that a response of another server is an error and not an empty result.
    #[serde(deserialize_with = "Option::deserialize")]
    result: Option<Vec<Element>>,
}

#[derive(Deserialize)]
struct Element {
    #[serde(default)]
    value: Vec<Value>,
}

/// The number in a response.
pub fn read(status: u16, body: &[u8], query: &str, ignore_null_values: bool) -> Result<f64, ScalerError> {
    find(status, body, query, ignore_null_values, &mut || ())
}

/// The number in a response; calls `is_empty` if there is none.
pub fn find(
    status: u16,
    body: &[u8],
    query: &str,
    ignore_null_values: bool,
    is_empty: &mut dyn FnMut(),
) -> Result<f64, ScalerError> {
    if !(200..300).contains(&status) {
        bail!(
            "prometheus query api returned error. status: {status} response: {}",
            error_field(body, "/error")
        );
    }
    tree::check_values(body).map_err(|error| scaler_error!("{error}"))?;
    let body: Body = serde_json::from_slice(body)
        .map_err(|error| scaler_error!("prometheus query {query} returned no vector: {}", problem(&error)))?;
    let mut none = |what: &str| {
        is_empty();
        if ignore_null_values {
            return Ok(0.0);
        }
        Err(scaler_error!("prometheus metrics 'prometheus' target may be lost, the {what} is empty"))
    };
    let result = body.data.result.unwrap_or_default();
    let value = match &*result {
        [] => return none("result"),
        [one] => &one.value,
        _ => bail!("prometheus query {query} returned multiple elements"),
    };
    let number = match &**value {
        [] => return none("value list"),
        [_] => bail!("prometheus query {query} didn't return enough values"),
        // As in KEDA: below every activation value, and served as 0.
        [_, Value::Null, ..] => return Ok(-1.0),
        [_, Value::String(number), ..] => number,
        [_, other, ..] => {
            bail!("prometheus query {query} returned {}, which is no sample", kind(Some(other)));
        }
    };
    let value: f64 = number
        .parse()
        .map_err(|_| scaler_error!("prometheus query {query} returned a text which is no number"))?;
    if value.is_finite() {
        return Ok(value);
    }
    if ignore_null_values {
        return Ok(0.0);
    }
    Err(scaler_error!("prometheus query returns {number}"))
}
