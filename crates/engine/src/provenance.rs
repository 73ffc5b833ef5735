//! Where the samples of a metric came from. It is recorded with the decision to explain it; nothing is decided by it, except that
//! `maxAgeSeconds` turns samples that are too old into failures before a step.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::CowStr;
use crate::error::RecordedError;
use crate::observe::{MetricSamples, PodSamples};
use crate::pod::Pod;
use crate::request_failure::RequestFailure;
use crate::spec::Metric;
use crate::units::MilliValue;

/// How many of the largest samples are recorded.
const MAX_LARGEST_SAMPLES: usize = 3;

/// Go's zero time, in seconds since 1970. Servers send it for samples whose time they do not know.
const GO_ZERO_SECOND: i64 = -62_135_596_800;

/// Where the samples of one metric came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Provenance {
    /// The API that was queried, such as `external.metrics.k8s.io/v1beta1`, or `trigger` and its type.
    pub api: CowStr,
    /// What took the samples, as the server of the API states it: kubelets, a Prometheus query, another metrics server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Arc<str>>,
    /// When the oldest sample was taken; absent if the time of a sample is not known.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::nanoseconds::serialize")]
    pub oldest: Option<Timestamp>,
    /// When the newest sample was taken; absent if the time of a sample is not known.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::nanoseconds::serialize")]
    pub newest: Option<Timestamp>,
    /// The longest time over which a sample was measured.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::nanoseconds::serialize")]
    pub window: Option<SignedDuration>,
    /// Age of the oldest sample at the decision.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::nanoseconds::serialize")]
    pub age: Option<SignedDuration>,
    /// Number of samples: one per pod, or one per series.
    pub samples: usize,
    /// The largest samples, largest first; empty if there is only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<LargestSample>,
    /// How long the metric took to fetch and evaluate, as `metric_computation_duration_seconds` counts it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::nanoseconds::serialize")]
    pub took: Option<SignedDuration>,
    /// Whether the response was shared with another query.
    pub response: ResponseSharing,
}

/// One of the largest samples of a metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LargestSample {
    /// Name of the pod, or labels of the series as `a=1,b=2`.
    pub name: Arc<str>,
    /// The value.
    pub milli: MilliValue,
}

/// Whether a response was shared with another query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResponseSharing {
    /// The request was sent for this metric.
    #[default]
    Own,
    /// An identical request was under way, and its response was used.
    Joined,
    /// The response to an earlier request was used.
    Cached,
}

/// One series of a metric that has no pods.
#[derive(Clone, Copy, Debug)]
pub struct SeriesSample<'a> {
    /// When it was taken.
    pub at: Option<Timestamp>,
    /// Over which time it was measured.
    pub window: Option<SignedDuration>,
    /// The value.
    pub milli: MilliValue,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

impl Provenance {
    /// Records the samples of pods.
    pub fn record_pods(&mut self, pods: &[Pod], samples: &PodSamples) {
        let named = pods.iter().zip(&samples.by_pod).filter_map(|(pod, sample)| Some((pod, (*sample)?)));
        self.largest = largest(named.map(|(pod, sample)| (sample.milli, pod)), |pod| pod.name.clone());
        let all = samples.by_pod.iter().flatten().chain(&samples.stray);
        self.record_times(all.map(|sample| (known(sample.at), Some(sample.window))));
    }

    /// Records samples without a pod.
    pub fn record_series<'a>(&mut self, series: impl Iterator<Item = SeriesSample<'a>> + Clone) {
        let labelled = series.clone().map(|one| (one.milli, one.labels));
        self.largest = largest(labelled, |labels| shown(labels).into());
        self.record_times(series.map(|one| (one.at.and_then(known), one.window)));
    }

    fn record_times(&mut self, samples: impl Iterator<Item = (Option<Timestamp>, Option<SignedDuration>)>) {
        let (mut oldest, mut newest) = (None, None);
        let mut all_known = true;
        for (at, window) in samples {
            self.samples += 1;
            self.window = self.window.max(window);
            match at {
                Some(at) => {
                    oldest = Some(oldest.map_or(at, |other: Timestamp| other.min(at)));
                    newest = newest.max(Some(at));
                }
                None => all_known = false,
            }
        }
        if all_known {
            (self.oldest, self.newest) = (oldest, newest);
        }
    }

    /// Records the time of the decision, and how long the metric took.
    pub fn decided(&mut self, at: Timestamp, took: SignedDuration) {
        self.age = self.oldest.map(|oldest| at.duration_since(oldest));
        self.took = Some(took);
    }
}

