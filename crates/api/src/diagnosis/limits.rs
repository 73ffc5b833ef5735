//! Causes that concern limits: windows, scaling policies, bounds, tolerance.

use engine::evaluate::{Arithmetic, NoChangeReason};
use engine::explain::{clock, short_name};
use engine::normalize::{Normalized, ScalingLimit, StabilizationHold};
use engine::spec::{ScalingPolicyType, SelectPolicy};
use engine::{Course, Spec};
use jiff::Timestamp;

use super::words::since;
use super::{Concern, Described, DiagnosisFacts};

/// A cause that concerns a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitCause {
    /// The proposal is above the upper bound.
    AtMaximum {
        /// Upper bound.
        max: i32,
        /// Proposal.
        wanted: i32,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// The proposal is below the lower bound.
    AtMinimum {
        /// Lower bound.
        min: i32,
        /// Proposal.
        wanted: i32,
    },
    /// The count was above the upper bound.
    AboveMaximum(i32),
    /// The count was below the lower bound.
    BelowMinimum(i32),
    /// A stabilization window holds the count.
    Window {
        /// Whether it is the scale-down window.
        down: bool,
        /// The held count.
        replicas: i32,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// A scaling policy limits the step.
    Rate {
        /// Whether it limits a scale-down.
        down: bool,
        /// The count that it allows.
        replicas: i32,
        /// The policy: `4 pods in 15 s`; absent without `behavior`.
        policy: Option<String>,
        /// When it allows more.
        until: Option<Timestamp>,
    },
    /// The direction is disabled.
    Disabled {
        /// Whether it is the scale-down.
        down: bool,
    },
    /// The ratio is within tolerance.
    WithinTolerance(String),
    /// A failed metric blocks the scale-down.
    FailedMetricBlocks,
}

pub(super) fn find(facts: &DiagnosisFacts<'_>) -> Vec<LimitCause> {
    let (spec, decision) = (facts.spec, facts.decision);
    let mut found = Vec::new();
    match decision.course {
        Course::AboveMax => found.push(LimitCause::AboveMaximum(spec.max.get())),
        Course::BelowMin => found.push(LimitCause::BelowMinimum(spec.min.get())),
        _ => {}
    }
    let Some(normalized) = &decision.normalized else {
        let failed = decision.evaluations.iter().filter(|evaluation| evaluation.result.is_err()).count();
        if failed > 0 && failed < decision.evaluations.len() {
            found.push(LimitCause::FailedMetricBlocks);
        }
        return found;
    };
    found.extend(limit(facts, normalized));
    let stabilized = &normalized.stabilized;
    if stabilized.hold != StabilizationHold::None {
        found.push(LimitCause::Window {
            down: stabilized.hold == StabilizationHold::Down,
            replicas: stabilized.replicas.get(),
            until: stabilized.until,
        });
    }
    if found.is_empty() {
        found.extend(tolerance(facts));
    }
    found
}

fn limit(facts: &DiagnosisFacts<'_>, normalized: &Normalized) -> Option<LimitCause> {
    let wanted = normalized.stabilized.recommended.get();
    let (max, min) = (facts.spec.max.get(), facts.spec.min.get());
    match normalized.limited.limit {
        ScalingLimit::Within => None,
        ScalingLimit::TooMany => Some(LimitCause::AtMaximum { max, wanted, since: facts.since }),
        ScalingLimit::TooFew => Some(LimitCause::AtMinimum { min, wanted }),
        ScalingLimit::Up | ScalingLimit::Down => {
            let down = normalized.limited.limit == ScalingLimit::Down;
            if is_disabled(facts.spec, down) {
                return Some(LimitCause::Disabled { down });
            }
            Some(LimitCause::Rate {
                down,
                replicas: normalized.limited.replicas.get(),
                policy: policy(facts.spec, normalized, down),
                until: normalized.next.map(|next| next.at).filter(|at| *at > facts.decision.at),
            })
        }
    }
}

fn is_disabled(spec: &Spec, down: bool) -> bool {
    spec.behavior.as_ref().is_some_and(|behavior| {
        let rules = if down { &behavior.down } else { &behavior.up };
        rules.select == SelectPolicy::Disabled
    })
}

fn policy(spec: &Spec, normalized: &Normalized, down: bool) -> Option<String> {
    let behavior = spec.behavior.as_ref()?;
    let rules = if down { &behavior.down } else { &behavior.up };
    let policy = rules.policies.get(normalized.limited.rate?.policy?)?;
    let unit = match policy.kind {
        ScalingPolicyType::Pods if policy.value == 1 => "pod",
        ScalingPolicyType::Pods => "pods",
        ScalingPolicyType::Percent => "%",
    };
    Some(format!("{} {unit} in {} s", policy.value, policy.period.as_secs()))
}

fn tolerance(facts: &DiagnosisFacts<'_>) -> Option<LimitCause> {
    let decision = facts.decision;
    let winner = decision.recommendation.as_ref()?.winner?;
    let metric = facts.spec.metrics.get(winner)?;
    let proposal = decision.evaluations.get(winner)?.result.as_ref().ok()?;
    let kept = match &proposal.sum {
        Arithmetic::PerPod(sum) => sum.kept,
        Arithmetic::Total(sum) => sum.kept,
        Arithmetic::PerReplica(sum) => sum.kept,
    };
    (kept == Some(NoChangeReason::WithinTolerance) && decision.desired == decision.current())
        .then(|| LimitCause::WithinTolerance(short_name(metric)))
}

impl Described for LimitCause {
    fn id(&self) -> &'static str {
        match self {
            Self::AtMaximum { .. } => "at-maximum",
            Self::AtMinimum { .. } => "at-minimum",
            Self::AboveMaximum(_) => "above-maximum",
            Self::BelowMinimum(_) => "below-minimum",
            Self::Window { down: true, .. } => "scale-down-window",
            Self::Window { down: false, .. } => "scale-up-window",
            Self::Rate { down: true, .. } => "scale-down-rate",
            Self::Rate { down: false, .. } => "scale-up-rate",
            Self::Disabled { down: true } => "scale-down-disabled",
            Self::Disabled { down: false } => "scale-up-disabled",
            Self::WithinTolerance(_) => "within-tolerance",
            Self::FailedMetricBlocks => "failed-metric-blocks-scale-down",
        }
    }

    fn concern(&self) -> Concern {
        match self {
            Self::WithinTolerance(_) => Concern::Normal,
            _ => Concern::Limit,
        }
    }

    fn sentence(&self) -> String {
        let direction = |down: bool| if down { "scale-down" } else { "scale-up" };
        match self {
            Self::AtMaximum { max, wanted, since: at } => {
                format!("at maximum {max}{}; metrics propose {wanted}", since(*at))
            }
            Self::AtMinimum { min, wanted } => format!("at minimum {min}; metrics propose {wanted}"),
            Self::AboveMaximum(max) => format!("the count was above maximum {max}"),
            Self::BelowMinimum(min) => format!("the count was below minimum {min}"),
            Self::Window { down, replicas, until } => {
                let until = until.map(|until| format!(" until {}", clock(until))).unwrap_or_default();
                format!("the {} window holds {replicas}{until}", direction(*down))
            }
            Self::Rate { down, replicas, policy, until } => {
                let policy = match policy {
                    Some(policy) => format!("the {} policy {policy}", direction(*down)),
                    None => "the limit of one step without behavior".to_owned(),
                };
                let until = until.map(|until| format!(" until {}", clock(until))).unwrap_or_default();
                let most = if *down { "at least" } else { "at most" };
                format!("{policy} allows {most} {replicas}{until}")
            }
            Self::Disabled { down } => format!("{} is disabled by behavior", direction(*down)),
            Self::WithinTolerance(metric) => format!("{metric} is within tolerance of its target"),
            Self::FailedMetricBlocks => {
                "a metric that cannot be read may hide load, so the target is not scaled down".to_owned()
            }
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::AtMaximum { .. } => "raise maxReplicas if the cluster and the services that the pods use can handle more",
            Self::AtMinimum { .. } => "lower minReplicas if fewer pods are enough",
            Self::AboveMaximum(_) | Self::BelowMinimum(_) => {
                "nothing: the count goes to the bound at once; change minReplicas or maxReplicas if the bound is wrong"
            }
            Self::Window { down: true, .. } => "shorten behavior.scaleDown.stabilizationWindowSeconds if load does not come back soon",
            Self::Window { down: false, .. } => "shorten behavior.scaleUp.stabilizationWindowSeconds",
            Self::Rate { policy: None, .. } => "set behavior.scaleUp.policies to allow larger steps",
            Self::Rate { down: true, .. } => "raise a policy of behavior.scaleDown.policies",
            Self::Rate { down: false, .. } => "raise a policy of behavior.scaleUp.policies",
            Self::Disabled { .. } => "set selectPolicy to Max or Min",
            Self::WithinTolerance(_) => "nothing: the count fits; behavior.scaleUp.tolerance and scaleDown.tolerance change the band",
            Self::FailedMetricBlocks => "make the failed metric readable, or set onFailure of an Autoscaler's metric",
        }
        .to_owned()
    }
}
