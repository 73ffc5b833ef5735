//! The step itself, and what must be remembered between steps.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::act::WriteError;
use crate::decision::{Class, Course, Decision, Failure, Outcome, action, label};
use crate::evaluate::{self, Context, MetricFailure};
use crate::normalize;
use crate::observe::{Observation, ScaleFailure, Selection};
use crate::recommend::{self, Recommendation};
use crate::report::{Condition, Event, Status, condition};
use crate::spec::{Behavior, Tolerances};

/// What one autoscaler must remember. A plain value: save it, load it, and nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    pub(crate) recommendations: Vec<Stamped>,
    pub(crate) ups: Vec<Change>,
    pub(crate) downs: Vec<Change>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_good: Vec<Option<Stamped>>,
}

/// A count and when it was recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamped {
    pub(crate) value: i32,
    pub(crate) at: Timestamp,
}

/// A change that was made, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) by: i32,
    pub(crate) at: Timestamp,
    #[serde(default)]
    outdated: bool,
}

/// How the write of a decision went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The scale has the new count.
    Done,
    /// It was not tried: this autoscaler only looks.
    DryRun,
    /// It failed for good.
    Failed(WriteError),
}

/// How much a decision records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Counts of pods.
    #[default]
    Counts,
    /// Every pod by name.
    Pods,
}

impl State {
    /// Decides. If [`Decision::write`] asks for a write, carry it out and tell [`State::settle`].
    pub fn step(&mut self, now: Timestamp, seen: &Observation) -> Decision {
        self.step_with(now, seen, Detail::Counts)
    }

    /// [`State::step`], recording as much as `detail` says.
    pub fn step_with(&mut self, now: Timestamp, seen: &Observation, detail: Detail) -> Decision {
        let mut decision = begin(now, seen);
        let scale = match &seen.scale {
            Ok(scale) => scale,
            Err(failure) => {
                no_scale(&mut decision, seen, failure);
                return decision;
            }
        };
        decision.status.set(
            now,
            condition::ABLE_TO_SCALE,
            true,
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        );
        let current = scale.spec_replicas;
        if self.recommendations.is_empty() {
            self.recommendations.push(Stamped { value: current, at: now });
        }
        match decision.course {
            Course::NoScale(_) => {}
            Course::Disabled => disabled(&mut decision, seen),
            Course::AboveMax => {
                decision.desired = seen.spec.max;
                decision.reason = "Current number of replicas above Spec.MaxReplicas".into();
            }
            Course::BelowMin => {
                decision.desired = seen.spec.min;
                decision.reason = BELOW_MIN.into();
            }
            Course::Metrics => {
                if !self.by_metrics(now, seen, current, detail, &mut decision) {
                    return decision;
                }
            }
        }
        if decision.desired == current || decision.course == Course::Disabled {
            decision.desired = current;
            decision.outcome = Outcome::Kept;
            decision.store(now, false);
        } else {
            decision.outcome = Outcome::Pending;
        }
        decision
    }