/// The largest samples, largest first; none if there are fewer than two.
fn largest<T>(
    samples: impl Iterator<Item = (MilliValue, T)>,
    name: impl Fn(&T) -> Arc<str>,
) -> Vec<LargestSample> {
    let mut top: Vec<(MilliValue, T)> = Vec::with_capacity(MAX_LARGEST_SAMPLES + 1);
    let mut count = 0_usize;
    for sample in samples {
        count += 1;
        let place = top.partition_point(|(milli, _)| *milli >= sample.0);
        if place < MAX_LARGEST_SAMPLES {
            top.insert(place, sample);
            top.truncate(MAX_LARGEST_SAMPLES);
        }
    }
    if count < 2 {
        return Vec::new();
    }
    top.iter().map(|(milli, one)| LargestSample { name: name(one), milli: *milli }).collect()
}

fn shown(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { "no labels".to_owned() } else { pairs.join(",") }
}

/// A time that the server knew.
fn known(at: Timestamp) -> Option<Timestamp> {
    (at.as_second() > GO_ZERO_SECOND).then_some(at)
}

impl Metric {
    /// Applies `maxAgeSeconds` to samples. `oldest` is the time of the oldest series, for metrics without pods.
    ///
    /// A pod whose sample is too old counts as a pod without a sample, as Kubernetes treats one that was not measured; if no sample
    /// remains, the metric fails. Series are combined into one value, so one that is too old fails the metric.
    pub fn check_age(
        &self,
        now: Timestamp,
        samples: &mut Result<MetricSamples, RecordedError>,
        oldest: Option<Timestamp>,
    ) {
        let Some(most) = self.max_age else { return };
        let too_old = |at: Timestamp| known(at).is_none_or(|at| now.duration_since(at) > most);
        let failed = match samples {
            Ok(MetricSamples::PerPod(samples)) => {
                let newest = samples.by_pod.iter().flatten().chain(&samples.stray).map(|s| s.at).max();
                for slot in &mut samples.by_pod {
                    *slot = slot.filter(|sample| !too_old(sample.at));
                }
                samples.stray.retain(|sample| !too_old(sample.at));
                newest.filter(|at| too_old(*at)).map(|at| age_error(now, known(at), most, "newest"))
            }
            Ok(MetricSamples::Totals(_)) if oldest.is_none_or(too_old) => {
                Some(age_error(now, oldest.and_then(known), most, "oldest"))
            }
            _ => None,
        };
        if let Some(error) = failed {
            *samples = Err(error);
        }
    }
}

