//! Step 3: the proposals of all metrics become one number, or none (docs/spec/hpa.md 3.6).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::evaluate::{Evaluation, MetricFailure};
use crate::explain::short_name;
use crate::spec::{Aggregator, FailurePolicy, Metric};
use crate::state::TimestampedReplicas;

/// One number from all metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recommendation {
    /// How many replicas.
    pub replicas: i32,
    /// Which metric (by its place in the spec) it came from; absent for an average of several.
    pub winner: Option<usize>,
    /// How messages name where it came from.
    pub metric: String,
    /// What stood in for metrics that could not be read, by their place in the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub substitutes: Vec<Substitute>,
}

/// A number that stood in for a metric that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Substitute {
    /// Place of the metric in the spec.
    pub metric: usize,
    /// What stood in; absent if the metric was left out.
    pub replicas: Option<i32>,
    /// By which policy.
    pub policy: FailurePolicy,
}

/// What came of combining.
pub(crate) struct Combined {
    /// The recommendation, or the failure to show as the reason why there is none.
    pub(crate) result: Result<Recommendation, Option<Box<MetricFailure>>>,
    /// Summary of failures, also when the others were enough.
    pub(crate) error: Option<String>,
}

/// Combines the evaluations of `metrics`. `memory` holds the last good proposal of those that want it.
pub(crate) fn combine(
    now: Timestamp,
    current: i32,
    aggregator: Aggregator,
    metrics: &[Metric],
    evaluations: &[Evaluation],
    memory: &mut BTreeMap<String, TimestampedReplicas>,
) -> Combined {
    let mut proposals: Vec<(usize, i32)> = Vec::with_capacity(evaluations.len());
    let mut substitutes = Vec::new();
    let mut failures: Vec<&Box<MetricFailure>> = Vec::new();
    let mut blocking = 0_usize;
    let mut holding = None;
    for (index, (metric, evaluation)) in metrics.iter().zip(evaluations).enumerate() {
        match &evaluation.result {
            Ok(proposal) => {
                proposals.push((index, proposal.replicas));
                if matches!(metric.on_failure, FailurePolicy::LastGood(_)) {
                    memory.insert(
                        identity(metrics, metric, evaluation, index),
                        TimestampedReplicas { value: proposal.replicas, at: now },
                    );
                }
            }
            Err(failure) => {
                failures.push(failure);
                let last = || memory.get(&identity(metrics, metric, evaluation, index)).copied();
                match stand_in(now, metric.on_failure, last) {
                    StandIn::Blocks => blocking += 1,
                    StandIn::LeftOut => substitutes.push((index, None)),
                    StandIn::Number(n) => substitutes.push((index, Some(n))),
                    StandIn::Holds => holding = holding.or(Some(failure)),
                }
            }
        }
    }
    let total = metrics.len();
    let error = failures.first().map(|first| {
        format!(
            "invalid metrics ({} invalid out of {total}), first error is: {}",
            failures.len(),
            first.summary
        )
    });
    proposals.extend(substitutes.iter().filter_map(|(index, n)| Some((*index, (*n)?))));
    proposals.sort_unstable_by_key(|(index, _)| *index);
    let chosen = aggregate(aggregator, &proposals).filter(|_| holding.is_none());
    let (replicas, winner) = match chosen {
        Some((replicas, winner)) if blocking == 0 || replicas >= current => (replicas, winner),
        _ => {
            let shown = holding.or(failures.first().copied());
            return Combined { result: Err(shown.cloned()), error };
        }
    };
    let metric = match winner.and_then(|w| evaluations.get(w)) {
        Some(evaluation) => evaluation.name.clone(),
        None => format!("the average of {} metrics", proposals.len()),
    };
    let substitutes = substitutes
        .into_iter()
        .filter_map(|(index, replicas)| {
            Some(Substitute { metric: index, replicas, policy: metrics.get(index)?.on_failure })
        })
        .collect();
    Combined { result: Ok(Recommendation { replicas, winner, metric, substitutes }), error }
}

/// What a metric is remembered by: edits of the spec may move it to another place. Of several that are the same, each
/// has its number.
fn identity(metrics: &[Metric], metric: &Metric, evaluation: &Evaluation, index: usize) -> String {
    let same = metrics.iter().take(index).filter(|earlier| earlier.source == metric.source).count();
    format!("{}/{}/{same}", short_name(metric), evaluation.name)
}

enum StandIn {
    Blocks,
    LeftOut,
    Number(i32),
    Holds,
}

fn stand_in(
    now: Timestamp,
    policy: FailurePolicy,
    last: impl Fn() -> Option<TimestampedReplicas>,
) -> StandIn {
    match policy {
        FailurePolicy::Kubernetes => StandIn::Blocks,
        FailurePolicy::Hold => StandIn::Holds,
        FailurePolicy::Ignore => StandIn::LeftOut,
        FailurePolicy::Static(replicas) => StandIn::Number(replicas),
        FailurePolicy::LastGood(keep) => match last() {
            Some(last) if now.duration_since(last.at) <= keep => StandIn::Number(last.value),
            _ => StandIn::Blocks,
        },
    }
}

/// The number and, unless it is a mean, the place of the metric it came from.
fn aggregate(aggregator: Aggregator, proposals: &[(usize, i32)]) -> Option<(i32, Option<usize>)> {
    match aggregator {
        Aggregator::Max => {
            let mut best: Option<(usize, i32)> = None;
            for &(index, n) in proposals {
                // Zero counts as "nothing yet", so of several zeros the last is named (T42).
                if best.is_none_or(|(_, most)| most == 0 || n > most) {
                    best = Some((index, n));
                }
            }
            best.map(|(index, n)| (n, Some(index)))
        }
        Aggregator::Min => proposals.iter().min_by_key(|(_, n)| *n).map(|&(index, n)| (n, Some(index))),
        Aggregator::Average => {
            let count = i64::try_from(proposals.len()).ok().filter(|n| *n > 0)?;
            let sum: i64 = proposals.iter().map(|(_, n)| i64::from(*n)).sum();
            let mean = sum.div_euclid(count) + i64::from(sum.rem_euclid(count) > 0);
            let only = proposals.first().filter(|_| count == 1).map(|(index, _)| *index);
            Some((mean as i32, only))
        }
    }
}
