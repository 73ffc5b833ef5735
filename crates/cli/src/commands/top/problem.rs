//! What is wrong with autoscalers, by cause.

use std::collections::HashMap;

use api::autoscaling::v2::HorizontalPodAutoscalerCondition;
use api::decisions::{DecisionMode, DecisionRecord};
use api::diagnosis::{Concern, diagnose};
use cluster::AutoscalerKind;
use engine::explain::plain;
use engine::normalize::ScalingLimit;
use engine::{Course, ScaleOutcome};
use jiff::Timestamp;
use serde::Serialize;

use crate::commands::get::Entry;
use crate::live::decisions::{role_of, silent};

/// A problem and the autoscalers that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem {
    /// The cause.
    pub(crate) cause: String,
    /// The effect.
    pub(crate) effect: &'static str,
    /// The message of the first autoscaler.
    pub(crate) detail: String,
    /// What to do.
    pub(crate) remedy: String,
    /// The autoscalers: `shop/hpa/web`.
    pub(crate) autoscalers: Vec<String>,
    /// The severity.
    #[serde(skip)]
    pub(crate) grade: Grade,
}

/// Severity, worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Grade {
    /// Nothing can be decided.
    Failing,
    /// The proposal exceeds the upper bound.
    AtMax,
    /// Decided, although some metrics could not be read.
    Partial,
    /// All is well.
    #[default]
    Fine,
    /// Paused or switched off.
    Paused,
}

/// One problem of one autoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AutoscalerProblem {
    pub(crate) grade: Grade,
    pub(crate) cause: String,
    pub(crate) detail: String,
    pub(crate) remedy: String,
}

impl AutoscalerProblem {
    /// What makes two problems one: differences in names and numbers do not make another cause; another remedy does.
    pub(crate) fn group(&self) -> (Grade, &str, &str) {
        (self.grade, &self.cause, &self.remedy)
    }
}

/// Problems of autoscalers (`shop/hpa/web`) by cause, worst first.
pub(crate) fn by_cause<'a>(problems: impl Iterator<Item = (&'a str, &'a AutoscalerProblem)>) -> Vec<Problem> {
    let mut by_cause: Vec<Problem> = Vec::new();
    let mut places = HashMap::new();
    for (who, problem) in problems {
        let place = *places.entry(problem.group()).or_insert(by_cause.len());
        match by_cause.get_mut(place) {
            Some(known) => known.autoscalers.push(who.to_owned()),
            None => by_cause.push(Problem {
                cause: problem.cause.clone(),
                effect: problem.grade.effect(),
                detail: problem.detail.clone(),
                remedy: problem.remedy.clone(),
                autoscalers: vec![who.to_owned()],
                grade: problem.grade,
            }),
        }
    }
    by_cause.sort_by_key(|problem| (problem.grade, std::cmp::Reverse(problem.autoscalers.len())));
    by_cause
}

/// The problems of one autoscaler.
pub(crate) fn problems_of(entry: &Entry, now: Timestamp) -> Vec<AutoscalerProblem> {
    let conditions = &entry.object.hpa.status.conditions;
    match &entry.record {
        Some(record) if !entry.is_undecided() => by_record(entry.object.kind, record, now),
        // The problems of the last decision are over, and a controller that decides nothing is not silent.
        Some(record) if has_written(record, conditions) => Vec::new(),
        // In mode `off`, these are the conditions of another controller; those of a paused object say whether the pause failed.
        _ => by_conditions(conditions),
    }
}

/// Whether conditions are those that the last decision wrote to the status, which only the active mode does.
fn has_written(record: &DecisionRecord, conditions: &[HorizontalPodAutoscalerCondition]) -> bool {
    let decided = &record.decision.status.conditions;
    let is_decided = |c: &HorizontalPodAutoscalerCondition| {
        decided.iter().any(|ours| {
            ours.kind == c.type_
                && ours.status == c.status
                && ours.reason == c.reason
                && ours.message == c.message
        })
    };
    record.mode == DecisionMode::Active && conditions.iter().all(is_decided)
}

