//! The poll of a ScaledJob (docs/spec/keda.md 5.3, 5.4).

use api::keda::{KedaProfile, ScaledJob};
use api::provider::Compat;
use jiff::Timestamp;
use keda::OperationError;
use keda::jobs::{self, JobPoll, JobTriggerResult, JobView, Propagation};

use crate::operator::effect::Effect;

/// Maximum number of jobs that one poll creates; later polls create the others. A manifest and a source choose the number, and each name
/// costs memory and time on the thread of all objects.
const MAX_JOBS_PER_POLL: usize = 2_000;

/// What a poll of a ScaledJob has decided.
pub(crate) struct JobDecision {
    pub(crate) round: JobPoll,
    /// The jobs to create, if any.
    pub(crate) create: Option<Effect>,
}

/// What follows after jobs were created.
pub(crate) struct JobConclusion {
    pub(crate) events: Vec<Effect>,
    pub(crate) status: Option<Effect>,
    /// Finished jobs beyond the history limits.
    pub(crate) delete: Vec<Effect>,
}

/// The answers of all triggers, for the rules of ScaledJobs. In KEDA a trigger that cannot be built ends the poll.
pub(crate) fn answers(
    answers: Vec<JobTriggerResult>,
    build_error: Option<OperationError>,
    compat: Compat,
) -> Vec<JobTriggerResult> {
    match build_error {
        Some(error) if compat.is_strict() => {
            vec![JobTriggerResult { specs: Err(error), samples: Vec::new() }]
        }
        _ => answers,
    }
}

/// Decides how many jobs are created. `is_used` says whether a job had this name not long ago. `free` are the names of creations
/// that may still be carried out, which are used first.
pub(crate) fn decide(
    job: &ScaledJob,
    answers: &[JobTriggerResult],
    jobs: &[JobView],
    is_used: impl Fn(&str) -> bool,
    free: Vec<String>,
    compat: Compat,
    profile: KedaProfile,
) -> JobDecision {
    let round = jobs::gather(job, answers);
    let count = usize::try_from(jobs::decide(job, &round, jobs, compat)).unwrap_or(0).min(MAX_JOBS_PER_POLL);
    let manifest = jobs::job(job, profile).filter(|_| count > 0);
    let create = manifest.map(|manifest| {
        let mut names = free;
        let new =
            jobs::names(job, jobs, count, |name| is_used(name) || names.iter().any(|free| free == name));
        names.extend(new);
        names.truncate(count);
        Effect::CreateJobs { manifest, names }
    });
    JobDecision { round, create }
}

/// Events, status and deletions after the creations.
pub(crate) fn conclude(
    job: &ScaledJob,
    round: &JobPoll,
    created: &[Result<(), OperationError>],
    jobs: &[JobView],
    now: Timestamp,
    compat: Compat,
    profile: KedaProfile,
) -> JobConclusion {
    let report = jobs::report(job, round, created, now, compat, profile);
    let delete = jobs::history(job, jobs)
        .into_iter()
        .map(|name| Effect::DeleteJob { name: name.to_owned(), propagation: Propagation::Background });
    JobConclusion {
        events: report.events.into_iter().map(Effect::Event).collect(),
        status: report.patch.map(Effect::PatchStatus),
        delete: delete.collect(),
    }
}
