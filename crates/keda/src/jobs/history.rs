//! Jobs to delete: finished ones beyond the history limit, and outdated ones (docs/spec/keda.md 5.4, 5.5).

use api::keda::ScaledJob;

use super::{JobState, JobView};
use crate::event::Event;

/// Default history limit for complete and for failed jobs.
const DEFAULT_HISTORY_LIMIT: i32 = 100;

/// Propagation policy of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Pods are deleted after the job.
    Background,
    /// Pods are deleted before the job.
    Foreground,
}

impl Propagation {
    /// The value in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

/// Finished jobs beyond the history limits, oldest first, complete jobs before failed jobs. They are deleted in the
/// background, until one deletion fails.
pub fn history<'a>(object: &ScaledJob, jobs: &'a [JobView]) -> Vec<&'a str> {
    let complete = beyond(jobs, JobState::Complete, object.spec.successful_jobs_history_limit);
    let failed = beyond(jobs, JobState::Failed, object.spec.failed_jobs_history_limit);
    complete.chain(failed).collect()
}

fn beyond(jobs: &[JobView], state: JobState, limit: Option<i32>) -> impl Iterator<Item = &str> {
    let mut finished: Vec<&JobView> = jobs.iter().filter(|job| job.state == state).collect();
    // KEDA has no order of failed jobs, because they have no completion time.
    finished.sort_by_key(|job| job.completed.or(job.ended));
    let kept = usize::try_from(limit.unwrap_or(DEFAULT_HISTORY_LIMIT)).unwrap_or(0);
    let delete = finished.len().saturating_sub(kept);
    finished.into_iter().take(delete).map(|job| &*job.name)
}

/// Jobs of an older generation, and the propagation policy of their deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutdatedJobs {
    /// Their names.
    pub jobs: Vec<String>,
    /// Propagation policy.
    pub propagation: Propagation,
}

/// The jobs of older generations to delete; none with the strategy `gradual`, or if there are none.
pub fn outdated(object: &ScaledJob, jobs: &[JobView]) -> Option<OutdatedJobs> {
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
    (!jobs.is_empty()).then_some(OutdatedJobs { jobs, propagation })
}

impl OutdatedJobs {
    /// The event before the first deletion.
    pub fn started(&self) -> Event {
        let count = self.jobs.len();
        let note = format!("Deleting {count} jobs owned by the previous version of the scaledJob");
        Event::normal("ScaledJobRolloutCleanupStarted", note)
    }

    /// The event after the last deletion.
    pub fn completed(&self) -> Event {
        let count = self.jobs.len();
        let note = format!("Deleted {count} jobs owned by the previous version of the scaledJob");
        Event::normal("ScaledJobRolloutCleanupCompleted", note)
    }

    /// The event of a failed deletion; the remaining jobs are kept.
    pub fn failed(job: &str, error: &str) -> Event {
        Event::warning("ScaledJobRolloutCleanupFailed", format!("Failed to delete job {job}: {error}"))
    }
}
