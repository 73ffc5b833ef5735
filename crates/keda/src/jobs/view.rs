//! The fields of jobs and pods that are counted.

use jiff::Timestamp;
use serde_json::Value;

use api::keda::annotations;

/// State of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobState {
    /// Running, waiting or suspended.
    #[default]
    Running,
    /// Complete.
    Complete,
    /// Failed.
    Failed,
}

/// A job of a ScaledJob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobView {
    /// Its name.
    pub name: String,
    /// The generation of the ScaledJob it was created for, from its annotation.
    pub generation: Option<String>,
    /// Its state.
    pub state: JobState,
    /// Its completion time, if it is set.
    pub completed: Option<Timestamp>,
    /// Its completion time, the time of its final condition, or its creation: orders failed jobs, which have no
    /// completion time.
    pub ended: Option<Timestamp>,
    /// Its pods; none if they are unknown.
    pub pods: Option<Vec<JobPodView>>,
}

/// A pod of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobPodView {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// Types of its true conditions.
    pub conditions: Vec<String>,
}

impl JobView {
    /// Decodes a job, without its pods.
    pub fn read(job: &Value) -> Self {
        let metadata = |name: &str| job.pointer(&format!("/metadata/{name}"));
        let empty = Vec::new();
        let conditions = job.pointer("/status/conditions").and_then(Value::as_array).unwrap_or(&empty);
        let ending = conditions.iter().filter(|condition| is_true(condition)).find_map(|condition| {
            match condition.get("type").and_then(Value::as_str) {
                Some("Complete") => Some((JobState::Complete, condition)),
                Some("Failed") => Some((JobState::Failed, condition)),
                _ => None,
            }
        });
        let completed = instant(job.pointer("/status/completionTime"));
        let transition = ending.and_then(|(_, condition)| instant(condition.get("lastTransitionTime")));
        Self {
            name: metadata("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            generation: metadata("annotations")
                .and_then(|annotations| annotations.get(annotations::SCALED_JOB_GENERATION))
                .and_then(Value::as_str)
                .map(str::to_owned),
            state: ending.map_or(JobState::Running, |(state, _)| state),
            completed,
            ended: completed.or(transition).or_else(|| instant(metadata("creationTimestamp"))),
            pods: None,
        }
    }

    /// Whether its pods have not started.
    fn is_pending(&self, conditions: &[String]) -> bool {
        let Some(pods) = &self.pods else { return true };
        if conditions.is_empty() {
            return !pods.iter().any(|pod| matches!(pod.phase.as_str(), "Running" | "Succeeded"));
        }
        // Compares counts as KEDA does, so a condition that is listed twice is never met.
        let holds = |pod: &JobPodView| pod.conditions.iter().filter(|own| conditions.contains(own)).count();
        !pods.iter().any(|pod| holds(pod) == conditions.len())
    }
}

impl JobPodView {
    /// Decodes a pod.
    pub fn read(pod: &Value) -> Self {
        let empty = Vec::new();
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).unwrap_or(&empty);
        let holding = conditions.iter().filter(|condition| is_true(condition));
        Self {
            phase: pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default().to_owned(),
            conditions: holding.filter_map(|held| Some(held.get("type")?.as_str()?.to_owned())).collect(),
        }
    }
}

/// The number of running jobs, and of those that have not started.
pub(super) fn count(jobs: &[JobView], conditions: &[String]) -> (i64, i64) {
    let running = || jobs.iter().filter(|job| job.state == JobState::Running);
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    (number(running().count()), number(running().filter(|job| job.is_pending(conditions)).count()))
}

fn is_true(condition: &Value) -> bool {
    condition.get("status").and_then(Value::as_str) == Some("True")
}

fn instant(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}