    /// Metrics decide (spec 3.5). False if they could not.
    fn by_metrics(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        current: i32,
        detail: Detail,
        decision: &mut Decision,
    ) -> bool {
        if let Err(text) = check_selection(decision, seen) {
            decision.status.metrics = None;
            decision.give_up(seen, text);
            return false;
        }
        let spec = &seen.spec;
        let context = Context {
            now,
            seen,
            config: &seen.config,
            tolerances: Tolerances::of(spec, &seen.config),
            current,
            status_replicas: seen.scale.as_ref().map_or(0, |s| s.status_replicas),
            detail: detail == Detail::Pods,
        };
        for (index, metric) in spec.metrics.iter().enumerate() {
            let evaluation = evaluate::evaluate(&context, index, metric);
            if let Err(failure) = &evaluation.result {
                decision.events.push(Event::warning(failure.reason.clone(), failure.text.clone()));
            }
            decision.evaluations.push(evaluation);
        }
        decision.status.metrics = Some(
            decision.evaluations.iter().map(|e| e.result.as_ref().ok().map(|p| p.reading.clone())).collect(),
        );
        let combined = recommend::combine(
            now,
            current,
            spec.aggregator,
            &spec.metrics,
            &decision.evaluations,
            &mut self.last_good,
        );
        let recommendation = match combined.result {
            Ok(recommendation) => {
                decision.status.set(
                    now,
                    condition::SCALING_ACTIVE,
                    true,
                    "ValidMetricFound",
                    format!("the HPA was able to successfully calculate a replica count from {}", recommendation.metric),
                );
                recommendation
            }
            Err(Some(failure)) => {
                inactive(decision, &failure);
                decision.give_up(seen, combined.error.unwrap_or_default());
                return false;
            }
            Err(None) => no_metrics(decision),
        };
        decision.error = combined.error.map(|text| Failure { text, class: Class::Internal });
        let wanted = recommendation.replicas.max(0);
        decision.reason = match wanted.cmp(&current) {
            std::cmp::Ordering::Greater => format!("{} above target", recommendation.metric),
            std::cmp::Ordering::Less => "All metrics below target".into(),
            std::cmp::Ordering::Equal => String::new(),
        };
        decision.recommendation = Some(recommendation);
        let normalized =
            normalize::normalize(self, now, &seen.config, spec, current, wanted, &mut decision.status);
        decision.desired = normalized.limited.replicas;
        decision.normalized = Some(normalized);
        // Leaving zero with a lower bound above it: straight to the bound (spec 3.5 step 6).
        if current == 0 && spec.min != 0 && decision.desired < spec.min {
            decision.desired = spec.min;
            if decision.reason.is_empty() {
                decision.reason = BELOW_MIN.into();
            }
        }
        true
    }

    /// Completes a decision whose write was asked for.
    pub fn settle(&mut self, now: Timestamp, seen: &Observation, decision: &mut Decision, written: Written) {
        if decision.outcome != Outcome::Pending {
            return;
        }
        let (current, desired) = (decision.current(), decision.desired);
        let size = format!("New size: {desired}; reason: {}", decision.reason);
        match written {
            Written::Failed(WriteError { text, .. }) => {
                decision.events.push(Event::warning("FailedRescale", format!("{size}; error: {text}")));
                decision.status.set(
                    now,
                    condition::ABLE_TO_SCALE,
                    false,
                    "FailedUpdateScale",
                    format!("the HPA controller was unable to update the target scale: {text}"),
                );
                decision.status.current_replicas = current;
                if decision.course != Course::Metrics {
                    decision.status.metrics = None;
                }
                let text_out = format!("failed to rescale {}: {text}", seen.spec.reference());
                decision.error = Some(Failure { text: text_out, class: Class::Internal });
                decision.outcome = Outcome::WriteFailed(text);
            }
            Written::DryRun => {
                decision.outcome = Outcome::DryRun;
                decision.store(now, false);
            }
            Written::Done => {
                decision.outcome = Outcome::Scaled;
                decision.status.set(
                    now,
                    condition::ABLE_TO_SCALE,
                    true,
                    "SucceededRescale",
                    format!("the HPA controller was able to update the target scale to {desired}"),
                );
                decision.events.push(Event::normal("SuccessfulRescale", size));
                if let Some(behavior) = &seen.spec.behavior {
                    self.record(now, behavior, current, desired);
                }
                mark_zero(&mut decision.status, now, seen, current, desired);
                decision.store(now, true);
            }
        }
    }