/// The severity of one autoscaler.
pub(crate) fn grade(entry: &Entry, problems: &[AutoscalerProblem]) -> Grade {
    if entry.is_off() {
        return Grade::Paused;
    }
    let disabled = match &entry.record {
        _ if entry.is_paused() => true,
        Some(record) => record.decision.course == Course::Disabled || record.mode == DecisionMode::Off,
        None => entry.object.hpa.status.conditions.iter().any(|c| c.reason == "ScalingDisabled"),
    };
    let worst = problems.iter().map(|problem| problem.grade).min();
    worst.unwrap_or(if disabled { Grade::Paused } else { Grade::Fine })
}

fn by_record(kind: AutoscalerKind, record: &DecisionRecord, now: Timestamp) -> Vec<AutoscalerProblem> {
    let decision = &record.decision;
    let mut found = Vec::new();
    if silent(record, now) {
        found.push(AutoscalerProblem {
            grade: Grade::Failing,
            cause: format!("the {} has stopped deciding", role_of(kind)),
            detail: format!("its last decision was {} ago", api::age::since(Some(record.last), now)),
            remedy: "check its pods, its log, and the holder of its Lease".to_owned(),
        });
    }
    let failing = matches!(decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_));
    // An object that is active is scaled although one of its triggers fails.
    let active = decision.activation.as_ref().is_none_or(|activation| !activation.by.is_empty());
    for cause in diagnose(&record.facts(None)).into_iter().filter(|one| one.concern == Concern::Problem) {
        found.push(AutoscalerProblem {
            grade: if failing || !active { Grade::Failing } else { Grade::Partial },
            cause: cause.sentence,
            detail: cause.link,
            remedy: cause.remedy,
        });
    }
    if failing && found.is_empty() {
        found.push(AutoscalerProblem {
            grade: Grade::Failing,
            cause: "nothing can be decided".to_owned(),
            detail: decision.error.as_ref().map(|error| plain(&error.text)).unwrap_or_default(),
            remedy: String::new(),
        });
    }
    if let Some(normalized) = &decision.normalized
        && normalized.limited.limit == ScalingLimit::TooMany
    {
        found.push(at_max(format!(
            "max is {}, metrics want {}",
            record.spec.max, normalized.stabilized.recommended
        )));
    }
    found
}

fn by_conditions(conditions: &[HorizontalPodAutoscalerCondition]) -> Vec<AutoscalerProblem> {
    let is = |c: &HorizontalPodAutoscalerCondition, kind: &str, status: &str| {
        c.type_ == kind && c.status == status
    };
    let mut found = Vec::new();
    for condition in conditions {
        let failing = is(condition, "AbleToScale", "False")
            || is(condition, "Ready", "False")
            || (is(condition, "ScalingActive", "False") && condition.reason != "ScalingDisabled");
        if failing {
            found.push(AutoscalerProblem {
                grade: Grade::Failing,
                cause: condition.reason.clone(),
                detail: condition.message.clone(),
                remedy: String::new(),
            });
        } else if is(condition, "ScalingLimited", "True") && condition.reason == "TooManyReplicas" {
            found.push(at_max(condition.message.clone()));
        }
    }
    found
}

fn at_max(detail: String) -> AutoscalerProblem {
    AutoscalerProblem {
        grade: Grade::AtMax,
        cause: "more is wanted than max allows".to_owned(),
        detail,
        remedy: "raise maxReplicas if the cluster and the services that the pods use can handle more"
            .to_owned(),
    }
}

impl Grade {
    /// Its effect on the autoscalers.
    pub(crate) fn effect(self) -> &'static str {
        match self {
            Self::Failing => "hold",
            Self::AtMax => "at max",
            Self::Partial => "decide without it",
            Self::Fine | Self::Paused => "",
        }
    }
}
