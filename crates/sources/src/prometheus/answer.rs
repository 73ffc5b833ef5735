//! What Prometheus said becomes values.
//!
//! As recorded, missing numbers are zero and numbers that no integer can hold become the smallest one. Unless that is
//! asked for, a sample without a number is no sample, `NaN` neither, and infinity is an error.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api::provider::{Compat, ContainerUsage, ExternalValue, Failure, Usage};
use jiff::Timestamp;
use quantity::{Format, Quantity};

use super::client::{Outcome, Reply, Sample};

/// A value and when it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The value.
    pub value: Quantity,
    /// When it was measured; none if that is no time at all.
    pub time: Option<Timestamp>,
}

/// Why an answer has no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Useless {
    /// Something else than samples.
    #[error("expected a vector, got a {0}")]
    NoVector(&'static str),
    /// A number that cannot be a value.
    #[error("the value of {whose} is {value}; check the query for a division by zero")]
    Infinite {
        /// Of what.
        whose: String,
        /// `+Inf` or `-Inf`.
        value: &'static str,
    },
}

/// What was found in an answer, and what was odd about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read<T> {
    /// What was found.
    pub found: T,
    /// How many samples were of no use because another had the same labels that matter.
    pub duplicates: usize,
    /// How many samples had no number.
    pub without_value: usize,
}

/// The samples of an answer.
fn samples(reply: &Reply) -> Result<&[Sample], Useless> {
    match &reply.result {
        Outcome::Vector(samples) => Ok(samples.as_deref().unwrap_or_default()),
        Outcome::Scalar(_) => Err(Useless::NoVector("scalar")),
        Outcome::Matrix => Err(Useless::NoVector("matrix")),
    }
}

/// Values of objects, in the order of their names: those that a label names. Of several the last counts.
pub fn of_objects(
    reply: &Reply,
    label: &str,
    names: &[&str],
    compat: Compat,
) -> Result<Read<Vec<Option<Measured>>>, Useless> {
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
    let mut read = Read { found: vec![None; names.len()], duplicates: 0, without_value: 0 };
    for sample in samples(reply)? {
        let name = sample.label(label);
        let Some(slot) = places.get(name).and_then(|place| read.found.get_mut(*place)) else { continue };
        let number = milli(sample.value, compat, 0)
            .map_err(|value| Useless::Infinite { whose: name.to_owned(), value })?;
        let Some(number) = number else {
            read.without_value += 1;
            continue;
        };
        read.duplicates += usize::from(slot.is_some());
        let value = Quantity::from_milli(number, Format::DecimalSi);
        *slot = Some(Measured { value, time: time(sample) });
    }
    Ok(read)
}

/// Values of an external metric, one per sample.
pub fn external(reply: &Reply, metric: &str, compat: Compat) -> Result<Read<Vec<ExternalValue>>, Failure> {
    let mut read = Read::<Vec<ExternalValue>>::default();
    let all = match &reply.result {
        Outcome::Vector(Some(samples)) => &samples[..],
        Outcome::Vector(None) => {
            return Err(Failure::Plain("the provided input did not contain vector query results".to_owned()));
        }
        Outcome::Scalar(sample) => std::slice::from_ref(sample),
        Outcome::Matrix => {
            return Err(Failure::Plain("encountered an unexpected query result type".to_owned()));
        }
    };
    let scalar = matches!(reply.result, Outcome::Scalar(_));
    for sample in all {
        let number = milli(sample.value, compat, i64::MIN).map_err(|value| {
            let whose = format!("{metric}{}", shown(sample));
            Failure::Internal(format!("unable to fetch metrics: {}", Useless::Infinite { whose, value }))
        })?;
        let Some(number) = number else {
            read.without_value += 1;
            continue;
        };
        let labels =
            sample.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        read.found.push(ExternalValue {
            metric: metric.to_owned(),
            labels: (!scalar).then_some(labels),
            timestamp: time(sample),
            window: None,
            value: Quantity::from_milli(number, Format::DecimalSi),
        });
    }
    Ok(read)
}