    /// Remembers a change for rate policies (spec 6.5).
    fn record(&mut self, now: Timestamp, behavior: &Behavior, current: i32, desired: i32) {
        let (list, rules) =
            if desired > current { (&mut self.ups, &behavior.up) } else { (&mut self.downs, &behavior.down) };
        let longest = rules.policies.iter().map(|p| p.period).max().unwrap_or(SignedDuration::ZERO);
        let cutoff = before(now, longest);
        let mut free = None;
        for (index, change) in list.iter_mut().enumerate() {
            change.outdated |= change.at < cutoff;
            if change.outdated {
                free = Some(index);
            }
        }
        let by = desired.wrapping_sub(current).wrapping_abs();
        let new = Change { by, at: now, outdated: false };
        match free.and_then(|index| list.get_mut(index)) {
            Some(slot) => *slot = new,
            None => list.push(new),
        }
    }
}

const BELOW_MIN: &str = "Current number of replicas below Spec.MinReplicas";

fn begin(now: Timestamp, seen: &Observation) -> Decision {
    let course = match &seen.scale {
        Ok(scale) => Course::choose(&seen.config, &seen.spec, &seen.status, scale),
        Err(failure) => Course::NoScale(failure.clone()),
    };
    Decision {
        at: now,
        scale: seen.scale.as_ref().ok().cloned(),
        course,
        evaluations: Vec::new(),
        recommendation: None,
        normalized: None,
        desired: 0,
        reason: String::new(),
        outcome: Outcome::Failed,
        status: seen.status.clone(),
        events: Vec::new(),
        late_events: Vec::new(),
        error: None,
        logged: Vec::new(),
    }
}

/// The scale could not be read (spec 3.2): only conditions change.
fn no_scale(decision: &mut Decision, seen: &Observation, failure: &ScaleFailure) {
    let (text, error, class) = match failure {
        ScaleFailure::InvalidApiVersion(e) => {
            (e, format!("invalid API version in scale target reference: {e}"), Class::Spec)
        }
        ScaleFailure::UnknownKind(e) => {
            (e, format!("unable to determine resource for scale target reference: {e}"), Class::Internal)
        }
        ScaleFailure::Query(e) => {
            (e, format!("failed to query scale subresource for {}: {e}", seen.spec.reference()), Class::Internal)
        }
    };
    decision.events.push(Event::warning("FailedGetScale", text.clone()));
    decision.status.set(
        decision.at,
        condition::ABLE_TO_SCALE,
        false,
        "FailedGetScale",
        format!("the HPA controller was unable to get the target's current scale: {text}"),
    );
    decision.error = Some(Failure { text: error, class });
    decision.desired = seen.status.desired_replicas;
}

fn disabled(decision: &mut Decision, seen: &Observation) {
    decision.status.set(
        decision.at,
        condition::SCALING_ACTIVE,
        false,
        "ScalingDisabled",
        "scaling is disabled since the replica count of the target is zero",
    );
    if !seen.config.gates.scale_to_zero {
        decision.status.unset(condition::SCALED_TO_ZERO);
    }
}

/// Whether the target's pods can be told from others (spec 3.6 step 1).
fn check_selection(decision: &mut Decision, seen: &Observation) -> Result<(), String> {
    let selector = seen.scale.as_ref().map_or("", |s| s.selector.as_str());
    let (event, reason, error, message) = match &seen.selection {
        _ if selector.is_empty() => {
            let error = "selector is required".to_owned();
            ("SelectorRequired", "InvalidSelector", error, "the HPA target's scale is missing a selector".to_owned())
        }
        Selection::Ours => return Ok(()),
        Selection::Invalid(e) => {
            let text = format!("couldn't convert selector into a corresponding internal selector object: {e}");
            ("InvalidSelector", "InvalidSelector", text.clone(), text)
        }
        Selection::Shared(keys) => {
            let keys = keys.join(" ");
            let text = format!("pods by selector {selector} are controlled by multiple HPAs: [{keys}]");
            ("AmbiguousSelector", "AmbiguousSelector", text.clone(), text)
        }
    };
    decision.events.push(Event::warning(event, error.clone()));
    decision.status.set(decision.at, condition::SCALING_ACTIVE, false, reason, message);
    Err(error)
}

