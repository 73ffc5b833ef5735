//! The step: observation in, decision out (docs/spec/hpa.md 3).

use jiff::Timestamp;

use crate::course::scales_to_zero;
use crate::decision::{Course, Decision, ErrorClass, ScaleOutcome, StepError};
pub use crate::detail::DecisionDetail;
use crate::evaluate::{self, Context, MetricFailure};
use crate::failure::SelectionFailure;
use crate::normalize::{self, Normalized, TooManyEntries};
use crate::observe::{Observation, PodSelection, ScaleReadError};
use crate::recommend;
use crate::report::{Condition, Event, condition};
use crate::spec::Tolerances;
use crate::state::{State, TimestampedReplicas};
use crate::units::Replicas;

/// Whether the metrics of a step led to a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricsOutcome {
    Decided,
    Failed,
}

/// Why the target's pods cannot be identified (docs/spec/hpa.md 3.6 step 1). The texts are those of Kubernetes.
#[derive(Debug, thiserror::Error)]
enum SelectionError<'a> {
    #[error("selector is required")]
    Missing,
    #[error("couldn't convert selector into a corresponding internal selector object: {0}")]
    Invalid(&'a str),
    #[error("{text}")]
    Shared { text: String, keys: &'a [String] },
    #[error("HPA {0} was deleted during reconciliation")]
    Deleted(String),
}

impl State {
    /// Decides. If [`Decision::write`] returns a write, the caller carries it out and reports it to [`State::settle`].
    pub fn step(&mut self, now: Timestamp, seen: &Observation) -> Decision {
        self.step_with(now, seen, DecisionDetail::Counts)
    }

    /// [`State::step`] with this level of detail in the record.
    pub fn step_with(&mut self, now: Timestamp, seen: &Observation, detail: DecisionDetail) -> Decision {
        self.step_on(now, seen, None, detail, &mut |_| ())
    }

    /// [`State::step_with`] that calls `evaluated` with the index of each metric once it is evaluated, so that a caller with a
    /// clock can measure each.
    pub fn step_measured(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        detail: DecisionDetail,
        evaluated: &mut dyn FnMut(usize),
    ) -> Decision {
        self.step_on(now, seen, None, detail, evaluated)
    }

    /// A step that takes the given path, or the one that its observation leads to.
    pub(crate) fn step_on(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        course: Option<Course>,
        detail: DecisionDetail,
        evaluated: &mut dyn FnMut(usize),
    ) -> Decision {
        let mut decision = begin(now, seen);
        if let (Some(course), Ok(_)) = (course, &seen.scale) {
            decision.course = course;
        }
        let scale = match &seen.scale {
            Ok(scale) => scale,
            Err(failure) => {
                no_scale(&mut decision, seen, failure);
                return decision;
            }
        };
        got_scale(&mut decision, now);
        let current = scale.spec_replicas;
        if self.recommendations.is_empty() {
            self.recommendations.push(TimestampedReplicas { value: current, at: now });
        }
        match decision.course {
            Course::NoScale(_) | Course::Activity => {}
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
                let outcome = self.by_metrics(now, seen, current, detail, &mut decision, evaluated);
                if outcome == MetricsOutcome::Failed {
                    return decision;
                }
            }
        }
        if decision.desired == current || decision.course == Course::Disabled {
            decision.desired = current;
            decision.outcome = ScaleOutcome::Kept;
            decision.store(now, false);
        } else {
            decision.outcome = ScaleOutcome::Pending;
        }
        decision
    }

    /// Decides by metrics (docs/spec/hpa.md 3.5).
    fn by_metrics(
        &mut self,
        now: Timestamp,
        seen: &Observation,
        current: Replicas,
        detail: DecisionDetail,
        decision: &mut Decision,
        evaluated: &mut dyn FnMut(usize),
    ) -> MetricsOutcome {
        if let Err(error) = check_selection(seen) {
            error.report(decision);
            decision.status.metrics = None;
            let (text, class) = (error.to_string(), ErrorClass::Internal);
            decision.give_up(seen, &StepError { text, class });
            return MetricsOutcome::Failed;
        }
        let spec = &seen.spec;
        decision.selected = Some(seen.pods.len());
        let context = Context {
            now,
            seen,
            config: &seen.config,
            tolerances: decision.tolerances,
            current,
            status_replicas: seen.scale.as_ref().map_or(Replicas::ZERO, |s| s.status_replicas),
            detail,
        };
        for (index, metric) in spec.metrics.iter().enumerate() {
            let evaluation = evaluate::evaluate(&context, index, metric);
            if let Err(failure) = &evaluation.result {
                decision.events.push(Event::warning(failure.reason.clone(), failure.text.clone()));
            }
            decision.evaluations.push(evaluation);
            evaluated(index);
        }
        decision.status.metrics = Some(
            decision.evaluations.iter().map(|e| e.result.as_ref().ok().map(|p| p.reading.clone())).collect(),
        );
        let mut combined = recommend::combine(
            now,
            current,
            spec.aggregator,
            &spec.metrics,
            &decision.evaluations,
            &mut self.last_good,
        );
        if let Some(error) = combined.error.as_mut().filter(|_| !seen.config.profile().keeps_error_class) {
            error.class = ErrorClass::Internal;
        }
        // Without metrics Kubernetes goes on with a recommendation of zero.
        let recommendation = match combined.result {
            Ok(recommendation) => {
                decision.status.set(
                    now,
                    condition::SCALING_ACTIVE,
                    true,
                    "ValidMetricFound",
                    format!(
                        "the HPA was able to successfully calculate a replica count from {}",
                        recommendation.metric
                    ),
                );
                Some(recommendation)
            }
            Err(Some(failure)) => {
                inactive(decision, &failure);
                let none = || StepError { text: String::new(), class: ErrorClass::Internal };
                decision.give_up(seen, &combined.error.unwrap_or_else(none));
                return MetricsOutcome::Failed;
            }
            Err(None) => {
                no_metrics(decision);
                None
            }
        };
        decision.error = combined.error;
        let wanted = recommendation.as_ref().map_or(Replicas::ZERO, |r| r.replicas.max(Replicas::ZERO));
        decision.reason = match wanted.cmp(&current) {
            std::cmp::Ordering::Greater => {
                format!("{} above target", recommendation.as_ref().map_or("", |r| &r.metric))
            }
            std::cmp::Ordering::Less => "All metrics below target".into(),
            std::cmp::Ordering::Equal => String::new(),
        };
        decision.recommendation = recommendation;
        let normalized =
            normalize::normalize(self, now, &seen.config, spec, current, wanted, &mut decision.status);
        decision.desired = normalized.limited.replicas;
        // A scale-up from zero goes at least to the lower bound (docs/spec/hpa.md 3.5 step 6).
        if current == 0 && spec.min != 0 && decision.desired < spec.min {
            decision.desired = spec.min;
            if decision.reason.is_empty() {
                decision.reason = BELOW_MIN.into();
            }
        }
        let next =
            normalize::next_change(self, now, &seen.config, spec, current, decision.desired, &normalized);
        let (next, next_unknown) = match next {
            Ok(next) => (next, false),
            Err(TooManyEntries) => (None, true),
        };
        decision.normalized = Some(Normalized { next, next_unknown, ..normalized });
        MetricsOutcome::Decided
    }
}

