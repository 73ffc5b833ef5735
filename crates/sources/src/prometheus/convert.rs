//! Converts query results to metric values.
//!
//! In strict mode, as prometheus-adapter does, missing values are zero and values outside the integer range become
//! the smallest integer. Otherwise a sample without a value or with `NaN` is ignored, and infinity is an error.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api::provider::{Compat, ContainerUsage, ExternalMetricSample, MetricsError, ResourceUsage};
use jiff::Timestamp;
use quantity::{Format, Quantity};

use super::client::{QueryResponse, QueryValue, VectorSample};

/// A value and its sample time.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredValue {
    /// The value.
    pub value: Quantity,
    /// Sample time; `None` if it is out of range.
    pub time: Option<Timestamp>,
}

/// Why a result cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableResult {
    /// The result is not a vector.
    #[error("expected a vector, got a {0}")]
    NoVector(&'static str),
    /// The value is infinite.
    #[error("the value of {whose} is {value}; check the query for a division by zero")]
    Infinite {
        /// Object or series.
        whose: String,
        /// `+Inf` or `-Inf`.
        value: &'static str,
    },
}

/// Extracted values, and counts of ignored samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extracted<T> {
    /// Extracted values.
    pub found: T,
    /// Number of samples overridden by another with the same relevant labels.
    pub duplicates: usize,
    /// Number of samples without a value.
    pub without_value: usize,
}

/// Samples of a vector result.
fn samples(reply: &QueryResponse) -> Result<&[VectorSample], UnusableResult> {
    match &reply.result {
        QueryValue::Vector(samples) => Ok(samples.as_deref().unwrap_or_default()),
        QueryValue::Scalar(_) => Err(UnusableResult::NoVector("scalar")),
        QueryValue::Matrix => Err(UnusableResult::NoVector("matrix")),
    }
}

/// Values of objects in the order of `names`, matched by a label. The last of several samples wins.
pub fn of_objects(
    reply: &QueryResponse,
    label: &str,
    names: &[&str],
    compat: Compat,
) -> Result<Extracted<Vec<Option<MeasuredValue>>>, UnusableResult> {
    let indices: HashMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
    let mut read = Extracted { found: vec![None; names.len()], duplicates: 0, without_value: 0 };
    for sample in samples(reply)? {
        let name = sample.label(label);
        let Some(slot) = indices.get(name).and_then(|index| read.found.get_mut(*index)) else { continue };
        let number = milli(sample.value, compat, 0)
            .map_err(|value| UnusableResult::Infinite { whose: name.to_owned(), value })?;
        let Some(number) = number else {
            read.without_value += 1;
            continue;
        };
        read.duplicates += usize::from(slot.is_some());
        let value = Quantity::from_milli(number, Format::DecimalSi);
        *slot = Some(MeasuredValue { value, time: time(sample) });
    }
    Ok(read)
}

/// Values of an external metric, one per sample.
pub fn external(
    reply: &QueryResponse,
    metric: &str,
    compat: Compat,
) -> Result<Extracted<Vec<ExternalMetricSample>>, MetricsError> {
    let mut read = Extracted::<Vec<ExternalMetricSample>>::default();
    let all = match &reply.result {
        QueryValue::Vector(Some(samples)) => &samples[..],
        QueryValue::Vector(None) => {
            return Err(MetricsError::Plain(
                "the provided input did not contain vector query results".to_owned(),
            ));
        }
        QueryValue::Scalar(sample) => std::slice::from_ref(sample),
        QueryValue::Matrix => {
            return Err(MetricsError::Plain("encountered an unexpected query result type".to_owned()));
        }
    };
    let scalar = matches!(reply.result, QueryValue::Scalar(_));
    for sample in all {
        let number = milli(sample.value, compat, i64::MIN).map_err(|value| {
            let whose = format!("{metric}{}", shown(sample));
            MetricsError::Internal(format!(
                "unable to fetch metrics: {}",
                UnusableResult::Infinite { whose, value }
            ))
        })?;
        let Some(number) = number else {
            read.without_value += 1;
            continue;
        };
        let labels =
            sample.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        read.found.push(ExternalMetricSample {
            metric: metric.to_owned(),
            labels: (!scalar).then_some(labels),
            timestamp: time(sample),
            window: None,
            value: Quantity::from_milli(number, Format::DecimalSi),
        });
    }
    Ok(read)
}

/// Labels in the syntax of Prometheus.
fn shown(sample: &VectorSample) -> String {
    let labels: Vec<String> =
        sample.labels.iter().map(|(name, value)| format!("{name}={}", api::gotext::quote(value))).collect();
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

/// Usage of containers by pod name, and the time of the oldest sample.
pub type Containers = BTreeMap<String, (Option<Timestamp>, Vec<ContainerUsage>)>;

/// Result for one resource.
#[derive(Clone, Copy, Debug)]
pub struct ResourceResponse<'a> {
    /// `cpu` or `memory`.
    pub resource: &'a str,
    /// Quantity format.
    pub format: Format,
    /// Label that names the object.
    pub label: &'a str,
    /// Label that names the container.
    pub container: &'a str,
    /// The query response.
    pub reply: &'a QueryResponse,
}

