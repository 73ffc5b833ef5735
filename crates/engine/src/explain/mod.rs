//! Explains a decision: every calculation as text, so that a person can redo it.
//!
//! Nothing is decided here. All numbers come from the [`Decision`].

mod activity;
mod jobs;
mod limits;
mod metric;
mod next;
mod provenance;
mod sentence;
#[cfg(test)]
mod tests;
mod trigger_poll;
mod words;

use std::fmt;

use jiff::SignedDuration;
use serde::Serialize;

pub use sentence::sentence;
pub use trigger_poll::{explain_trigger_poll, sentence_with_triggers, targets};
pub use words::{clock, plain, plural, short_name, show_times_in, zone, zone_name};

use crate::decision::{Course, Decision, ScaleOutcome};
use crate::evaluate::{Arithmetic, Evaluation, PodCounts};
use crate::normalize::ScalingLimit;
use crate::report::condition;
use crate::spec::{Aggregator, FailurePolicy, Metric, Spec};

/// The explanation of a decision: a headline, then rows of label and text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Object, time and outcome.
    pub headline: String,
    /// Details in the order of the pipeline.
    pub rows: Vec<Row>,
}

/// One row of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Topic of the row; empty if it is that of the row before.
    pub label: String,
    /// Text of the row.
    pub text: String,
    /// Whether this row decided the count.
    pub decided: bool,
}

/// Explains `decision`. `kind` is the short kind of the object (`hpa`), `period` the time between two decisions.
pub fn explain(kind: &str, spec: &Spec, decision: &Decision, period: SignedDuration) -> Explanation {
    let mut rows = Rows::default();
    target(&mut rows, spec, decision);
    activity::rows(&mut rows, decision);
    if decision.course == Course::Metrics {
        pods(&mut rows, spec, decision);
        metric::rows(&mut rows, spec, decision);
        proposal(&mut rows, spec, decision);
    }
    limits::rows(&mut rows, spec, decision);
    outcome(&mut rows, decision);
    rows.add("next", next::text(spec, decision, period));
    Explanation { headline: headline(kind, spec, decision), rows: rows.0 }
}

/// Rows in the making.
#[derive(Default)]
struct Rows(Vec<Row>);

impl Rows {
    fn add(&mut self, label: &str, text: impl Into<String>) {
        self.push(label, text, false);
    }

    fn push(&mut self, label: &str, text: impl Into<String>, decided: bool) {
        let same_topic =
            self.0.iter().rev().find(|row| !row.label.is_empty()).is_some_and(|row| row.label == label);
        let label = if same_topic { String::new() } else { label.to_owned() };
        self.0.push(Row { label, text: plain(&text.into()), decided });
    }
}

/// Which part of the pipeline decided the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decider {
    Target,
    Activity,
    Metric,
    Proposal,
    Window,
    Limit,
    Bounds,
}

fn decider(decision: &Decision) -> Decider {
    match (&decision.course, &decision.normalized) {
        (Course::NoScale(_) | Course::Disabled, _) => Decider::Target,
        (Course::Activity, _) => Decider::Activity,
        (Course::AboveMax | Course::BelowMin, _) => Decider::Bounds,
        (Course::Metrics, None) => Decider::Metric,
        (Course::Metrics, Some(n)) if decision.desired != n.limited.replicas => Decider::Bounds,
        (Course::Metrics, Some(n)) if n.limited.replicas != n.stabilized.replicas => match n.limited.limit {
            ScalingLimit::TooFew | ScalingLimit::TooMany => Decider::Bounds,
            _ => Decider::Limit,
        },
        (Course::Metrics, Some(n)) if n.stabilized.replicas != n.stabilized.recommended => Decider::Window,
        (Course::Metrics, Some(n)) if n.stabilized.recommended == decision.current() => Decider::Metric,
        (Course::Metrics, Some(_)) => Decider::Proposal,
    }
}