const BELOW_MIN: &str = "Current number of replicas below Spec.MinReplicas";

pub(crate) fn begin(now: Timestamp, seen: &Observation) -> Decision {
    let course = match &seen.scale {
        Ok(scale) => Course::choose(&seen.config, &seen.spec, &seen.status, scale),
        Err(failure) => Course::NoScale(failure.clone()),
    };
    Decision {
        at: now,
        scale: seen.scale.as_ref().ok().cloned(),
        course,
        activation: None,
        selected: None,
        selection: None,
        tolerances: Tolerances::of(&seen.spec, &seen.config),
        evaluations: Vec::new(),
        provenance: Vec::new(),
        recommendation: None,
        normalized: None,
        desired: Replicas::ZERO,
        reason: String::new(),
        outcome: ScaleOutcome::Failed,
        status: seen.status.clone(),
        events: Vec::new(),
        late_events: Vec::new(),
        error: None,
        logged: Vec::new(),
    }
}

/// Sets the condition for a scale that was read.
pub(crate) fn got_scale(decision: &mut Decision, now: Timestamp) {
    decision.status.set(
        now,
        condition::ABLE_TO_SCALE,
        true,
        "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
    );
}

/// The scale could not be read (docs/spec/hpa.md 3.2): only conditions change.
pub(crate) fn no_scale(decision: &mut Decision, seen: &Observation, failure: &ScaleReadError) {
    let (text, error, class) = match failure {
        ScaleReadError::InvalidApiVersion(e) => {
            (e.as_str(), format!("invalid API version in scale target reference: {e}"), ErrorClass::Spec)
        }
        ScaleReadError::UnknownKind(e) => (
            e.as_str(),
            format!("unable to determine resource for scale target reference: {e}"),
            ErrorClass::Internal,
        ),
        ScaleReadError::Query(_) => (
            failure.text(),
            format!("failed to query scale subresource for {}: {}", seen.spec.reference(), failure.text()),
            ErrorClass::Internal,
        ),
    };
    decision.events.push(Event::warning("FailedGetScale", text));
    decision.status.set(
        decision.at,
        condition::ABLE_TO_SCALE,
        false,
        "FailedGetScale",
        format!("the HPA controller was unable to get the target's current scale: {text}"),
    );
    decision.error = Some(StepError { text: error, class });
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
    if !scales_to_zero(&seen.config, &seen.spec, &seen.status) {
        decision.status.unset(condition::SCALED_TO_ZERO);
    }
}

