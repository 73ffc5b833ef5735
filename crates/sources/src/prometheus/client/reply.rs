//! Query responses.

use std::borrow::Cow;
use std::sync::Arc;

use http::StatusCode;

use super::PrometheusError;
use super::json::{JsonCursor, JsonError};
use super::number;

/// A query response.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryResponse {
    /// The result.
    pub result: QueryValue,
    /// Warnings, for example about partial results.
    pub warnings: Vec<String>,
    /// Infos, for example about `rate` of a gauge.
    pub infos: Vec<String>,
    /// Body size in bytes.
    pub size: usize,
}

/// Result of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryValue {
    /// Samples; `None` if the list is `null`.
    Vector(Option<Vec<VectorSample>>),
    /// A number without labels.
    Scalar(VectorSample),
    /// A range vector, which is not used here.
    Matrix,
}

/// Labels, ascending by name.
pub type SampleLabels = Vec<(Arc<str>, Box<str>)>;

/// A sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VectorSample {
    /// Labels, ascending by name.
    pub labels: SampleLabels,
    /// Milliseconds since the epoch; 0 if missing.
    pub time: i64,
    /// Value; `None` for histograms and samples without one.
    pub value: Option<f64>,
}

impl VectorSample {
    /// Value of a label; empty if missing.
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(own, _)| **own == *name).map_or("", |(_, value)| value)
    }
}

/// Whether responses with this status come from Prometheus; others come from a proxy.
pub(super) fn is_of_prometheus(status: StatusCode) -> bool {
    status.is_success()
        || matches!(
            status,
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::SERVICE_UNAVAILABLE
        )
}

/// Envelope of all responses.
#[derive(Debug, Default)]
pub(super) struct Envelope<'a> {
    pub(super) status: Cow<'a, str>,
    pub(super) error_type: Cow<'a, str>,
    pub(super) error: Cow<'a, str>,
    pub(super) data: Option<&'a [u8]>,
    pub(super) warnings: Vec<String>,
    pub(super) infos: Vec<String>,
}

impl<'a> Envelope<'a> {
    /// Parses a response; trailing bytes are ignored.
    fn read(body: &'a [u8]) -> Result<Self, JsonError> {
        let mut envelope = Self::default();
        JsonCursor::new(body).object(|cursor, key| envelope.member(&key, cursor))?;
        Ok(envelope)
    }

