//! The job controller.
//!
//! Unlike in Kubernetes, pods have no finalizer: a pod that ended and was deleted before the job observed it is not
//! counted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::conditions;
use super::objects::{Condition, Job, JobStatus, Pod, WorkloadKind};
use super::plan::{EventNote, ObjectWrite, ReconcilePlan, difference, pod_from, put};

const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";
/// The backoff after the first failure; it doubles with each further one.
const INITIAL_BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_mins(10);

/// A job and its pods.
struct JobView<'a> {
    job: &'a Job,
    pods: &'a [Arc<Pod>],
    active: Vec<&'a Arc<Pod>>,
    terminating: i32,
    succeeded: i32,
    failed: i32,
    /// Completed indexes.
    completed: BTreeSet<i32>,
    now: Timestamp,
}

/// Why a job fails.
struct JobFailure {
    reason: &'static str,
    message: &'static str,
}

/// Plans a job with these pods.
pub(crate) fn plan(job: &Job, pods: &[Arc<Pod>], now: Timestamp) -> ReconcilePlan {
    if job.spec.managed_by.as_deref().is_some_and(|manager| manager != JOB_CONTROLLER) {
        return ReconcilePlan::default();
    }
    if let Some(finished) = finished_at(job) {
        return after_the_end(job, finished, now);
    }
    let view = JobView::of(job, pods, now);
    let mut plan = ReconcilePlan::default();
    let mut status = view.counts();
    if job.is_deleting() {
        plan.status = difference(&job.status, &status);
        return plan;
    }
    if let Some(end) = view.failure() {
        view.fail(&end, &mut status, &mut plan);
    } else if view.is_complete() {
        view.complete(&mut status, &mut plan);
    } else if job.spec.suspend {
        view.suspend(&mut status, &mut plan);
    } else {
        view.go_on(&mut status, &mut plan);
    }
    plan.status = difference(&job.status, &status);
    plan
}

fn finished_at(job: &Job) -> Option<Timestamp> {
    let ended = |kind| conditions::find(&job.status.conditions, kind).filter(|c| c.status == "True");
    ended("Complete").or_else(|| ended("Failed")).map(|c| c.last_transition_time.unwrap_or(Timestamp::MIN))
}

/// Deletes a finished job after its TTL.
fn after_the_end(job: &Job, finished: Timestamp, now: Timestamp) -> ReconcilePlan {
    let mut plan = ReconcilePlan::default();
    if let Some(keep) = job.spec.ttl_seconds_after_finished.filter(|_| !job.is_deleting()) {
        match left(finished, keep, now) {
            Some(wait) => plan.requeue_after(Some(wait)),
            None => plan.writes.push(ObjectWrite::delete(job)),
        }
    }
    plan
}

/// The time left of a number of seconds since a time, if any.
fn left(since: Timestamp, seconds: i64, now: Timestamp) -> Option<Duration> {
    let left = SignedDuration::from_secs(seconds).saturating_sub(now.duration_since(since));
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}

impl<'a> JobView<'a> {
    fn of(job: &'a Job, pods: &'a [Arc<Pod>], now: Timestamp) -> Self {
        let count = |is: &dyn Fn(&Pod) -> bool| {
            i32::try_from(pods.iter().filter(|pod| is(pod)).count()).unwrap_or(i32::MAX)
        };
        let is_indexed = job.spec.completion_mode == "Indexed";
        let mut completed = parse_indexes(&job.status.completed_indexes);
        let done = pods.iter().filter(|pod| is_indexed && pod.status.phase == "Succeeded");
        completed.extend(done.filter_map(|pod| index(pod)));
        let terminating = count(&|pod| pod.is_deleting() && !pod.is_finished());
        // A terminating pod counts as failed, unless the job is suspended.
        let stopped = if job.spec.suspend { 0 } else { terminating };
        let succeeded = if is_indexed {
            i32::try_from(completed.len()).unwrap_or(i32::MAX)
        } else {
            count(&|pod| pod.status.phase == "Succeeded")
        };
        Self {
            job,
            pods,
            active: pods.iter().filter(|pod| pod.is_active()).collect(),
            terminating,
            // Counts never decrease, even if pods are gone.
            succeeded: succeeded.max(job.status.succeeded),
            failed: (count(&|pod| pod.status.phase == "Failed") + stopped).max(job.status.failed),
            completed,
            now,
        }
    }

    fn counts(&self) -> JobStatus {
        let ready = self.active.iter().filter(|pod| pod.is_ready()).count();
        JobStatus {
            active: i32::try_from(self.active.len()).unwrap_or(i32::MAX),
            ready: Some(i32::try_from(ready).unwrap_or(i32::MAX)),
            terminating: Some(self.terminating),
            succeeded: self.succeeded,
            failed: self.failed,
            completed_indexes: print_indexes(&self.completed),
            uncounted_terminated_pods: Some(std::collections::BTreeMap::new()),
            ..self.job.status.clone()
        }
    }

