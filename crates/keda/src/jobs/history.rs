//! Jobs that are deleted: finished ones, and those of an older generation (docs/spec/keda.md 5.4, 5.5).

use api::keda::ScaledJob;

use super::{JobState, JobView};
use crate::event::Event;

/// Finished jobs of each kind that are kept if nobody says.
const KEPT: i32 = 100;

/// What becomes of the pods of a job that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
}

impl Propagation {
    /// As it is written in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

/// Finished jobs that are too many, oldest first; those that are done before those that failed. They are deleted in the
/// background, until one cannot be.
pub fn history<'a>(object: &ScaledJob, jobs: &'a [JobView]) -> Vec<&'a str> {
    let complete = beyond(jobs, JobState::Complete, object.spec.successful_jobs_history_limit);
    let failed = beyond(jobs, JobState::Failed, object.spec.failed_jobs_history_limit);
    complete.chain(failed).collect()
}

fn beyond(jobs: &[JobView], state: JobState, limit: Option<i32>) -> impl Iterator<Item = &str> {
    let mut finished: Vec<&JobView> = jobs.iter().filter(|job| job.state == state).collect();
    // KEDA knows no order of jobs that failed, for they have no time of completion.
    finished.sort_by_key(|job| job.completed.or(job.ended));
    let kept = usize::try_from(limit.unwrap_or(KEPT)).unwrap_or(0);
    let delete = finished.len().saturating_sub(kept);
    finished.into_iter().take(delete).map(|job| &*job.name)
}

/// Jobs of an older generation, and how they are deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated {
    /// Their names.
    pub jobs: Vec<String>,
    /// What becomes of their pods.
    pub propagation: Propagation,
}

/// The jobs that must go because the ScaledJob was changed since; none if it keeps them, or if there are none.
pub fn outdated(object: &ScaledJob, jobs: &[JobView]) -> Option<Outdated> {
    let spec = &object.spec;
    let strategy = match spec.rollout_strategy.as_str() {
        "" => &spec.rollout.strategy,
        older => older,
    };
    if strategy == "gradual" {
        return None;
    }
    let generation = object.metadata.generation.to_string();
    let old = jobs.iter().filter(|job| job.generation.as_ref() != Some(&generation));
    let jobs: Vec<String> = old.map(|job| job.name.clone()).collect();
    let propagation = match spec.rollout.propagation_policy.as_str() {
        "foreground" => Propagation::Foreground,
        _ => Propagation::Background,
    };
    (!jobs.is_empty()).then_some(Outdated { jobs, propagation })
}

impl Outdated {
    /// Told before the first is deleted.
    pub fn started(&self) -> Event {
        let count = self.jobs.len();
        let note = format!("Deleting {count} jobs owned by the previous version of the scaledJob");
        Event::normal("ScaledJobRolloutCleanupStarted", note)
    }

    /// Told after the last was deleted.
    pub fn completed(&self) -> Event {
        let count = self.jobs.len();
        let note = format!("Deleted {count} jobs owned by the previous version of the scaledJob");
        Event::normal("ScaledJobRolloutCleanupCompleted", note)
    }

    /// Told of the one that could not be deleted; the others are left.
    pub fn failed(job: &str, error: &str) -> Event {
        Event::warning("ScaledJobRolloutCleanupFailed", format!("Failed to delete job {job}: {error}"))
    }
}
