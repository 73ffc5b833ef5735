//! Creates the jobs of a ScaledJob.

use api::keda::{ScaledJob, annotations};
use api::meta::ObjectMeta;
use cluster::request::ApiError;
use futures::StreamExt as _;
use serde_json::Value;

use super::Applier;
use crate::operator::id::NamespacedName;
use crate::operator::leader_client::ResourcePath;
use crate::operator::store::Job;

/// Jobs of one ScaledJob that are created concurrently.
const MAX_CONCURRENT_JOB_CREATIONS: usize = 16;

/// Creates jobs, some concurrently; returns the result of each. When a whole batch is refused, or the ScaledJob has changed, the
/// rest is left to the next poll, so that nothing else waits for the object's lock.
pub(super) async fn create(
    applier: &Applier<'_>,
    manifest: &Value,
    names: &[String],
) -> Vec<Result<(), ApiError>> {
    let context = applier.context;
    let Some(before) = context.store().scaled_job(applier.id) else { return Vec::new() };
    let is_strict = context.settings.compat.is_strict();
    let mut all = Vec::new();
    for batch in names.chunks(MAX_CONCURRENT_JOB_CREATIONS) {
        let created = futures::stream::iter(batch.to_vec());
        let created = created.map(|name| async move { create_one(applier, manifest, &name).await });
        let created: Vec<_> = created.buffered(MAX_CONCURRENT_JOB_CREATIONS).collect().await;
        let is_refused = created.iter().all(Result::is_err);
        all.extend(created);
        if !is_strict && (is_refused || !still_accepts_jobs(applier, &before)) {
            break;
        }
    }
    all
}

async fn create_one(applier: &Applier<'_>, manifest: &Value, name: &str) -> Result<(), ApiError> {
    let path = ResourcePath::job(&applier.id.namespace, name);
    let mut manifest = manifest.clone();
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("name".to_owned(), name.into());
    }
    match applier.context.client.create(path, &manifest).await {
        Ok(job) => add_created(applier, job),
        // An earlier request may have created it: one without a response, one that was repeated, or one of another instance.
        Err(error) if error.is_already_exists() || error.is_unsettled() => {
            let entry = applier.context.entry(applier.id);
            entry.state().unsettled_jobs.insert(name);
            let found = find(applier, name).await;
            // Where the operator may not get Jobs, it cannot see whose Job has the name, so the name is given up after some attempts.
            let is_taken = found == Found::Unknown && error.is_already_exists();
            if is_taken && entry.state().unsettled_jobs.count_taken(name) {
                applier.context.store().jobs.avoid(NamespacedName::new(&applier.id.namespace, name));
                entry.state().unsettled_jobs.remove(name);
            }
            if found != Found::Ours {
                return Err(error);
            }
        }
        Err(error) => return Err(error),
    }
    applier.context.entry(applier.id).state().unsettled_jobs.remove(name);
    Ok(())
}

/// Looks for the jobs whose creation had no clear response. Returns the names that may still be free: new jobs get them first, so that
/// a creation which is carried out late, or was carried out unseen, makes no additional job.
pub(crate) async fn settle_creations(applier: &Applier<'_>) -> Vec<String> {
    let entry = applier.context.entry(applier.id);
    let unsettled = entry.state().unsettled_jobs.names();
    let mut free = Vec::new();
    for name in unsettled {
        let is_known = applier.context.store().jobs.is_known(&applier.id.namespace, &name);
        match if is_known { Found::Foreign } else { find(applier, &name).await } {
            Found::Ours | Found::Foreign => {
                entry.state().unsettled_jobs.remove(&name);
            }
            // Waiting for an answer would stop a ScaledJob for ever where the operator may not get Jobs.
            Found::Nothing | Found::Unknown => free.push(name),
        }
    }
    free
}

/// What has the name of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// A job of the ScaledJob, which counts from now on.
    Ours,
    /// Another job, now or before; the next poll chooses another name.
    Foreign,
    Nothing,
    /// The API server did not say.
    Unknown,
}

async fn find(applier: &Applier<'_>, name: &str) -> Found {
    let namespace = &applier.id.namespace;
    match applier.context.client.get::<Value>(ResourcePath::job(namespace, name)).await {
        Ok(job) if is_of(&job, applier.metadata) => {
            add_created(applier, job);
            Found::Ours
        }
        Ok(_) => {
            applier.context.store().jobs.avoid(NamespacedName::new(namespace, name));
            Found::Foreign
        }
        Err(error) if error.is_not_found() => Found::Nothing,
        Err(_) => Found::Unknown,
    }
}

/// Counts a job from now on, even if the watch has not delivered it.
fn add_created(applier: &Applier<'_>, job: Value) {
    if let Ok(job) = serde_json::from_value::<Job>(job) {
        applier.context.store().jobs.add_created(job);
    }
}

/// Whether this is a job of the ScaledJob, which owns it and counts it.
fn is_of(job: &Value, scaled_job: &ObjectMeta) -> bool {
    let owners = job.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let is_owner = |owner: &Value| owner.get("uid").and_then(Value::as_str) == Some(&scaled_job.uid);
    let label = job.pointer("/metadata/labels").and_then(|labels| labels.get(annotations::SCALED_JOB_NAME));
    owners.is_some_and(|owners| owners.iter().any(is_owner))
        && label.and_then(Value::as_str) == Some(&scaled_job.name)
}

/// Whether the ScaledJob is still the one that the jobs were decided for, and neither deleted nor paused.
fn still_accepts_jobs(applier: &Applier<'_>, before: &ScaledJob) -> bool {
    applier.context.store().scaled_job(applier.id).is_some_and(|now| {
        let (was, now) = (&before.metadata, &now.metadata);
        (&was.uid, was.generation) == (&now.uid, now.generation)
            && now.deletion_timestamp.is_none()
            && !annotations::is_set(&now.annotations, annotations::PAUSED)
    })
}
