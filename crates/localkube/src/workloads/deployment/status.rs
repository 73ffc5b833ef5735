//! The status of a deployment.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{ChildReplicaSet, Rollout};
use crate::workloads::conditions;
use crate::workloads::objects::{Condition, Deployment, DeploymentStatus};

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const FAILURE: &str = "ReplicaFailure";
/// Reasons of [`PROGRESSING`].
const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// Whether all replicas have the current template and are available, and no others exist.
pub(super) fn is_complete(deployment: &Deployment, counts: &DeploymentStatus) -> bool {
    let replicas = deployment.spec.replicas.unwrap_or(1);
    [counts.updated_replicas, counts.replicas, counts.available_replicas]
        .iter()
        .all(|count| *count == replicas)
        && counts.observed_generation >= deployment.generation()
}

impl Rollout<'_> {
    /// The status without conditions.
    pub(super) fn counts(&self) -> DeploymentStatus {
        let sum = |count: fn(&ChildReplicaSet) -> i32| self.all().map(count).sum::<i32>();
        let available = sum(|child| child.set.status.available_replicas);
        DeploymentStatus {
            observed_generation: self.deployment.generation(),
            replicas: sum(|child| child.set.status.replicas.unwrap_or_default()),
            updated_replicas: self.new.and_then(|child| child.set.status.replicas).unwrap_or_default(),
            ready_replicas: sum(|child| child.set.status.ready_replicas),
            available_replicas: available,
            unavailable_replicas: (sum(ChildReplicaSet::wanted) - available).max(0),
            terminating_replicas: Some(sum(|child| {
                child.set.status.terminating_replicas.unwrap_or_default()
            })),
            conditions: Vec::new(),
        }
    }

    /// The status; `creates` if the new replica set is being created.
    pub(super) fn status(&self, creates: bool, now: Timestamp) -> DeploymentStatus {
        let now = conditions::whole_seconds(now);
        let mut status =
            DeploymentStatus { conditions: self.deployment.status.conditions.clone(), ..self.counts() };
        let least = self.replicas - self.limits.unavailable;
        conditions::set(
            &mut status.conditions,
            if status.available_replicas >= least {
                let text = "Deployment has minimum availability.".to_owned();
                condition(AVAILABLE, "True", "MinimumReplicasAvailable", text, now)
            } else {
                let text = "Deployment does not have minimum availability.".to_owned();
                condition(AVAILABLE, "False", "MinimumReplicasUnavailable", text, now)
            },
        );
        if self.deployment.is_deleting() {
            return status;
        }
        if self.deployment.spec.progress_deadline_seconds.is_some() {
            self.progress(&mut status, creates, now);
        }
        match self.failure() {
            Some(failure) => conditions::set(&mut status.conditions, failure),
            None => status.conditions.retain(|condition| condition.r#type != FAILURE),
        }
        status
    }

    fn progress(&self, status: &mut DeploymentStatus, creates: bool, now: Timestamp) {
        let current = conditions::find(&status.conditions, PROGRESSING).cloned();
        let reason = current.as_ref().map_or("", |condition| condition.reason.as_str());
        let progressing =
            |status: &str, reason: &str, text: String| condition(PROGRESSING, status, reason, text, now);
        if self.deployment.spec.paused {
            if reason != TIMED_OUT && reason != PAUSED {
                let text = "Deployment is paused".to_owned();
                conditions::set(&mut status.conditions, progressing("Unknown", PAUSED, text));
            }
            return;
        }
        if reason == PAUSED {
            let text = "Deployment is resumed".to_owned();
            conditions::set(&mut status.conditions, progressing("Unknown", "DeploymentResumed", text));
            return;
        }
        if creates {
            let text = format!("Created new replica set \"{}-{}\"", self.deployment.name(), self.hash);
            conditions::set(&mut status.conditions, progressing("True", "NewReplicaSetCreated", text));
            return;
        }
        if let (None, Some(name)) = (&current, self.new_name()) {
            let text = format!("Found new replica set \"{name}\"");
            conditions::set(&mut status.conditions, progressing("True", "FoundNewReplicaSet", text));
            return;
        }
        // A completed rollout stays complete.
        if reason == COMPLETE && status.replicas == status.updated_replicas {
            return;
        }
        let subject = match self.new_name() {
            Some(name) => format!("ReplicaSet \"{name}\""),
            None => format!("Deployment \"{}\"", self.deployment.name()),
        };
        if is_complete(self.deployment, status) {
            let text = format!("{subject} has successfully progressed.");
            conditions::set(&mut status.conditions, progressing("True", COMPLETE, text));
        } else if has_progressed(&self.deployment.status, status) {
            let text = format!("{subject} is progressing.");
            conditions::replace(&mut status.conditions, progressing("True", "ReplicaSetUpdated", text));
        } else if self.time_left(status, now).is_some_and(|left| left.is_negative()) {
            let text = format!("{subject} has timed out progressing.");
            conditions::set(&mut status.conditions, progressing("False", TIMED_OUT, text));
        }
    }

    /// The time until the progress deadline.
    fn time_left(&self, status: &DeploymentStatus, now: Timestamp) -> Option<SignedDuration> {
        let condition = conditions::find(&status.conditions, PROGRESSING)?;
        let deadline = self.deployment.spec.progress_deadline_seconds?;
        let passed = now.duration_since(condition.last_update_time?);
        Some(SignedDuration::from_secs(i64::from(deadline)).saturating_sub(passed))
    }

    /// When to check the progress deadline.
    pub(super) fn deadline(&self, status: &DeploymentStatus, now: Timestamp) -> Option<Duration> {
        let condition = conditions::find(&status.conditions, PROGRESSING)?;
        if [COMPLETE, TIMED_OUT, PAUSED].contains(&condition.reason.as_str()) {
            return None;
        }
        let left = self
            .time_left(status, conditions::whole_seconds(now))?
            .saturating_add(SignedDuration::from_secs(1));
        Some(Duration::try_from(left).unwrap_or(Duration::from_secs(1)))
    }

    /// The condition of a replica set that cannot create pods.
    fn failure(&self) -> Option<Condition> {
        let failed = self.all().find_map(|child| conditions::find(&child.set.status.conditions, FAILURE))?;
        Some(Condition { last_update_time: failed.last_transition_time, ..failed.clone() })
    }
}

fn condition(kind: &str, status: &str, reason: &str, text: String, now: Timestamp) -> Condition {
    let untimed = conditions::new(kind, status, reason, text);
    Condition { last_update_time: Some(now), last_transition_time: Some(now), ..untimed }
}

/// Whether there are more new pods, fewer old ones, or more ready or available ones.
fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| status.replicas - status.updated_replicas;
    after.updated_replicas > before.updated_replicas
        || old(after) < old(before)
        || after.ready_replicas > before.ready_replicas
        || after.available_replicas > before.available_replicas
}