fn headline(kind: &str, spec: &Spec, decision: &Decision) -> String {
    let (from, to) = (decision.current(), decision.desired);
    let wanted = decision.recommendation.as_ref().map(|r| r.replicas);
    let what = match &decision.outcome {
        ScaleOutcome::Failed if matches!(decision.course, Course::NoScale(_)) => {
            "could not decide: the target's scale cannot be read".to_owned()
        }
        ScaleOutcome::Failed => format!("stayed at {from}: metrics could not decide"),
        ScaleOutcome::WriteFailed(_) => format!("stayed at {from}: the change to {to} could not be written"),
        ScaleOutcome::Scaled | ScaleOutcome::Pending | ScaleOutcome::DryRun => {
            let verb = match decision.outcome {
                ScaleOutcome::Scaled => "scaled",
                ScaleOutcome::DryRun => "would scale (dry run)",
                _ => "scales",
            };
            match wanted.filter(|w| *w != to) {
                Some(wanted) => format!("{verb} {from} → {to} (wanted {wanted})"),
                None => format!("{verb} {from} → {to}"),
            }
        }
        ScaleOutcome::Kept => {
            match (&decision.course, wanted.filter(|w| *w != from), &decision.recommendation) {
                (Course::Disabled, ..) => {
                    "paused: the target was scaled to zero by another client".to_owned()
                }
                (_, Some(wanted), Some(r)) => {
                    let name = r
                        .winner
                        .and_then(|w| spec.metrics.get(w))
                        .map_or_else(|| r.metric.clone(), short_name);
                    format!("stayed at {from} although {name} proposes {wanted}")
                }
                _ => format!("stayed at {from}"),
            }
        }
    };
    format!("{kind}/{} in {} · {} · {what}", spec.name, spec.namespace, clock(decision.at))
}

fn target(rows: &mut Rows, spec: &Spec, decision: &Decision) {
    let decided = decider(decision) == Decider::Target;
    let name = format!("{}/{}", spec.target.kind, spec.target.name);
    if let Course::NoScale(failure) = &decision.course {
        rows.push("target", format!("{name}: {}", failure.text()), decided);
        return;
    }
    let Some(scale) = &decision.scale else { return };
    let mut text = format!("{name}, {}", plural(i64::from(scale.spec_replicas.get()), "replica"));
    if scale.status_replicas != scale.spec_replicas {
        text += &format!(" desired, {} exist", scale.status_replicas);
    }
    if let Some(selected) = decision.selected {
        text += &format!("; selector {} matches {}", scale.selector, plural(selected as i64, "pod"));
    }
    if decision.course == Course::Disabled {
        text += "; another client scaled it to zero, which pauses this autoscaler until it is scaled up";
    }
    rows.push("target", text, decided);
}

/// Number of pods in each group: once if all metrics classified them alike, else by metric.
fn pods(rows: &mut Rows, spec: &Spec, decision: &Decision) {
    let tally = |evaluation: &Evaluation| match &evaluation.result {
        Ok(p) => match &p.sum {
            Arithmetic::PerPod(sum) => Some(sum.pods),
            _ => None,
        },
        Err(failure) => failure.pods,
    };
    let each: Vec<(&Metric, PodCounts)> = decision
        .evaluations
        .iter()
        .zip(&spec.metrics)
        .filter_map(|(evaluation, metric)| Some((metric, tally(evaluation)?)))
        .collect();
    let Some((_, first)) = each.first() else { return };
    if each.iter().all(|(_, counts)| counts == first) {
        rows.add("pods", pod_counts(*first));
        return;
    }
    for (metric, counts) in each {
        rows.add("pods", format!("{}: {}", short_name(metric), pod_counts(counts)));
    }
}

fn pod_counts(counts: PodCounts) -> String {
    let PodCounts { ready, unready, missing, ignored, stray } = counts;
    let mut text = format!(
        "{ready} counted · {unready} not yet ready · {missing} without metrics · {ignored} ignored (failed or terminating)"
    );
    if stray > 0 {
        text += &format!(" · {} of pods that are gone", plural(stray, "sample"));
    }
    text
}