/// Whether the selector identifies the target's pods (docs/spec/hpa.md 3.6 step 1).
fn check_selection(seen: &Observation) -> Result<(), SelectionError<'_>> {
    let selector = seen.scale.as_ref().map_or("", |s| s.selector.as_str());
    match &seen.selection {
        _ if selector.is_empty() => Err(SelectionError::Missing),
        PodSelection::Ours => Ok(()),
        PodSelection::Invalid(error) => Err(SelectionError::Invalid(error)),
        PodSelection::Shared(keys) => {
            let config = &seen.config;
            let text = config.profile().ambiguity(config.gates, selector, keys);
            Err(SelectionError::Shared { text, keys })
        }
        PodSelection::Deleted => Err(SelectionError::Deleted(seen.spec.key())),
    }
}

impl SelectionError<'_> {
    fn report(&self, decision: &mut Decision) {
        let text = self.to_string();
        let (event, reason, message) = match self {
            Self::Missing => {
                let message = "the HPA target's scale is missing a selector".to_owned();
                ("SelectorRequired", "InvalidSelector", message)
            }
            Self::Invalid(_) => ("InvalidSelector", "InvalidSelector", text.clone()),
            Self::Shared { .. } => ("AmbiguousSelector", "AmbiguousSelector", text.clone()),
            Self::Deleted(_) => return,
        };
        decision.events.push(Event::warning(event, text));
        decision.status.set(decision.at, condition::SCALING_ACTIVE, false, reason, message);
        decision.selection = Some(match self {
            Self::Missing => SelectionFailure::Missing,
            Self::Invalid(_) => SelectionFailure::Invalid,
            Self::Shared { keys, .. } => SelectionFailure::Shared(keys.to_vec()),
            Self::Deleted(_) => return,
        });
    }
}

fn inactive(decision: &mut Decision, failure: &MetricFailure) {
    let message = format!("the HPA was unable to compute the replica count: {}", failure.text);
    decision.status.set(decision.at, condition::SCALING_ACTIVE, false, failure.reason.clone(), message);
}

/// Handles a spec without metrics. The API server never stores one, since its default is cpu at 80 %. If it did,
/// Kubernetes would add a condition without a type and go on without a proposal.
fn no_metrics(decision: &mut Decision) {
    if decision.status.condition("").is_none() {
        decision.status.conditions.push(Condition {
            kind: "".into(),
            status: "".into(),
            since: None,
            reason: "".into(),
            message: "".into(),
            observed_generation: None,
        });
    }
}

impl Decision {
    /// Ends a step whose metrics failed (docs/spec/hpa.md 3.5 step 1): the replica count and the desired count of the
    /// status are kept.
    fn give_up(&mut self, seen: &Observation, error: &StepError) {
        self.desired = self.current();
        self.status.current_replicas = self.current();
        self.late_events.push(Event::warning("FailedComputeMetricsReplicas", error.text.clone()));
        let text = format!(
            "failed to compute desired number of replicas based on listed metrics for {}: {error}",
            seen.spec.reference()
        );
        self.error = Some(StepError { text, class: error.class });
    }
}
