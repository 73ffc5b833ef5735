//! Causes that concern the scale target, its selector, and what else acts on it.

use engine::explain::plural;
use engine::failure::{RequestFailure, SelectionFailure};
use engine::{Course, Decision, ScaleOutcome, ScaleReadError};

use super::words::{names, quoted};
use super::{AccessCause, Concern, Described, DiagnosisFacts};
use crate::decisions::DecisionMode;

/// A cause that concerns the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetCause {
    /// The object is switched off.
    Off,
    /// Another controller acts.
    Shadow,
    /// Decisions are not carried out.
    DryRun,
    /// A ScaledObject is paused by its annotation.
    Paused(Option<i32>),
    /// The target does not exist.
    NotFound(String),
    /// The target's kind has no scale subresource.
    NoScaleSubresource(String),
    /// The kind is unknown to the cluster.
    UnknownKind(String),
    /// `apiVersion` is not a group and a version.
    InvalidApiVersion(String),
    /// Access is denied.
    Denied(AccessCause),
    /// Another error while the scale is read.
    Unreadable {
        /// The target.
        target: String,
        /// The error.
        error: String,
    },
    /// The new count could not be written.
    NotWritten {
        /// The count.
        replicas: i32,
        /// The error.
        error: String,
    },
    /// Another client scaled the target to zero.
    AtZero,
    /// The scale has no selector.
    NoSelector(String),
    /// The selector cannot be parsed.
    InvalidSelector(String),
    /// Several autoscalers select the same pods.
    SharedPods(Vec<String>),
    /// Several autoscalers have the same target.
    Rivals {
        /// The target.
        target: String,
        /// The other autoscalers.
        others: Vec<String>,
    },
    /// The selector also matches pods of other owners.
    SelectorTooWide(Vec<(String, usize)>),
}

pub(super) fn find(facts: &DiagnosisFacts<'_>) -> Vec<TargetCause> {
    let DiagnosisFacts { spec, decision, mode, cluster, .. } = *facts;
    // Nothing is decided about such an object, so that older causes do not matter.
    if mode == DecisionMode::Off || cluster.is_some_and(|cluster| cluster.off) {
        return vec![TargetCause::Off];
    }
    if let Some(paused) = cluster.and_then(|cluster| cluster.paused) {
        return vec![TargetCause::Paused(paused.replicas)];
    }
    let mut found = Vec::new();
    match mode {
        DecisionMode::Shadow => found.push(TargetCause::Shadow),
        DecisionMode::DryRun => found.push(TargetCause::DryRun),
        DecisionMode::Active if decision.outcome == ScaleOutcome::DryRun => found.push(TargetCause::DryRun),
        DecisionMode::Active | DecisionMode::Off => {}
    }
    let target = format!("{} {}/{}", spec.target.kind, spec.namespace, spec.target.name);
    match &decision.course {
        // Without a name nothing was read: the failed reconcile says so.
        Course::NoScale(_) if spec.target.name.is_empty() => {}
        Course::NoScale(error) => found.push(no_scale(&target, error)),
        Course::Disabled => found.push(TargetCause::AtZero),
        _ => {}
    }
    if let ScaleOutcome::WriteFailed(error) = &decision.outcome {
        found.push(TargetCause::NotWritten { replicas: decision.desired.get(), error: error.clone() });
    }
    found.extend(selection(decision, &target));
    if let Some(cluster) = cluster {
        let rivals = cluster.rivals.iter().flatten().map(|rival| rival.name.clone()).collect::<Vec<_>>();
        if !rivals.is_empty() {
            found.push(TargetCause::Rivals { target, others: rivals });
        }
        let others: Vec<_> =
            cluster.other_owners.iter().flatten().map(|one| (one.owner.clone(), one.pods)).collect();
        if !others.is_empty() {
            found.push(TargetCause::SelectorTooWide(others));
        }
    }
    found
}

fn no_scale(target: &str, error: &ScaleReadError) -> TargetCause {
    let target = target.to_owned();
    let query = match error {
        ScaleReadError::InvalidApiVersion(text) => return TargetCause::InvalidApiVersion(quoted(text)),
        ScaleReadError::UnknownKind(_) => return TargetCause::UnknownKind(target),
        ScaleReadError::Query(query) => query,
    };
    match query.failure() {
        Some(RequestFailure::NotFound) => TargetCause::NotFound(target),
        Some(RequestFailure::NotServed) => TargetCause::NoScaleSubresource(target),
        Some(RequestFailure::Forbidden(denied)) => TargetCause::Denied(AccessCause {
            denied: denied.clone(),
            subject: format!("the scale of {target}"),
        }),
        _ => TargetCause::Unreadable { target, error: quoted(query.text()) },
    }
}

fn selection(decision: &Decision, target: &str) -> Option<TargetCause> {
    Some(match decision.selection.as_ref()? {
        SelectionFailure::Missing => TargetCause::NoSelector(target.to_owned()),
        SelectionFailure::Invalid => {
            let selector = decision.scale.as_ref().map_or("", |scale| scale.selector.as_str());
            TargetCause::InvalidSelector(selector.to_owned())
        }
        SelectionFailure::Shared(keys) => TargetCause::SharedPods(keys.clone()),
    })
}