fn proposal(rows: &mut Rows, spec: &Spec, decision: &Decision) {
    let decided = decider(decision) == Decider::Proposal;
    let Some(recommendation) = &decision.recommendation else {
        if !decision.evaluations.is_empty() {
            rows.add(
                "proposal",
                "none: a metric that cannot be read may hide load, so the target is not scaled down",
            );
        }
        return;
    };
    for substitute in &recommendation.substitutes {
        let name = spec.metrics.get(substitute.metric).map(short_name).unwrap_or_default();
        let text = match (substitute.policy, substitute.replicas) {
            (_, None) | (FailurePolicy::Ignore, _) => {
                format!("{name} cannot be read and is ignored (onFailure: ignore)")
            }
            (FailurePolicy::LastGood(keep), Some(n)) => {
                format!(
                    "{name} cannot be read: its last proposal {n} stands for up to {}",
                    words::seconds(keep)
                )
            }
            (FailurePolicy::Static(_), Some(n)) => {
                format!("{name} cannot be read: {n} stands in (onFailure: static)")
            }
            (_, Some(n)) => format!("{name} cannot be read: {n} stands in"),
        };
        rows.add("proposal", text);
    }
    let rule = match spec.aggregator {
        Aggregator::Max => "the highest wins",
        Aggregator::Min => "the lowest wins",
        Aggregator::Average => "their mean, rounded up, wins",
    };
    let n = recommendation.replicas;
    let each: Vec<String> = decision
        .evaluations
        .iter()
        .zip(&spec.metrics)
        .filter_map(|(e, m)| e.result.as_ref().ok().map(|p| format!("{} {}", short_name(m), p.replicas)))
        .collect();
    let text = match (spec.metrics.len(), recommendation.winner.and_then(|w| spec.metrics.get(w))) {
        (1, Some(metric)) => format!("{n}, from {} (the only metric)", short_name(metric)),
        (_, Some(metric)) => format!("{n}, from {} ({}; {rule})", short_name(metric), each.join(", ")),
        (_, None) => format!("{n} ({}; {rule})", each.join(", ")),
    };
    rows.push("proposal", text, decided);
}

fn outcome(rows: &mut Rows, decision: &Decision) {
    let (from, to) = (decision.current(), decision.desired);
    let limited =
        decision.status.condition(condition::SCALING_LIMITED).filter(|_| decision.normalized.is_some());
    let limited = limited
        .filter(|c| c.status == "True")
        .map(|c| format!("; ScalingLimited=True ({})", c.reason))
        .unwrap_or_default();
    let text = match &decision.outcome {
        ScaleOutcome::Scaled => format!("replicas {from} → {to}{limited}"),
        ScaleOutcome::Pending => format!("replicas {from} → {to}, about to be written{limited}"),
        ScaleOutcome::DryRun => {
            format!(
                "replicas would go {from} → {to}, but this autoscaler is in dry-run mode (dryRun){limited}"
            )
        }
        ScaleOutcome::Kept => format!("replicas stay at {from}{limited}"),
        ScaleOutcome::WriteFailed(error) => format!("replicas stay at {from}: writing {to} failed: {error}"),
        ScaleOutcome::Failed => match decision.scale {
            Some(_) => format!("replicas stay at {from}"),
            None => "nothing is changed".to_owned(),
        },
    };
    rows.add("outcome", text);
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.headline)?;
        let labels = self.rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(0).max(9) + 2;
        let width = self.rows.iter().filter(|r| r.decided).map(|r| r.text.chars().count()).max().unwrap_or(0);
        for row in &self.rows {
            if row.decided {
                writeln!(f, "{:<labels$}{:<width$}  ← this decided", row.label, row.text)?;
            } else {
                writeln!(f, "{:<labels$}{}", row.label, row.text)?;
            }
        }
        Ok(())
    }
}
