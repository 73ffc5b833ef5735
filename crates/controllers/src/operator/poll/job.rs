//! One round of a ScaledJob: ask, decide, create and delete jobs, report (docs/spec/keda.md 5.3, 5.4).

use std::sync::Arc;

use api::keda::{ScaledJob, annotations};
use cluster::request::ApiError;
use futures::StreamExt as _;
use keda::jobs::{JobTriggerResult, Propagation, decide, gather, history, job, report};

use super::{PollOutcome, SHARED};
use crate::operator::context::OperatorContext;
use crate::operator::event_recorder::EventSubject;
use crate::operator::id::Id;
use crate::operator::leader_client::ResourcePath;
use crate::operator::scalers_cache::{SampleQuery, ScaledResource};
use crate::operator::store::Job;

/// So many jobs of one ScaledJob are created at a time.
const TOGETHER: usize = 16;

pub(super) async fn poll(context: &OperatorContext, id: &Id) -> PollOutcome {
    let Some(object) = context.store().scaled_job(id) else { return PollOutcome::default() };
    let entry = context.entry(id);
    let owner = ScaledResource::Job(Arc::clone(&object));
    let triggers = context.triggers(&entry, &owner);
    let how = SampleQuery {
        age: context.settings.age(SHARED),
        failures: context.settings.age(SHARED),
        // What is as old as a poll is no answer to the next one.
        others: context.builder.backends.web.settings().fresh.min(owner.interval() / 2),
        deadline: context.settings.source_deadline,
        wanted: &|_| true,
        records: None,
    };
    let heard = triggers.ask(&context.builder, &owner, how).await;
    let compat = context.settings.compat;
    let unbuilt = heard.iter().filter(|heard| !heard.is_built).find_map(|heard| heard.specs.clone().err());
    let answers: Vec<_> = match unbuilt {
        // To the original, one that cannot be built is the end of all.
        Some(error) if compat.is_strict() => {
            vec![JobTriggerResult { specs: Err(error), samples: Vec::new() }]
        }
        _ => heard.into_iter().map(|heard| heard.answer(compat)).collect(),
    };

    let _alone = entry.gate.lock().await;
    let Some(object) = context.store().scaled_job(id) else { return PollOutcome::default() };
    if object.metadata.deletion_timestamp.is_some()
        || !triggers.are_of(&ScaledResource::Job(Arc::clone(&object)))
    {
        return PollOutcome::default();
    }
    let round = gather(&object, &answers);
    {
        let mut object_state = entry.state();
        *object_state.errors.get_or_insert(0) += round.errors.len() as u64;
    }
    context.counters.polled();
    let jobs = context.store().jobs.of(&id.full_name());
    let wanted = decide(&object, &round, &jobs, context.settings.compat);
    let created = create(context, id, &object, wanted).await;
    let report = report(&object, &round, &created, context.clock.now(), compat);
    for event in &report.events {
        context.events.record_poll(EventSubject::Job, &object.metadata, event);
    }
    if let Some(patch) = &report.patch
        && let Err(error) = context.write_job(id, patch, "status").await
        && !error.is_not_found()
    {
        tracing::warn!(object = %id, %error, "failed to write a status");
    }
    for name in history(&object, &jobs) {
        let path = ResourcePath::job(&id.namespace, name);
        if let Err(error) = context.client.delete(path, Propagation::Background.as_str()).await {
            tracing::warn!(object = %id, job = name, %error, "failed to delete a finished job");
            break;
        }
    }
    PollOutcome::default()
}

/// Creates jobs, some at a time; how each fared. When none of those is let in, or something else is asked for by now, the rest is
/// left to the next poll: whoever waits for the object does not wait for that.
async fn create(
    context: &OperatorContext,
    id: &Id,
    object: &ScaledJob,
    wanted: i64,
) -> Vec<Result<(), String>> {
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let Some(body) = job(object).filter(|_| wanted > 0) else { return Vec::new() };
    let body = body.to_string().into_bytes();
    let one = |_| async {
        let made: Result<Job, ApiError> =
            context.client.create(ResourcePath::job(&id.namespace, ""), body.clone()).await;
        match made {
            Ok(made) => {
                // It counts from now on, whether the watch has told it or not.
                context.store().jobs.made(made);
                Ok(())
            }
            Err(error) => Err(error.message),
        }
    };
    let is_strict = context.settings.compat.is_strict();
    let mut all = Vec::new();
    while all.len() < wanted {
        let some = (wanted - all.len()).min(TOGETHER);
        let created: Vec<_> = futures::stream::iter(0..some).map(one).buffered(TOGETHER).collect().await;
        let is_refused = created.iter().all(Result::is_err);
        all.extend(created);
        if !is_strict && (is_refused || !is_asked(context, id, object)) {
            break;
        }
    }
    all
}

/// Whether jobs as this ScaledJob asks for them are still asked for.
fn is_asked(context: &OperatorContext, id: &Id, object: &ScaledJob) -> bool {
    context.store().scaled_job(id).is_some_and(|now| {
        let (was, now) = (&object.metadata, &now.metadata);
        (&was.uid, was.generation) == (&now.uid, now.generation)
            && now.deletion_timestamp.is_none()
            && !annotations::is_set(&now.annotations, annotations::PAUSED)
    })
}
