//! One round of a ScaledJob: ask, decide, create and delete jobs, report (docs/spec/keda.md 5.3, 5.4).

use std::sync::Arc;

use api::keda::{ScaledJob, annotations};
use cluster::request::ApiError;
use futures::StreamExt as _;
use keda::jobs::{Answer, Propagation, decide, gather, history, job, report};

use super::{Polled, SHARED};
use crate::operator::core::Core;
use crate::operator::hand::Place;
use crate::operator::id::Id;
use crate::operator::tell::Subject;
use crate::operator::triggers::{How, Owner};
use crate::operator::world::Job;

/// So many jobs of one ScaledJob are created at a time.
const TOGETHER: usize = 16;

pub(super) async fn poll(core: &Core, id: &Id) -> Polled {
    let Some(object) = core.world().scaled_job(id) else { return Polled::default() };
    let item = core.item(id);
    let owner = Owner::Job(Arc::clone(&object));
    let triggers = core.triggers(&item, &owner);
    let how = How {
        age: core.settings.age(SHARED),
        failures: core.settings.age(SHARED),
        // What is as old as a poll is no answer to the next one.
        others: core.maker.backends.web.settings().fresh.min(owner.interval() / 2),
        deadline: core.settings.source_deadline,
        wanted: &|_| true,
        records: None,
    };
    let heard = triggers.ask(&core.maker, &owner, how).await;
    let compat = core.settings.compat;
    let unbuilt = heard.iter().filter(|heard| !heard.is_built).find_map(|heard| heard.specs.clone().err());
    let answers: Vec<_> = match unbuilt {
        // To the original, one that cannot be built is the end of all.
        Some(error) if compat.is_strict() => vec![Answer { specs: Err(error), samples: Vec::new() }],
        _ => heard.into_iter().map(|heard| heard.answer(compat)).collect(),
    };

    let _alone = item.gate.lock().await;
    let Some(object) = core.world().scaled_job(id) else { return Polled::default() };
    if object.metadata.deletion_timestamp.is_some() || !triggers.are_of(&Owner::Job(Arc::clone(&object))) {
        return Polled::default();
    }
    let round = gather(&object, &answers);
    {
        let mut notes = item.notes();
        *notes.errors.get_or_insert(0) += round.errors.len() as u64;
    }
    core.counters.polled();
    let jobs = core.world().jobs.of(&id.full_name());
    let wanted = decide(&object, &round, &jobs, core.settings.compat);
    let created = create(core, id, &object, wanted).await;
    let report = report(&object, &round, &created, core.clock.now(), compat);
    for event in &report.events {
        core.tell.round(Subject::Job, &object.metadata, event);
    }
    if let Some(patch) = &report.patch
        && let Err(error) = core.write_job(id, patch, "status").await
        && !error.is_not_found()
    {
        tracing::warn!(object = %id, %error, "failed to write a status");
    }
    for name in history(&object, &jobs) {
        let place = Place::job(&id.namespace, name);
        if let Err(error) = core.hand.delete(place, Propagation::Background.as_str()).await {
            tracing::warn!(object = %id, job = name, %error, "failed to delete a finished job");
            break;
        }
    }
    Polled::default()
}

/// Creates jobs, some at a time; how each fared. When none of those is let in, or something else is asked for by now, the rest is
/// left to the next poll: whoever waits for the object does not wait for that.
async fn create(core: &Core, id: &Id, object: &ScaledJob, wanted: i64) -> Vec<Result<(), String>> {
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let Some(body) = job(object).filter(|_| wanted > 0) else { return Vec::new() };
    let body = body.to_string().into_bytes();
    let one = |_| async {
        let made: Result<Job, ApiError> = core.hand.create(Place::job(&id.namespace, ""), body.clone()).await;
        match made {
            Ok(made) => {
                // It counts from now on, whether the watch has told it or not.
                core.world().jobs.made(made);
                Ok(())
            }
            Err(error) => Err(error.message),
        }
    };
    let is_strict = core.settings.compat.is_strict();
    let mut all = Vec::new();
    while all.len() < wanted {
        let some = (wanted - all.len()).min(TOGETHER);
        let created: Vec<_> = futures::stream::iter(0..some).map(one).buffered(TOGETHER).collect().await;
        let is_refused = created.iter().all(Result::is_err);
        all.extend(created);
        if !is_strict && (is_refused || !is_asked(core, id, object)) {
            break;
        }
    }
    all
}

/// Whether jobs as this ScaledJob asks for them are still asked for.
fn is_asked(core: &Core, id: &Id, object: &ScaledJob) -> bool {
    core.world().scaled_job(id).is_some_and(|now| {
        let (was, now) = (&object.metadata, &now.metadata);
        (&was.uid, was.generation) == (&now.uid, now.generation)
            && now.deletion_timestamp.is_none()
            && !annotations::is_set(&now.annotations, annotations::PAUSED)
    })
}
