//! Step 3: one recommendation from the proposals of all metrics, or none (docs/spec/hpa.md 3.6).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::StepError;
use crate::evaluate::{Evaluation, MetricFailure};
use crate::spec::{Aggregator, FailurePolicy, Metric};
use crate::state::TimestampedReplicas;
use crate::units::Replicas;

/// The recommendation of all metrics together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recommendation {
    /// Recommended replicas.
    pub replicas: Replicas,
    /// Index in the spec of the metric that it came from; absent for an average of several.
    pub winner: Option<usize>,
    /// Name of that metric in messages.
    pub metric: String,
    /// Proposals that replaced those of failed metrics, by index in the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub substitutes: Vec<Substitute>,
}

/// A proposal that replaced the one of a failed metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Substitute {
    /// Index of the metric in the spec.
    pub metric: usize,
    /// The replacing proposal; absent if the metric was ignored.
    pub replicas: Option<Replicas>,
    /// The failure policy that applied.
    pub policy: FailurePolicy,
}

/// Result of [`combine`].
pub(crate) struct Combined {
    /// The recommendation, or the failure to report as the reason why there is none.
    pub(crate) result: Result<Recommendation, Option<Box<MetricFailure>>>,
    /// Summary of all failures, also if the other metrics were enough to decide. Its class is that of the first.
    pub(crate) error: Option<StepError>,
}

/// Combines the evaluations of `metrics`. `last_good` holds the last good proposal of metrics with `LastGood`.
pub(crate) fn combine(
    now: Timestamp,
    current: Replicas,
    aggregator: Aggregator,
    metrics: &[Metric],
    evaluations: &[Evaluation],
    last_good: &mut BTreeMap<String, TimestampedReplicas>,
) -> Combined {
    let mut proposals: Vec<(usize, Replicas)> = Vec::with_capacity(evaluations.len());
    let mut substitutes = Vec::new();
    let mut failures: Vec<&Box<MetricFailure>> = Vec::new();
    let mut blocking = 0_usize;
    let mut holding = None;
    let mut named = BTreeMap::new();
    for (index, (metric, evaluation)) in metrics.iter().zip(evaluations).enumerate() {
        let is_kept = matches!(metric.on_failure, FailurePolicy::LastGood(_));
        let identity = is_kept.then(|| identity(metric, evaluation, &mut named));
        match &evaluation.result {
            Ok(proposal) => {
                proposals.push((index, proposal.replicas));
                if let Some(identity) = identity {
                    last_good.insert(identity, TimestampedReplicas { value: proposal.replicas, at: now });
                }
            }
            Err(failure) => {
                failures.push(failure);
                let last = identity.and_then(|identity| last_good.get(&identity).copied());
                match substitute(now, metric.on_failure, last) {
                    FailureEffect::BlockScaleDown => blocking += 1,
                    FailureEffect::Ignore => substitutes.push((index, None)),
                    FailureEffect::Propose(n) => substitutes.push((index, Some(n))),
                    FailureEffect::Hold => holding = holding.or(Some(failure)),
                }
            }
        }
    }
    let total = metrics.len();
    let error = failures.first().map(|first| {
        let text = format!(
            "invalid metrics ({} invalid out of {total}), first error is: {}",
            failures.len(),
            first.summary
        );
        StepError { text, class: first.class }
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

/// The key of a metric's last good proposal. It does not depend on the index, since edits of the spec may move a metric. Metrics of
/// the same name are numbered, such as those of two objects; `named` counts them.
fn identity(metric: &Metric, evaluation: &Evaluation, named: &mut BTreeMap<String, usize>) -> String {
    let name = format!("{}/{}", metric.source.short_name(), evaluation.name);
    let count = named.entry(name.clone()).or_default();
    let identity = format!("{name}/{count}");
    *count += 1;
    identity
}

/// What a failed metric contributes to the recommendation.
enum FailureEffect {
    BlockScaleDown,
    Ignore,
    Propose(Replicas),
    Hold,
}

fn substitute(now: Timestamp, policy: FailurePolicy, last: Option<TimestampedReplicas>) -> FailureEffect {
    match policy {
        FailurePolicy::Kubernetes => FailureEffect::BlockScaleDown,
        FailurePolicy::Hold => FailureEffect::Hold,
        FailurePolicy::Ignore => FailureEffect::Ignore,
        FailurePolicy::Static(replicas) => FailureEffect::Propose(replicas),
        FailurePolicy::LastGood(keep) => match last {
            Some(last) if now.duration_since(last.at) <= keep => FailureEffect::Propose(last.value),
            _ => FailureEffect::BlockScaleDown,
        },
    }
}

/// The recommendation and, unless it is an average, the index of the metric that it came from.
fn aggregate(aggregator: Aggregator, proposals: &[(usize, Replicas)]) -> Option<(Replicas, Option<usize>)> {
    match aggregator {
        Aggregator::Max => {
            let mut best: Option<(usize, Replicas)> = None;
            for &(index, n) in proposals {
                // Kubernetes treats zero as "no proposal yet", so the last of several zeros wins (T42).
                if best.is_none_or(|(_, most)| most == 0 || n > most) {
                    best = Some((index, n));
                }
            }
            best.map(|(index, n)| (n, Some(index)))
        }
        Aggregator::Min => proposals.iter().min_by_key(|(_, n)| *n).map(|&(index, n)| (n, Some(index))),
        Aggregator::Average => {
            let count = i64::try_from(proposals.len()).ok().filter(|n| *n > 0)?;
            let sum: i64 = proposals.iter().map(|(_, n)| i64::from(n.get())).sum();
            let mean = sum.div_euclid(count) + i64::from(sum.rem_euclid(count) > 0);
            let only = proposals.first().filter(|_| count == 1).map(|(index, _)| *index);
            Some((Replicas::new(mean as i32), only))
        }
    }
}
