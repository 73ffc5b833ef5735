//! One poll of a ScaledJob: query, decide, create and delete jobs, report.

use std::sync::Arc;
use std::time::Duration;

use api::diagnosis::trigger_causes;
use keda::OperationError;

use super::SHARED_SAMPLE_MAX_AGE;
use super::object::{SampleAge, max_age_of_others};
use crate::operator::apply::{Applied, Applier, settle_creations};
use crate::operator::context::OperatorContext;
use crate::operator::decide::job::{answers, conclude, decide};
use crate::operator::effect::Effect;
use crate::operator::id::ResourceId;
use crate::operator::record::{JobRecord, job_triggers, keep_job};
use crate::operator::scaled_resource::ScaledResource;
use crate::operator::scalers_cache::{SampleQuery, build_error};

/// Polls a ScaledJob.
pub(super) async fn poll_job(context: &OperatorContext, id: &ResourceId, age: SampleAge) {
    let Some(job) = context.store().scaled_job(id) else { return };
    let entry = context.entry(id);
    entry.state().poll_began = Some(context.clock.now());
    let owner = ScaledResource::Job(Arc::clone(&job));
    let scalers = context.scalers(&entry, &owner);
    let (compat, profile) = (context.settings.compat, context.settings.profile);
    let max_age = match age {
        SampleAge::Shared => SHARED_SAMPLE_MAX_AGE,
        SampleAge::New => Duration::ZERO,
        SampleAge::Woken(_) => max_age_of_others(&owner),
    };
    let max_age = context.settings.max_age(max_age);
    let query = SampleQuery {
        max_age,
        max_failure_age: max_age,
        // A response as old as one poll must not answer the next one.
        max_shared_age: context.builder.backends.web.settings().fresh.min(owner.interval() / 2),
        not_before: None,
        deadline: context.settings.source_deadline,
        wanted: &|_| true,
        records: None,
        observed: None,
        woken: age.woken(),
    };
    let samples = scalers.query(&context.builder, &owner, query).await;
    let failed = build_error(&samples);
    let results: Vec<_> = samples.into_iter().map(|samples| samples.for_job(compat)).collect();
    let triggers = job_triggers(&job, &results, &scalers, context.clock.now());
    let causes = trigger_causes(&triggers);
    let answers = answers(results, failed, compat);

    let _lock = entry.decision_lock.lock().await;
    let Some(job) = context.store().scaled_job(id) else { return };
    // An object that was paused while its sources were queried creates no jobs; the reconcile that is under way reports the pause.
    let is_ended = job.metadata.deletion_timestamp.is_some() || job.is_paused();
    if is_ended || !scalers.are_of(&ScaledResource::Job(Arc::clone(&job))) {
        return;
    }
    let applier = Applier { context, id, metadata: &job.metadata };
    let free = settle_creations(&applier).await;
    let jobs = context.store().jobs.of(&id.full_name());
    let is_used = |name: &str| context.store().jobs.is_known(&id.namespace, name);
    let decision = decide(&job, &answers, &jobs, is_used, free, compat, profile);
    *entry.state().errors.get_or_insert(0) += decision.round.errors.len() as u64;
    context.counters.count_poll();
    let wanted = match &decision.create {
        Some(Effect::CreateJobs { names, .. }) => names.len(),
        _ => 0,
    };
    let created: Vec<_> = match decision.create {
        Some(effect) => match applier.apply(effect).await {
            Ok(Applied::Jobs(created)) => {
                created.into_iter().map(|job| job.map_err(OperationError::from_error)).collect()
            }
            _ => Vec::new(),
        },
        None => Vec::new(),
    };
    let (now, round) = (context.clock.now(), &decision.round);
    let reconcile = entry.state().reconcile_failure.as_deref().cloned();
    let record = JobRecord {
        now,
        job: &job,
        triggers,
        reconcile,
        round,
        is_polled: true,
        jobs: &jobs,
        wanted,
        created: &created,
    };
    keep_job(context, id, record);
    let conclusion = conclude(&job, round, &created, &jobs, now, compat, profile);
    let events = conclusion.events.into_iter().map(|event| event.because(&causes)).collect();
    applier.log_failed_status(applier.apply_all(events).await);
    applier.log_failed_status(applier.apply_all(conclusion.status.into_iter().collect()).await);
    if let Err(error) = applier.apply_all(conclusion.delete).await {
        tracing::warn!(
            namespace = &*id.namespace, name = id.record_name(), %error,
            "failed to delete a finished job"
        );
    }
}