    /// Parses the value of one member.
    pub(super) fn member(&mut self, key: &str, cursor: &mut JsonCursor<'a>) -> Result<(), JsonError> {
        match key {
            "data" => self.data = Some(cursor.skip()?),
            _ if cursor.null() => {}
            "status" => self.status = cursor.string()?,
            "errorType" => self.error_type = cursor.string()?,
            "error" => self.error = cursor.string()?,
            "warnings" => self.warnings = texts(cursor)?,
            "infos" => self.infos = texts(cursor)?,
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    }

    /// Error in the envelope.
    fn reported_error(&self) -> Option<PrometheusError> {
        (self.status == "error").then(|| PrometheusError::Prometheus {
            kind: self.error_type.to_string(),
            message: self.error.to_string(),
        })
    }
}

fn texts(cursor: &mut JsonCursor<'_>) -> Result<Vec<String>, JsonError> {
    let mut all = Vec::new();
    cursor.array(|cursor, _| {
        all.push(cursor.string()?.into_owned());
        Ok(())
    })?;
    Ok(all)
}

/// Decodes the body of a query response.
pub(super) fn decode(status: StatusCode, body: &[u8]) -> Result<QueryResponse, PrometheusError> {
    if !is_of_prometheus(status) {
        return Err(PrometheusError::Code { code: status.as_u16(), body: PrometheusError::excerpt(body) });
    }
    let malformed = |error: JsonError| PrometheusError::malformed(&error, body);
    let envelope = Envelope::read(body).map_err(malformed)?;
    if let Some(error) = envelope.reported_error() {
        return Err(error);
    }
    let Some(data) = envelope.data else {
        return Err(malformed(JsonError { what: "no data" }));
    };
    let result = query_value(data).map_err(malformed)?;
    Ok(QueryResponse { result, warnings: envelope.warnings, infos: envelope.infos, size: body.len() })
}

fn query_value(data: &[u8]) -> Result<QueryValue, JsonError> {
    let mut kind = None;
    let mut result = None;
    let mut cursor = JsonCursor::new(data);
    cursor.object(|cursor, key| {
        match &*key {
            "resultType" => kind = Some(cursor.string()?),
            "result" => result = Some(cursor.skip()?),
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    let Some(result) = result else { return cursor.wrong("no result") };
    let mut within = JsonCursor::new(result);
    match kind.as_deref() {
        Some("vector") => vector(&mut within).map(QueryValue::Vector),
        Some("scalar") => {
            let (Some(time), value @ Some(_)) = point(&mut within)? else {
                return within.wrong("a scalar has no time or value");
            };
            Ok(QueryValue::Scalar(VectorSample { labels: Vec::new(), time, value }))
        }
        Some("matrix") => Ok(QueryValue::Matrix),
        _ => cursor.wrong("unknown result type"),
    }
}

fn vector(cursor: &mut JsonCursor<'_>) -> Result<Option<Vec<VectorSample>>, JsonError> {
    if cursor.null() {
        return Ok(None);
    }
    // Label names are interned; all samples have the same few.
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut samples = Vec::new();
    cursor.array(|cursor, _| {
        // `null` elements are ignored.
        if !cursor.null() {
            samples.push(sample(cursor, &mut names)?);
        }
        Ok(())
    })?;
    Ok(Some(samples))
}

fn sample(cursor: &mut JsonCursor<'_>, names: &mut Vec<Arc<str>>) -> Result<VectorSample, JsonError> {
    let mut sample = VectorSample::default();
    cursor.object(|cursor, key| {
        match &*key {
            "metric" => sample.labels = labels(cursor, names)?,
            "value" => {
                let (time, value) = point(cursor)?;
                sample.time = time.unwrap_or(sample.time);
                sample.value = value;
            }
            "histogram" => {
                if !cursor.null() {
                    cursor.array(|cursor, index| {
                        if index == 0 {
                            sample.time = time(cursor)?;
                        } else {
                            cursor.skip()?;
                        }
                        Ok(())
                    })?;
                }
            }
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(sample)
}

fn labels(cursor: &mut JsonCursor<'_>, names: &mut Vec<Arc<str>>) -> Result<SampleLabels, JsonError> {
    let mut labels: SampleLabels = Vec::new();
    if cursor.null() {
        return Ok(labels);
    }
    let mut sorted = true;
    cursor.object(|cursor, key| {
        let value = if cursor.null() { Cow::Borrowed("") } else { cursor.string()? };
        let name = names.iter().find(|name| ***name == *key).cloned();
        let name = name.unwrap_or_else(|| {
            let name: Arc<str> = Arc::from(&*key);
            // A linear search pays off for few names only.
            if names.len() < 32 {
                names.push(Arc::clone(&name));
            }
            name
        });
        sorted &= labels.last().is_none_or(|(last, _)| **last < *name);
        labels.push((name, Box::from(value)));
        Ok(())
    })?;
    if !sorted {
        // The last of duplicate labels wins.
        labels.reverse();
        labels.sort_by(|a, b| a.0.cmp(&b.0));
        labels.dedup_by(|later, first| later.0 == first.0);
    }
    Ok(labels)
}

/// Parses `[time, "value"]`. Missing elements stay `None`, extra ones are ignored.
fn point(cursor: &mut JsonCursor<'_>) -> Result<(Option<i64>, Option<f64>), JsonError> {
    let mut when = None;
    let mut value = None;
    if cursor.null() {
        return Ok((None, None));
    }
    cursor.array(|cursor, index| {
        match index {
            0 => when = Some(time(cursor)?),
            1 => {
                let Some(read) = number::value(&cursor.string()?) else {
                    return cursor.wrong("a value is not a number");
                };
                value = Some(read);
            }
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    Ok((when, value))
}

fn time(cursor: &mut JsonCursor<'_>) -> Result<i64, JsonError> {
    let text = cursor.number()?;
    number::milliseconds(text).map_or_else(|| cursor.wrong("a time is not valid"), Ok)
}