fn inactive(decision: &mut Decision, failure: &MetricFailure) {
    let message = format!("the HPA was unable to compute the replica count: {}", failure.text);
    decision.status.set(decision.at, condition::SCALING_ACTIVE, false, failure.reason.clone(), message);
}

/// A spec without metrics. The API never stores one (its default is cpu at 80 %); given one all the same, Kubernetes
/// leaves a nameless condition and proposes nothing.
fn no_metrics(decision: &mut Decision) -> Recommendation {
    if decision.status.condition("").is_none() {
        decision.status.conditions.push(Condition {
            kind: "".into(),
            status: "".into(),
            since: None,
            reason: "".into(),
            message: "".into(),
        });
    }
    Recommendation { replicas: -1, winner: None, metric: String::new(), substitutes: Vec::new() }
}

/// Notes whether it was us who scaled to zero (spec 3.7).
fn mark_zero(status: &mut Status, now: Timestamp, seen: &Observation, current: i32, desired: i32) {
    if !seen.config.gates.scale_to_zero {
        status.unset(condition::SCALED_TO_ZERO);
        return;
    }
    let ours = current > 0 && desired == 0 && seen.spec.min == 0 && seen.spec.can_leave_zero();
    let (reason, message) = if ours {
        ("ScaledToZero", "the HPA controller scaled the workload to zero")
    } else {
        ("NotScaledToZero", "the HPA controller did not scale the workload to zero")
    };
    status.set(now, condition::SCALED_TO_ZERO, ours, reason, message);
}

impl Decision {
    /// The status at the end of a step that came to an end (spec 3.8).
    fn store(&mut self, now: Timestamp, rescaled: bool) {
        self.status.current_replicas = self.current();
        self.status.desired_replicas = self.desired;
        if self.course != Course::Metrics {
            self.status.metrics = None;
        }
        if rescaled {
            self.status.last_scale_time = Some(now);
        }
    }

    /// Metrics could not decide (spec 3.5 step 1): the count stays, and so does the desired count of the status.
    fn give_up(&mut self, seen: &Observation, text: String) {
        self.desired = self.current();
        self.status.current_replicas = self.current();
        self.late_events.push(Event::warning("FailedComputeMetricsReplicas", text.clone()));
        let text = format!(
            "failed to compute desired number of replicas based on listed metrics for {}: {text}",
            seen.spec.reference()
        );
        self.error = Some(Failure { text, class: Class::Internal });
    }

    /// Tells how the status write went (`Ok` too when there was nothing to write). Call once, last.
    pub fn status_written(&mut self, name: &str, result: Result<(), String>) {
        if let Err(error) = result {
            self.events.push(Event::warning("FailedUpdateStatus", error.clone()));
            let text = format!("failed to update status for {name}: {error}");
            if matches!(self.outcome, Outcome::Failed | Outcome::WriteFailed(_)) {
                self.logged.push(text);
            } else {
                self.error = Some(Failure { text, class: Class::Internal });
            }
        }
        self.events.append(&mut self.late_events);
    }

    /// `[metric type, action, error]` labels of each metric computed (spec 8).
    pub fn metric_labels<'a>(
        &'a self,
        before: &'a Status,
    ) -> impl Iterator<Item = (&'a str, &'static str, &'static str)> {
        self.evaluations.iter().map(|e| match &e.result {
            // Compared with the count of the previous pass, as in Kubernetes.
            Ok(p) => (e.kind.as_str(), action(p.replicas, before.current_replicas), label(None)),
            Err(f) => (e.kind.as_str(), "none", label(Some(f.class))),
        })
    }
}

/// `now - by`, as far back as time goes.
pub(crate) fn before(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_sub(by).unwrap_or(if by.is_negative() { Timestamp::MAX } else { Timestamp::MIN })
}

/// `at + by`, as far as time goes.
pub(crate) fn after(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX })
}