    fn condition(&self, kind: &str, status: &str, reason: &str, message: &str) -> Condition {
        let now = Some(conditions::whole_seconds(self.now));
        let untimed = conditions::new(kind, status, reason, message);
        Condition { last_probe_time: now, last_transition_time: now, ..untimed }
    }

    /// Why the job cannot succeed any more.
    fn failure(&self) -> Option<JobFailure> {
        const LIMIT: JobFailure = JobFailure {
            reason: "BackoffLimitExceeded",
            message: "Job has reached the specified backoff limit",
        };
        const DEADLINE: JobFailure = JobFailure {
            reason: "DeadlineExceeded",
            message: "Job was active longer than specified deadline",
        };
        if let Some(begun) = conditions::find(&self.job.status.conditions, "FailureTarget") {
            return Some(if begun.reason == DEADLINE.reason { DEADLINE } else { LIMIT });
        }
        if self.failed > self.job.spec.backoff_limit.unwrap_or(6) {
            return Some(LIMIT);
        }
        let deadline = self.job.spec.active_deadline_seconds.filter(|_| !self.job.spec.suspend)?;
        let started = self.job.status.start_time?;
        left(started, deadline, self.now).is_none().then_some(DEADLINE)
    }

    /// Fails the job: sets `FailureTarget` and deletes its pods, then sets `Failed` when they are gone.
    fn fail(&self, end: &JobFailure, status: &mut JobStatus, plan: &mut ReconcilePlan) {
        let set = |conditions: &mut Vec<Condition>, kind| {
            conditions::set(conditions, self.condition(kind, "True", end.reason, end.message));
        };
        if conditions::find(&status.conditions, "FailureTarget").is_none() {
            status.failed += status.active;
        }
        set(&mut status.conditions, "FailureTarget");
        plan.writes = self.active.iter().map(|pod| delete(pod)).collect();
        (status.active, status.ready) = (0, Some(0));
        if plan.writes.is_empty() && self.terminating == 0 {
            set(&mut status.conditions, "Failed");
            plan.notes.push(EventNote::warning(end.reason, end.message));
        }
    }

    fn is_complete(&self) -> bool {
        if conditions::is_true(&self.job.status.conditions, "SuccessCriteriaMet") {
            return true;
        }
        match self.job.spec.completions {
            Some(completions) => self.succeeded >= completions && (completions > 0 || self.active.is_empty()),
            // A work queue is done when one pod succeeded and all have ended.
            None => self.succeeded > 0 && self.active.is_empty(),
        }
    }

    fn complete(&self, status: &mut JobStatus, plan: &mut ReconcilePlan) {
        let set = |conditions: &mut Vec<Condition>, kind| {
            let message = "Reached expected number of succeeded pods";
            conditions::set(conditions, self.condition(kind, "True", "CompletionsReached", message));
        };
        set(&mut status.conditions, "SuccessCriteriaMet");
        plan.writes = self.active.iter().map(|pod| delete(pod)).collect();
        (status.active, status.ready) = (0, Some(0));
        if plan.writes.is_empty() && self.terminating == 0 {
            set(&mut status.conditions, "Complete");
            status.completion_time = Some(conditions::whole_seconds(self.now));
            plan.notes.push(EventNote::normal("Completed", "Job completed"));
        }
    }

    fn suspend(&self, status: &mut JobStatus, plan: &mut ReconcilePlan) {
        plan.writes = self.active.iter().map(|pod| delete(pod)).collect();
        (status.active, status.ready) = (0, Some(0));
        if !conditions::is_true(&status.conditions, "Suspended") {
            let suspended = self.condition("Suspended", "True", "JobSuspended", "Job suspended");
            conditions::set(&mut status.conditions, suspended);
            plan.notes.push(EventNote::normal("Suspended", "Job suspended"));
        }
        status.start_time = None;
    }

    fn go_on(&self, status: &mut JobStatus, plan: &mut ReconcilePlan) {
        if conditions::is_true(&status.conditions, "Suspended") {
            let resumed = self.condition("Suspended", "False", "JobResumed", "Job resumed");
            conditions::set(&mut status.conditions, resumed);
            plan.notes.push(EventNote::normal("Resumed", "Job resumed"));
        }
        let started = *status.start_time.get_or_insert(conditions::whole_seconds(self.now));
        if let Some(deadline) = self.job.spec.active_deadline_seconds {
            plan.requeue_after(left(started, deadline, self.now));
        }
        let active = status.active;
        let wanted = self.wanted();
        if active > wanted {
            let surplus = usize::try_from(active - wanted).unwrap_or_default();
            let order = super::pods::deletion_order(&self.active, self.now);
            plan.writes = order.into_iter().take(surplus).map(|pod| delete(pod)).collect();
        } else if active < wanted {
            match self.backoff() {
                Some(wait) => plan.requeue_after(Some(wait)),
                None => plan.writes = self.create(wanted - active),
            }
        }
    }