impl TargetCause {
    /// Whether no other cause matters.
    pub(super) fn is_only_one(&self) -> bool {
        matches!(self, Self::Off | Self::Paused(_))
    }
}

impl Described for TargetCause {
    fn id(&self) -> &'static str {
        match self {
            Self::Off => "autoscaler-off",
            Self::Shadow => "shadow-mode",
            Self::DryRun => "dry-run",
            Self::Paused(_) => "paused",
            Self::NotFound(_) => "target-not-found",
            Self::NoScaleSubresource(_) => "no-scale-subresource",
            Self::UnknownKind(_) => "target-kind-unknown",
            Self::InvalidApiVersion(_) => "target-api-version-invalid",
            Self::Denied(cause) => cause.id(),
            Self::Unreadable { .. } => "scale-unreadable",
            Self::NotWritten { .. } => "scale-not-written",
            Self::AtZero => "target-at-zero",
            Self::NoSelector(_) => "selector-missing",
            Self::InvalidSelector(_) => "selector-invalid",
            Self::SharedPods(_) => "pods-of-two-autoscalers",
            Self::Rivals { .. } => "two-autoscalers",
            Self::SelectorTooWide(_) => "selector-too-wide",
        }
    }

    fn concern(&self) -> Concern {
        match self {
            Self::Off | Self::Paused(_) | Self::AtZero => Concern::Limit,
            Self::Shadow | Self::DryRun => Concern::Normal,
            _ => Concern::Problem,
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Off => "it is off: nothing is decided".to_owned(),
            Self::Shadow => "shadow mode: another controller acts, this one only compares".to_owned(),
            Self::DryRun => "dry run: decided and recorded, never written".to_owned(),
            Self::Paused(Some(count)) => format!("paused at {count} by its annotation"),
            Self::Paused(None) => "paused by its annotation".to_owned(),
            Self::NotFound(target) => format!("{target} does not exist"),
            Self::NoScaleSubresource(target) => format!("the kind of {target} has no scale subresource"),
            Self::UnknownKind(target) => format!("the cluster does not know the kind of {target}"),
            Self::InvalidApiVersion(why) => format!("scaleTargetRef.apiVersion is invalid: {why}"),
            Self::Denied(cause) => cause.sentence(),
            Self::Unreadable { target, error } => format!("the scale of {target} cannot be read: {error}"),
            Self::NotWritten { replicas, error } => {
                format!("the count {replicas} could not be written: {}", quoted(error))
            }
            Self::AtZero => {
                "the target was scaled to zero by another client, which disables autoscaling".to_owned()
            }
            Self::NoSelector(target) => format!("the scale of {target} has no selector"),
            Self::InvalidSelector(selector) => {
                format!("the selector of the scale cannot be parsed: {selector}")
            }
            Self::SharedPods(keys) => {
                format!(
                    "several autoscalers select the same pods: {}",
                    names(keys.iter().map(String::as_str))
                )
            }
            Self::Rivals { target, others } => {
                format!("{target} is also scaled by {}", names(others.iter().map(String::as_str)))
            }
            Self::SelectorTooWide(others) => {
                let each: Vec<String> = others
                    .iter()
                    .map(|(owner, pods)| format!("{} of {owner}", plural(*pods, "pod")))
                    .collect();
                format!("the selector also matches {}", names(each.iter().map(String::as_str)))
            }
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Off => "remove the annotation plimsoll.dev/mode, or set it to active",
            Self::Shadow => "start the controller with --mode active when its decisions are right",
            Self::DryRun => "remove dryRun, the annotation plimsoll.dev/mode, or --mode dry-run",
            Self::Paused(_) => "remove the annotations autoscaling.keda.sh/paused and paused-replicas",
            Self::NotFound(_) => "create the target, or correct scaleTargetRef.name and the namespace",
            Self::NoScaleSubresource(_) => {
                "scale a kind with a scale subresource (Deployment, StatefulSet, ReplicaSet); a CRD needs subresources.scale"
            }
            Self::UnknownKind(_) => {
                "correct scaleTargetRef.apiVersion and kind; `kubectl api-resources` lists what the cluster knows"
            }
            Self::InvalidApiVersion(_) => "write scaleTargetRef.apiVersion as group/version, for example apps/v1",
            Self::Denied(cause) => return cause.remedy(),
            Self::Unreadable { .. } => "read it by hand: kubectl get --raw, with the path of the scale subresource",
            Self::NotWritten { .. } => "check that the controller may update the target's scale subresource, and admission webhooks of it",
            Self::AtZero => "scale the target to at least 1; autoscaling then continues",
            Self::NoSelector(_) => "set spec.selector of the target; a CRD needs subresources.scale.labelSelectorPath",
            Self::InvalidSelector(_) => "correct the selector that the target's scale reports",
            Self::SharedPods(_) => "let the selectors of the targets match different pods, or delete one of the autoscalers",
            Self::Rivals { .. } => "delete all but one: they undo each other's changes",
            Self::SelectorTooWide(_) => "add a label to spec.selector and the pod template that only the target's pods have",
        }
        .to_owned()
    }
}
