//! What the status of objects showed while the console ran: the only history there is without Plimsoll's roles.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Value, json};

use super::readings;
use super::rows::id;
use crate::commands::get::Entry;

/// Samples that are kept of one autoscaler: an hour of changes every few seconds.
const MAX_SAMPLES: usize = 900;

/// Samples by id.
#[derive(Default)]
pub(super) struct Samples {
    by_id: HashMap<String, VecDeque<StatusSample>>,
    /// Until when the last sample of each is known to hold, in seconds since 1970.
    until: f64,
}

/// A status, which was the same from `from` to `until`.
#[derive(Clone, Debug, PartialEq)]
struct StatusSample {
    from: f64,
    until: f64,
    current: Option<i32>,
    desired: Option<i32>,
    bounds: (i32, i32),
    values: Vec<Option<f64>>,
}

impl Samples {
    /// Adds the present status of all objects about which no decision can be read, and forgets objects that are gone.
    pub(super) fn add(&mut self, at: f64, entries: &[Entry]) {
        let is_here: HashSet<String> =
            entries.iter().filter(|entry| entry.record.is_none()).map(id).collect();
        self.by_id.retain(|id, _| is_here.contains(id));
        for entry in entries {
            self.change(at, entry);
        }
        self.hold_until(at);
    }

    /// Adds the present status of an object that may have changed, if no decision can be read about it.
    pub(super) fn change(&mut self, at: f64, entry: &Entry) {
        if entry.record.is_some() {
            return;
        }
        let hpa = &entry.object.hpa;
        let counts = entry.status_counts();
        let sample = StatusSample {
            from: at,
            until: at,
            current: counts.map(|(current, _)| current),
            desired: counts.map(|(_, desired)| desired),
            bounds: (hpa.spec.min_replicas.unwrap_or(1), hpa.spec.max_replicas),
            values: readings::of_object(hpa).into_iter().map(|reading| reading.value).collect(),
        };
        let samples = self.by_id.entry(id(entry)).or_default();
        match samples.back_mut() {
            Some(last) if last.is_like(&sample) => last.until = at,
            Some(last) => {
                last.until = last.until.max(self.until);
                samples.push_back(sample);
            }
            None => samples.push_back(sample),
        }
        if samples.len() > MAX_SAMPLES {
            samples.pop_front();
        }
    }

    /// The last sample of each object holds until this time.
    pub(super) fn hold_until(&mut self, at: f64) {
        self.until = at;
    }

    /// Forgets an object.
    pub(super) fn forget(&mut self, id: &str) {
        self.by_id.remove(id);
    }

    /// The points of a chart.
    pub(super) fn points(&self, id: &str) -> Vec<Value> {
        let mut samples: Vec<StatusSample> = self.by_id.get(id).into_iter().flatten().cloned().collect();
        if let Some(last) = samples.last_mut() {
            last.until = last.until.max(self.until);
        }
        let point = |sample: &StatusSample, t: f64| {
            json!({"t": t, "current": sample.current, "desired": sample.desired, "min": sample.bounds.0, "max": sample.bounds.1,
                "values": sample.values, "held": ""})
        };
        samples
            .iter()
            .flat_map(|sample| {
                let last = (sample.until > sample.from).then(|| point(sample, sample.until));
                [Some(point(sample, sample.from)), last].into_iter().flatten()
            })
            .collect()
    }
}

impl StatusSample {
    fn is_like(&self, other: &Self) -> bool {
        (self.current, self.desired, self.bounds, &self.values)
            == (other.current, other.desired, other.bounds, &other.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::objects::sample;

    #[test]
    fn equal_statuses_are_one_sample_and_deleted_objects_are_forgotten() {
        let entry = |replicas: i32| Entry {
            object: sample("web", json!({"currentReplicas": replicas, "desiredReplicas": replicas})),
            record: None,
        };
        let mut samples = Samples::default();
        for (at, replicas) in [(1.0, 2), (2.0, 2), (3.0, 2), (4.0, 3)] {
            samples.add(at, &[entry(replicas)]);
        }
        let points = samples.points("shop/hpa/web");
        let times: Vec<_> = points
            .iter()
            .map(|point| (point["t"].as_f64().unwrap(), point["current"].as_i64().unwrap()))
            .collect();
        assert_eq!(times, [(1.0, 2), (3.0, 2), (4.0, 3)]);
        assert_eq!(points[0]["values"], json!([null]));
        let unwritten = Entry { object: sample("new", json!({})), record: None };
        samples.add(5.0, &[unwritten]);
        assert_eq!(samples.points("shop/hpa/new")[0]["current"], Value::Null, "missing is not zero");
        assert!(samples.points("shop/hpa/web").is_empty());
    }
}