    /// The desired number of active pods.
    fn wanted(&self) -> i32 {
        let parallelism = self.job.spec.parallelism.unwrap_or(1);
        match self.job.spec.completions {
            Some(completions) => parallelism.min(completions - self.succeeded),
            // A work queue gets no new pods after one succeeded.
            None if self.succeeded > 0 => i32::try_from(self.active.len()).unwrap_or(i32::MAX),
            None => parallelism,
        }
    }

    /// The remaining backoff after failures, if any.
    fn backoff(&self) -> Option<Duration> {
        let failures = self.pods.iter().filter(|pod| pod.status.phase == "Failed");
        let last = failures.filter_map(|pod| ended(pod)).max()?;
        let doublings = u32::try_from(self.failed - 1).ok()?;
        let wait = INITIAL_BACKOFF.saturating_mul(2_u32.saturating_pow(doublings)).min(MAX_BACKOFF);
        left(last, i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), self.now)
    }

    fn create(&self, count: i32) -> Vec<ObjectWrite> {
        let write = |pod| {
            ObjectWrite::create(WorkloadKind::Pod, pod)
                .with_event(EventNote::normal("SuccessfulCreate", "Created pod: {}"))
        };
        let count = usize::try_from(count).unwrap_or_default();
        if self.job.spec.completion_mode != "Indexed" {
            let pod = pod_from(self.job, &self.job.spec.template);
            return std::iter::repeat_n(pod, count).map(write).collect();
        }
        let taken: BTreeSet<i32> = self.active.iter().filter_map(|pod| index(pod)).collect();
        let all = 0..self.job.spec.completions.unwrap_or_default();
        let free = all.filter(|index| !taken.contains(index) && !self.completed.contains(index));
        free.take(count).map(|index| write(self.indexed(index))).collect()
    }

    fn indexed(&self, index: i32) -> Value {
        let mut pod = pod_from(self.job, &self.job.spec.template);
        let name = format!("{}-{index}", self.job.name());
        put(&mut pod, &["metadata", "generateName"], format!("{name}-"));
        put(&mut pod, &["metadata", "annotations", COMPLETION_INDEX], index.to_string());
        put(&mut pod, &["metadata", "labels", COMPLETION_INDEX], index.to_string());
        put(&mut pod, &["spec", "hostname"], name);
        let path = format!("metadata.labels['{COMPLETION_INDEX}']");
        let variable =
            json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}});
        for containers in ["/spec/containers", "/spec/initContainers"] {
            let containers = pod.pointer_mut(containers).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                match container.get_mut("env").and_then(Value::as_array_mut) {
                    Some(variables) => variables.push(variable.clone()),
                    None => put(container, &["env"], vec![variable.clone()]),
                }
            }
        }
        pod
    }
}

fn delete(pod: &Pod) -> ObjectWrite {
    ObjectWrite::delete(pod).with_event(EventNote::normal("SuccessfulDelete", "Deleted pod: {}"))
}

fn index(pod: &Pod) -> Option<i32> {
    pod.annotation(COMPLETION_INDEX)?.parse().ok()
}

/// When a pod ended: the last transition of its `Ready` condition.
fn ended(pod: &Pod) -> Option<Timestamp> {
    let ready = pod.status.conditions.iter().find(|condition| condition.r#type == "Ready");
    ready.and_then(|condition| condition.last_transition_time).or_else(|| pod.created())
}

/// Parses indexes such as `0,2-4`.
fn parse_indexes(text: &str) -> BTreeSet<i32> {
    let ranges = text.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// Formats indexes as `0,2-4`.
fn print_indexes(indexes: &BTreeSet<i32>) -> String {
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for index in indexes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => ranges.push((*index, *index)),
        }
    }
    let texts = ranges.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        // Kubernetes writes two consecutive indexes separately.
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_indexes_are_formatted_as_ranges() {
        for text in ["", "0", "0,1", "0-2", "0,2,3,5-7"] {
            assert_eq!(print_indexes(&parse_indexes(text)), text);
        }
        assert_eq!(parse_indexes("x,3-1,2-4"), BTreeSet::from([2, 3, 4]));
    }
}