/// Usage of pods by name. A pod is omitted unless every resource is known for at least one of its containers.
pub fn pods(parts: &[ResourceResponse<'_>], compat: Compat) -> Result<Containers, UnusableResult> {
    type PodValues = (Option<i64>, BTreeMap<String, Vec<Option<i64>>>, Vec<bool>);
    let mut all: BTreeMap<&str, PodValues> = BTreeMap::new();
    for (index, part) in parts.iter().enumerate() {
        for sample in samples(part.reply)? {
            let Some(number) = usage(sample.value, compat) else { continue };
            let (earliest, containers, known) = all
                .entry(sample.label(part.label))
                .or_insert_with(|| (None, BTreeMap::new(), vec![false; parts.len()]));
            *earliest = Some(earliest.map_or(sample.time, |time| time.min(sample.time)));
            let container = containers
                .entry(sample.label(part.container).to_owned())
                .or_insert_with(|| vec![None; parts.len()]);
            if let (Some(slot), Some(known)) = (container.get_mut(index), known.get_mut(index)) {
                *slot = Some(number);
                *known = true;
            }
        }
    }
    let whole = all.into_iter().filter(|(_, (_, _, known))| known.iter().all(|known| *known));
    Ok(whole
        .map(|(name, (earliest, containers, _))| {
            let containers = containers
                .into_iter()
                .map(|(name, numbers)| ContainerUsage {
                    name: Arc::from(name),
                    usage: written(parts, &numbers, compat),
                })
                .collect();
            (name.to_owned(), (earliest.and_then(timestamp), containers))
        })
        .collect())
}

/// Usage of nodes by name, with the time of the oldest sample. The first sample of a node wins; a node is omitted
/// unless every resource is known.
pub fn nodes(
    parts: &[ResourceResponse<'_>],
    compat: Compat,
) -> Result<BTreeMap<String, (Option<Timestamp>, ResourceUsage)>, UnusableResult> {
    let mut all: BTreeMap<&str, (i64, Vec<Option<i64>>)> = BTreeMap::new();
    for (index, part) in parts.iter().enumerate() {
        for sample in samples(part.reply)? {
            let Some(number) = usage(sample.value, compat) else { continue };
            let (earliest, numbers) =
                all.entry(sample.label(part.label)).or_insert_with(|| (sample.time, vec![None; parts.len()]));
            if let Some(slot @ None) = numbers.get_mut(index) {
                *slot = Some(number);
                *earliest = (*earliest).min(sample.time);
            }
        }
    }
    let whole = all.into_iter().filter(|(_, (_, numbers))| numbers.iter().all(Option::is_some));
    Ok(whole
        .map(|(name, (earliest, numbers))| {
            (name.to_owned(), (timestamp(earliest), written(parts, &numbers, compat)))
        })
        .collect())
}

fn written(parts: &[ResourceResponse<'_>], numbers: &[Option<i64>], compat: Compat) -> ResourceUsage {
    // In strict mode a resource unknown for one container is zero if it is known for another.
    let unknown = if compat.is_strict() { Some(0) } else { None };
    parts
        .iter()
        .zip(numbers)
        .filter_map(|(part, number)| Some((part, number.or(unknown)?)))
        .map(|(part, number)| (Arc::from(part.resource), Quantity::from_milli(number, part.format)))
        .collect()
}

/// Usage in thousandths; never negative.
fn usage(value: Option<f64>, compat: Compat) -> Option<i64> {
    let value =
        value.map(|value| if value < 0.0 && (value.is_finite() || compat.is_strict()) { 0.0 } else { value });
    // Infinite usage counts as unknown.
    milli(value, compat, 0).ok().flatten()
}

/// Truncates to thousandths. `nan` is the recorded result for `NaN`.
fn milli(value: Option<f64>, compat: Compat, nan: i64) -> Result<Option<i64>, &'static str> {
    if compat.is_strict() {
        let thousandths = value.unwrap_or(0.0) * 1000.0;
        return Ok(Some(if thousandths.is_nan() {
            nan
        } else if (-TWO_TO_63..TWO_TO_63).contains(&thousandths) {
            thousandths as i64
        } else {
            i64::MIN
        }));
    }
    match value {
        None => Ok(None),
        Some(value) if value.is_nan() => Ok(None),
        Some(f64::INFINITY) => Err("+Inf"),
        Some(f64::NEG_INFINITY) => Err("-Inf"),
        // Values that are too large saturate.
        Some(value) => Ok(Some((value * 1000.0) as i64)),
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn time(sample: &VectorSample) -> Option<Timestamp> {
    timestamp(sample.time)
}

fn timestamp(milliseconds: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(milliseconds).ok()
}