fn age_error(now: Timestamp, at: Option<Timestamp>, most: SignedDuration, which: &str) -> RecordedError {
    let most = most.as_secs();
    let age = at.map(|at| now.duration_since(at).as_secs());
    let text = match age {
        Some(age) => format!("the {which} sample is {age} s old, which is more than maxAgeSeconds: {most}"),
        None => format!(
            "the answer does not state when its samples were taken, so maxAgeSeconds: {most} cannot be checked"
        ),
    };
    RecordedError::new(text, Some(RequestFailure::TooOld { age, most }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Sample;
    use crate::pod::{PodPhase, PodTemplate};
    use crate::spec::{MetricId, MetricSource, MetricTarget};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn ago(seconds: i64) -> Timestamp {
        NOW - SignedDuration::from_secs(seconds)
    }

    fn queue(max_age: Option<i64>) -> Metric {
        let id = MetricId { name: "q".into(), shown_selector: "nil".into(), selector: Ok(String::new()) };
        let max_age = max_age.map(SignedDuration::from_secs);
        Metric { max_age, ..Metric::new(MetricSource::External(id), MetricTarget::AverageValue(1000.into())) }
    }

    fn pod(name: &str) -> Pod {
        Pod {
            name: name.into(),
            phase: PodPhase::Running,
            deleting: false,
            started: None,
            ready: None,
            shape: Arc::new(PodTemplate::default()),
        }
    }

    fn sample(seconds: i64, milli: i64) -> Sample {
        Sample { at: ago(seconds), window: SignedDuration::from_secs(15), milli: milli.into() }
    }

    #[test]
    fn the_largest_pods_and_the_times_are_recorded() {
        let pods: Vec<Pod> = ["a", "b", "c", "d", "e"].map(pod).into();
        let by_pod = [Some(3), Some(9), None, Some(7), Some(9)];
        let by_pod = by_pod.iter().zip(1..).map(|(milli, age)| milli.map(|milli| sample(age, milli)));
        let samples = PodSamples { by_pod: by_pod.collect(), stray: vec![sample(60, 100)] };
        let mut from = Provenance::default();
        from.record_pods(&pods, &samples);
        from.decided(NOW, SignedDuration::from_millis(4));
        let largest: Vec<(&str, i64)> = from.largest.iter().map(|l| (&*l.name, l.milli.get())).collect();
        assert_eq!(largest, [("b", 9), ("e", 9), ("d", 7)], "equal values keep the order of the pods");
        assert_eq!((from.samples, from.oldest, from.newest), (5, Some(ago(60)), Some(ago(1))));
        assert_eq!(from.window, Some(SignedDuration::from_secs(15)));
        assert_eq!(from.age, Some(SignedDuration::from_secs(60)));
        assert_eq!(from.took, Some(SignedDuration::from_millis(4)));
    }

    #[test]
    fn one_series_without_a_time_makes_the_time_unknown() {
        let labels = BTreeMap::from([("queue".to_owned(), "orders".to_owned())]);
        let one = SeriesSample { at: Some(ago(5)), window: None, milli: 1.into(), labels: &labels };
        let mut from = Provenance::default();
        from.record_series([one].into_iter());
        assert_eq!(
            (from.oldest, from.largest.len()),
            (Some(ago(5)), 0),
            "one series is not the largest of several"
        );
        let zero = Timestamp::from_second(GO_ZERO_SECOND).unwrap();
        let none = BTreeMap::new();
        for unknown in [None, Some(zero)] {
            let mut from = Provenance::default();
            let other = SeriesSample { at: unknown, labels: &none, ..one };
            from.record_series([one, other].into_iter());
            from.decided(NOW, SignedDuration::ZERO);
            assert_eq!((from.samples, from.oldest, from.newest, from.age), (2, None, None, None));
            let names: Vec<&str> = from.largest.iter().map(|l| &*l.name).collect();
            assert_eq!(names, ["queue=orders", "no labels"]);
        }
    }

    #[test]
    fn totals_that_are_too_old_fail() {
        let totals = || Ok(MetricSamples::Totals(vec![5.into()]));
        let checked = |max_age, oldest| {
            let mut samples = totals();
            queue(max_age).check_age(NOW, &mut samples, oldest);
            samples
        };
        assert_eq!(checked(None, Some(ago(9999))), totals());
        assert_eq!(checked(Some(60), Some(ago(60))), totals());
        assert_eq!(checked(Some(60), Some(NOW + SignedDuration::from_secs(5))), totals());
        let old = checked(Some(60), Some(ago(252))).unwrap_err();
        assert_eq!(old, "the oldest sample is 252 s old, which is more than maxAgeSeconds: 60");
        let unknown = checked(Some(60), None).unwrap_err();
        assert!(unknown.text().contains("does not state when its samples were taken"), "{unknown}");
    }

    #[test]
    fn pods_whose_sample_is_too_old_have_none() {
        let checked = |ages: [i64; 2]| {
            let by_pod = ages.iter().map(|age| Some(sample(*age, 1))).collect();
            let mut samples = Ok(MetricSamples::PerPod(PodSamples { by_pod, stray: vec![sample(500, 1)] }));
            queue(Some(60)).check_age(NOW, &mut samples, None);
            samples
        };
        let kept = PodSamples { by_pod: vec![None, Some(sample(10, 1))], stray: Vec::new() };
        assert_eq!(checked([61, 10]), Ok(MetricSamples::PerPod(kept)));
        let error = checked([300, 400]).unwrap_err();
        assert_eq!(error, "the newest sample is 300 s old, which is more than maxAgeSeconds: 60");
    }
}
