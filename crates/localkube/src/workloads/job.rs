//! Jobs: pods that run until enough of them succeeded.
//!
//! Unlike Kubernetes' own, pods have no finalizer: one that ended and is deleted before the job saw it is not counted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::conditions;
use super::objects::{Condition, Job, JobStatus, Kind, Pod};
use super::plan::{Note, Plan, Write, difference, pod_from, put};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const MANAGER: &str = "kubernetes.io/job-controller";
/// How long a job waits after its first failure; twice that after the next, and so on.
const BACKOFF: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_mins(10);

/// A job and its pods, sorted out.
struct View<'a> {
    job: &'a Job,
    pods: &'a [Arc<Pod>],
    active: Vec<&'a Arc<Pod>>,
    terminating: i32,
    succeeded: i32,
    failed: i32,
    /// Indexes that are done.
    completed: BTreeSet<i32>,
    now: Timestamp,
}

/// How a job ends.
struct End {
    reason: &'static str,
    message: &'static str,
}

/// What is to be done about a job with these pods.
pub(crate) fn plan(job: &Job, pods: &[Arc<Pod>], now: Timestamp) -> Plan {
    if job.spec.managed_by.as_deref().is_some_and(|manager| manager != MANAGER) {
        return Plan::default();
    }
    if let Some(finished) = finished_at(job) {
        return after_the_end(job, finished, now);
    }
    let view = View::of(job, pods, now);
    let mut plan = Plan::default();
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

/// A finished job is deleted when its time has passed.
fn after_the_end(job: &Job, finished: Timestamp, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if let Some(keep) = job.spec.ttl_seconds_after_finished.filter(|_| !job.is_deleting()) {
        match left(finished, keep, now) {
            Some(wait) => plan.look_again(Some(wait)),
            None => plan.writes.push(Write::delete(job)),
        }
    }
    plan
}

/// What is left of so many seconds since then, if anything.
fn left(since: Timestamp, seconds: i64, now: Timestamp) -> Option<Duration> {
    let left = SignedDuration::from_secs(seconds).saturating_sub(now.duration_since(since));
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}

impl<'a> View<'a> {
    fn of(job: &'a Job, pods: &'a [Arc<Pod>], now: Timestamp) -> Self {
        let count = |is: &dyn Fn(&Pod) -> bool| {
            i32::try_from(pods.iter().filter(|pod| is(pod)).count()).unwrap_or(i32::MAX)
        };
        let is_indexed = job.spec.completion_mode == "Indexed";
        let mut completed = parse_indexes(&job.status.completed_indexes);
        let done = pods.iter().filter(|pod| is_indexed && pod.status.phase == "Succeeded");
        completed.extend(done.filter_map(|pod| index(pod)));
        let terminating = count(&|pod| pod.is_deleting() && !pod.is_finished());
        // One that is told to stop will not succeed; unless we told it, as the job is suspended.
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
            // What was counted stays counted, also when its pod is gone.
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
    fn failure(&self) -> Option<End> {
        const LIMIT: End =
            End { reason: "BackoffLimitExceeded", message: "Job has reached the specified backoff limit" };
        const DEADLINE: End =
            End { reason: "DeadlineExceeded", message: "Job was active longer than specified deadline" };
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

    /// First it says that it will fail, and stops its pods; when they are gone, that it failed.
    fn fail(&self, end: &End, status: &mut JobStatus, plan: &mut Plan) {
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
            plan.notes.push(Note::warning(end.reason, end.message));
        }
    }

    fn is_complete(&self) -> bool {
        if conditions::is_true(&self.job.status.conditions, "SuccessCriteriaMet") {
            return true;
        }
        match self.job.spec.completions {
            Some(completions) => self.succeeded >= completions && (completions > 0 || self.active.is_empty()),
            // A queue of work is empty when one found it so and all have ended.
            None => self.succeeded > 0 && self.active.is_empty(),
        }
    }

    fn complete(&self, status: &mut JobStatus, plan: &mut Plan) {
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
            plan.notes.push(Note::normal("Completed", "Job completed"));
        }
    }

    fn suspend(&self, status: &mut JobStatus, plan: &mut Plan) {
        plan.writes = self.active.iter().map(|pod| delete(pod)).collect();
        (status.active, status.ready) = (0, Some(0));
        if !conditions::is_true(&status.conditions, "Suspended") {
            let suspended = self.condition("Suspended", "True", "JobSuspended", "Job suspended");
            conditions::set(&mut status.conditions, suspended);
            plan.notes.push(Note::normal("Suspended", "Job suspended"));
        }
        status.start_time = None;
    }

    fn go_on(&self, status: &mut JobStatus, plan: &mut Plan) {
        if conditions::is_true(&status.conditions, "Suspended") {
            let resumed = self.condition("Suspended", "False", "JobResumed", "Job resumed");
            conditions::set(&mut status.conditions, resumed);
            plan.notes.push(Note::normal("Resumed", "Job resumed"));
        }
        let started = *status.start_time.get_or_insert(conditions::whole_seconds(self.now));
        if let Some(deadline) = self.job.spec.active_deadline_seconds {
            plan.look_again(left(started, deadline, self.now));
        }
        let active = status.active;
        let wanted = self.wanted();
        if active > wanted {
            let surplus = usize::try_from(active - wanted).unwrap_or_default();
            let order = super::pods::deletion_order(&self.active, self.now);
            plan.writes = order.into_iter().take(surplus).map(|pod| delete(pod)).collect();
        } else if active < wanted {
            match self.backoff() {
                Some(wait) => plan.look_again(Some(wait)),
                None => plan.writes = self.create(wanted - active),
            }
        }
    }

    /// How many pods should run.
    fn wanted(&self) -> i32 {
        let parallelism = self.job.spec.parallelism.unwrap_or(1);
        match self.job.spec.completions {
            Some(completions) => parallelism.min(completions - self.succeeded),
            // Nobody is sent to a queue that somebody found empty.
            None if self.succeeded > 0 => i32::try_from(self.active.len()).unwrap_or(i32::MAX),
            None => parallelism,
        }
    }

    /// How long to wait after failures, if that is not over.
    fn backoff(&self) -> Option<Duration> {
        let failures = self.pods.iter().filter(|pod| pod.status.phase == "Failed");
        let last = failures.filter_map(|pod| ended(pod)).max()?;
        let doublings = u32::try_from(self.failed - 1).ok()?;
        let wait = BACKOFF.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_BACKOFF);
        left(last, i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), self.now)
    }

    fn create(&self, count: i32) -> Vec<Write> {
        let write =
            |pod| Write::create(Kind::Pod, pod).telling(Note::normal("SuccessfulCreate", "Created pod: {}"));
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
        put(&mut pod, &["metadata", "annotations", INDEX], index.to_string());
        put(&mut pod, &["metadata", "labels", INDEX], index.to_string());
        put(&mut pod, &["spec", "hostname"], name);
        let path = format!("metadata.labels['{INDEX}']");
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

fn delete(pod: &Pod) -> Write {
    Write::delete(pod).telling(Note::normal("SuccessfulDelete", "Deleted pod: {}"))
}

fn index(pod: &Pod) -> Option<i32> {
    pod.annotation(INDEX)?.parse().ok()
}

/// When a pod ended: when it last changed its mind about being ready.
fn ended(pod: &Pod) -> Option<Timestamp> {
    let ready = pod.status.conditions.iter().find(|condition| condition.kind == "Ready");
    ready.and_then(|condition| condition.last_transition_time).or_else(|| pod.created())
}

/// `0,2-4` as numbers.
fn parse_indexes(text: &str) -> BTreeSet<i32> {
    let ranges = text.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// Numbers as `0,2-4`; two in a row are a range too.
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
        // Kubernetes writes two in a row one by one.
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_ranges() {
        for text in ["", "0", "0,1", "0-2", "0,2,3,5-7"] {
            assert_eq!(print_indexes(&parse_indexes(text)), text);
        }
        assert_eq!(parse_indexes("x,3-1,2-4"), BTreeSet::from([2, 3, 4]));
    }
}
