//! The replica set controller.

use std::sync::Arc;

use jiff::Timestamp;

use super::conditions;
use super::objects::{Condition, Pod, ReplicaSet, ReplicaSetStatus, WorkloadKind};
use super::plan::{EventNote, ObjectWrite, ReconcilePlan, difference, is_fully_labelled, pod_from};
use super::pods::{deletion_order, next_available};

/// The maximum number of pods that one plan creates or deletes.
const MAX_PODS_PER_PASS: usize = 500;
const FAILURE: &str = "ReplicaFailure";

/// Plans a replica set with these pods; `failure` is the error of the last run, if it failed.
pub(crate) fn plan(
    set: &ReplicaSet,
    pods: &[Arc<Pod>],
    failure: Option<&str>,
    now: Timestamp,
) -> ReconcilePlan {
    let active: Vec<&Arc<Pod>> = pods.iter().filter(|pod| pod.is_active()).collect();
    let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default();
    let mut plan = ReconcilePlan::default();
    if set.is_deleting() {
        // The garbage collector deletes its pods.
    } else if active.len() < wanted {
        let missing = (wanted - active.len()).min(MAX_PODS_PER_PASS);
        plan.writes.extend((0..missing).map(|_| {
            ObjectWrite::create(WorkloadKind::Pod, pod_from(set, &set.spec.template))
                .with_event(EventNote::normal("SuccessfulCreate", "Created pod: {}"))
        }));
    } else {
        let surplus = (active.len() - wanted).min(MAX_PODS_PER_PASS);
        let chosen = if surplus > 0 { deletion_order(&active, now) } else { Vec::new() };
        plan.writes.extend(chosen.into_iter().take(surplus).map(|pod| {
            ObjectWrite::delete(pod.as_ref())
                .with_event(EventNote::normal("SuccessfulDelete", "Deleted pod: {}"))
        }));
    }
    let failure = failure.map(|message| (plan.writes.first(), message));
    plan.status = difference(&set.status, &status(set, pods, failure, now));
    plan.requeue_after(next_available(&active, set.spec.min_ready_seconds, now));
    plan
}

fn status(
    set: &ReplicaSet,
    pods: &[Arc<Pod>],
    failure: Option<(Option<&ObjectWrite>, &str)>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let active = || pods.iter().filter(|pod| pod.is_active());
    let count = |all: usize| i32::try_from(all).unwrap_or(i32::MAX);
    let mut conditions = set.status.conditions.clone();
    match failure {
        // The condition stays while failing writes remain.
        Some((Some(write), message)) => {
            let creates = matches!(write.change, super::plan::WriteOperation::Create(_));
            let reason = if creates { "FailedCreate" } else { "FailedDelete" };
            let failed = Condition {
                last_transition_time: Some(conditions::whole_seconds(now)),
                ..conditions::new(FAILURE, "True", reason, message)
            };
            conditions::set(&mut conditions, failed);
        }
        _ => conditions.retain(|condition| condition.r#type != FAILURE),
    }
    ReplicaSetStatus {
        observed_generation: set.generation(),
        replicas: Some(count(active().count())),
        fully_labeled_replicas: count(
            active().filter(|pod| is_fully_labelled(&pod.metadata, &set.spec.template)).count(),
        ),
        ready_replicas: count(active().filter(|pod| pod.is_ready()).count()),
        available_replicas: count(
            active().filter(|pod| pod.is_available(set.spec.min_ready_seconds, now)).count(),
        ),
        terminating_replicas: Some(count(
            pods.iter().filter(|pod| pod.is_deleting() && !pod.is_finished()).count(),
        )),
        conditions,
    }
}