/// Labels as Prometheus writes them.
fn shown(sample: &Sample) -> String {
    let labels: Vec<String> =
        sample.labels.iter().map(|(name, value)| format!("{name}={}", api::gotext::quote(value))).collect();
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

/// What the containers of pods use, and since when at the latest that is known.
pub type Containers = BTreeMap<String, (Option<Timestamp>, Vec<ContainerUsage>)>;

/// An answer of one resource: its name, its format, the label of the object, and the label of the container.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// `cpu` or `memory`.
    pub resource: &'a str,
    /// How it is written.
    pub format: Format,
    /// Which label names the object.
    pub label: &'a str,
    /// Which label names the container.
    pub container: &'a str,
    /// The answer.
    pub reply: &'a Reply,
}

/// What pods use, by name. A pod is left out unless every resource is known of at least one of its containers.
pub fn pods(parts: &[Part<'_>], compat: Compat) -> Result<Containers, Useless> {
    type Pod = (Option<i64>, BTreeMap<String, Vec<Option<i64>>>, Vec<bool>);
    let mut all: BTreeMap<&str, Pod> = BTreeMap::new();
    for (place, part) in parts.iter().enumerate() {
        for sample in samples(part.reply)? {
            let Some(number) = usage(sample.value, compat) else { continue };
            let (earliest, containers, known) = all
                .entry(sample.label(part.label))
                .or_insert_with(|| (None, BTreeMap::new(), vec![false; parts.len()]));
            *earliest = Some(earliest.map_or(sample.time, |time| time.min(sample.time)));
            let container = containers
                .entry(sample.label(part.container).to_owned())
                .or_insert_with(|| vec![None; parts.len()]);
            if let (Some(slot), Some(known)) = (container.get_mut(place), known.get_mut(place)) {
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

/// What nodes use, by name, and when that was. The first sample of a node counts; a node is left out unless every
/// resource is known of it.
pub fn nodes(
    parts: &[Part<'_>],
    compat: Compat,
) -> Result<BTreeMap<String, (Option<Timestamp>, Usage)>, Useless> {
    let mut all: BTreeMap<&str, (i64, Vec<Option<i64>>)> = BTreeMap::new();
    for (place, part) in parts.iter().enumerate() {
        for sample in samples(part.reply)? {
            let Some(number) = usage(sample.value, compat) else { continue };
            let (earliest, numbers) =
                all.entry(sample.label(part.label)).or_insert_with(|| (sample.time, vec![None; parts.len()]));
            if let Some(slot @ None) = numbers.get_mut(place) {
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

fn written(parts: &[Part<'_>], numbers: &[Option<i64>], compat: Compat) -> Usage {
    // As recorded, what is not known of one container is zero if it is known of another.
    let unknown = if compat.is_strict() { Some(0) } else { None };
    parts
        .iter()
        .zip(numbers)
        .filter_map(|(part, number)| Some((part, number.or(unknown)?)))
        .map(|(part, number)| (Arc::from(part.resource), Quantity::from_milli(number, part.format)))
        .collect()
}

/// A number of something that is used: never negative.
fn usage(value: Option<f64>, compat: Compat) -> Option<i64> {
    let value =
        value.map(|value| if value < 0.0 && (value.is_finite() || compat.is_strict()) { 0.0 } else { value });
    // An infinite usage is as good as none.
    milli(value, compat, 0).ok().flatten()
}

/// Thousandths, cut off. `nan` is what is recorded for `NaN`.
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
        // What is too large becomes the largest there is.
        Some(value) => Ok(Some((value * 1000.0) as i64)),
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn time(sample: &Sample) -> Option<Timestamp> {
    timestamp(sample.time)
}

fn timestamp(milliseconds: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(milliseconds).ok()
}
