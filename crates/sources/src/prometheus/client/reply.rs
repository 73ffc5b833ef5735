//! What Prometheus answers to a query.

use std::borrow::Cow;
use std::sync::Arc;

use http::StatusCode;

use super::Error;
use super::json::{Cursor, Malformed};
use super::number;

/// An answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What came out.
    pub result: Outcome,
    /// What Prometheus warns of, such as answers that are not complete.
    pub warnings: Vec<String>,
    /// What Prometheus remarks, such as `rate` over something that is not a counter.
    pub infos: Vec<String>,
    /// How many bytes it was.
    pub size: usize,
}

/// What came out of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Samples; none: `null` instead of a list.
    Vector(Option<Vec<Sample>>),
    /// One number without labels.
    Scalar(Sample),
    /// Something over time, which is of no use here.
    Matrix,
}

/// Labels, ascending by name.
pub type SampleLabels = Vec<(Arc<str>, Box<str>)>;

/// One number at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Labels, ascending by name.
    pub labels: SampleLabels,
    /// Milliseconds since the epoch; 0 if it was not said.
    pub time: i64,
    /// The number; none for histograms and samples without one.
    pub value: Option<f64>,
}

impl Sample {
    /// The value of a label; empty if it has none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(own, _)| **own == *name).map_or("", |(_, value)| value)
    }
}

/// Whether an answer with this code is in the form of Prometheus; others come from somebody else.
pub(super) fn is_of_prometheus(status: StatusCode) -> bool {
    status.is_success()
        || matches!(
            status,
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::SERVICE_UNAVAILABLE
        )
}

/// What all answers have around their data.
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
    /// Reads an answer; what comes after it does not matter.
    fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut envelope = Self::default();
        Cursor::new(body).object(|cursor, key| envelope.member(&key, cursor))?;
        Ok(envelope)
    }

    /// Takes the value of one member.
    pub(super) fn member(&mut self, key: &str, cursor: &mut Cursor<'a>) -> Result<(), Malformed> {
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

    /// The error that it carries.
    pub(super) fn complaint(&self) -> Option<Error> {
        (self.status == "error")
            .then(|| Error::Prometheus { kind: self.error_type.to_string(), message: self.error.to_string() })
    }
}

fn texts(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Malformed> {
    let mut all = Vec::new();
    cursor.array(|cursor, _| {
        all.push(cursor.string()?.into_owned());
        Ok(())
    })?;
    Ok(all)
}

/// Reads the body of an answer to a query.
pub(super) fn decode(status: StatusCode, body: &[u8]) -> Result<Reply, Error> {
    if !is_of_prometheus(status) {
        return Err(Error::Code { code: status.as_u16(), body: Error::excerpt(body) });
    }
    let garbled = |error: Malformed| Error::garbled(&error, body);
    let envelope = Envelope::read(body).map_err(garbled)?;
    if let Some(complaint) = envelope.complaint() {
        return Err(complaint);
    }
    let Some(data) = envelope.data else {
        return Err(garbled(Malformed { what: "no data" }));
    };
    let result = outcome(data).map_err(garbled)?;
    Ok(Reply { result, warnings: envelope.warnings, infos: envelope.infos, size: body.len() })
}

fn outcome(data: &[u8]) -> Result<Outcome, Malformed> {
    let mut kind = None;
    let mut result = None;
    let mut cursor = Cursor::new(data);
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
    let mut within = Cursor::new(result);
    match kind.as_deref() {
        Some("vector") => vector(&mut within).map(Outcome::Vector),
        Some("scalar") => {
            let (Some(time), value @ Some(_)) = point(&mut within)? else {
                return within.wrong("a scalar without time or value");
            };
            Ok(Outcome::Scalar(Sample { labels: Vec::new(), time, value }))
        }
        Some("matrix") => Ok(Outcome::Matrix),
        _ => cursor.wrong("unknown type of result"),
    }
}

fn vector(cursor: &mut Cursor<'_>) -> Result<Option<Vec<Sample>>, Malformed> {
    if cursor.null() {
        return Ok(None);
    }
    // All samples have the same few label names.
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut samples = Vec::new();
    cursor.array(|cursor, _| {
        // Nothing instead of a sample says nothing.
        if !cursor.null() {
            samples.push(sample(cursor, &mut names)?);
        }
        Ok(())
    })?;
    Ok(Some(samples))
}

fn sample(cursor: &mut Cursor<'_>, names: &mut Vec<Arc<str>>) -> Result<Sample, Malformed> {
    let mut sample = Sample::default();
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

fn labels(cursor: &mut Cursor<'_>, names: &mut Vec<Arc<str>>) -> Result<SampleLabels, Malformed> {
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
            // Only so many are worth a search.
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
        // Of labels given twice the last counts.
        labels.reverse();
        labels.sort_by(|a, b| a.0.cmp(&b.0));
        labels.dedup_by(|later, first| later.0 == first.0);
    }
    Ok(labels)
}

/// `[time, "value"]`. What is missing is missing; what is too much does not matter.
fn point(cursor: &mut Cursor<'_>) -> Result<(Option<i64>, Option<f64>), Malformed> {
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
                    return cursor.wrong("a value that is no number");
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

fn time(cursor: &mut Cursor<'_>) -> Result<i64, Malformed> {
    let text = cursor.number()?;
    number::milliseconds(text).map_or_else(|| cursor.wrong("a time that is none"), Ok)
}
