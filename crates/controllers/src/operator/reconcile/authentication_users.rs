//! TriggerAuthentications: the finalizer, and the names of their users in the status (docs/spec/keda.md 1.3, 2.9).

use std::collections::BTreeSet;
use std::sync::Arc;

use api::keda::{AuthenticationRef, FINALIZER, TriggerAuthentication};
use cluster::request::ApiError;
use keda::event::Event;
use serde_json::json;

use crate::operator::apply::AuthenticationApplier;
use crate::operator::context::OperatorContext;
use crate::operator::decide::conditions::{has_finalizer, without_finalizer};
use crate::operator::effect::AuthenticationEffect;
use crate::operator::id::{EventSubject, NamespacedName, ResourceId, ResourceKind};
use crate::operator::retry::retry_delay;
use crate::operator::scaled_resource::ScaledResource;
use crate::operator::store::{AuthenticationChange, Store, users_of};

const CLUSTER_KIND: &str = "ClusterTriggerAuthentication";
/// Writes of one status that meet a conflict.
const MAX_STATUS_ATTEMPTS: u32 = 8;
/// Attempts to add or remove a finalizer. With the delays in between they take about half an hour.
const MAX_FINALIZER_ATTEMPTS: u32 = 18;

/// Whether an object uses a TriggerAuthentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usage {
    Used,
    Unused,
}

/// Adds an object to the users of its TriggerAuthentications. `before` are the names of those that it used before, joined with
/// commas.
pub(super) async fn add(context: &OperatorContext, owner: &ScaledResource, before: &str) {
    update(context, owner, before, Usage::Used).await;
}

/// Removes an object from the users of its TriggerAuthentications.
pub(super) async fn remove(context: &OperatorContext, owner: &ScaledResource) {
    update(context, owner, "", Usage::Unused).await;
}

async fn update(context: &OperatorContext, owner: &ScaledResource, before: &str, usage: Usage) {
    let id = owner.id();
    let used = users_of(&id.full_name(), owner.triggers());
    // The status holds only the names, not the kinds, of those that were used before. KEDA never removes their user.
    let before = before.split(',').filter(|name| !name.is_empty() && !context.settings.compat.is_strict());
    let before =
        before.flat_map(|name| [NamespacedName::new(&id.namespace, name), NamespacedName::new("", name)]);
    let before: Vec<NamespacedName> = before.filter(|name| !used.contains(name)).collect();
    let all = used.iter().map(|name| (name, usage));
    for (name, usage) in all.chain(before.iter().map(|name| (name, Usage::Unused))) {
        if let Err(error) = write_users(context, name, &id, usage).await {
            tracing::warn!(authentication = %name.name, %error, "failed to write the users of a TriggerAuthentication");
        }
    }
}

/// Writes the users of one TriggerAuthentication. Several writers may meet; after a conflict the newest status is read.
async fn write_users(
    context: &OperatorContext,
    name: &NamespacedName,
    id: &ResourceId,
    usage: Usage,
) -> Result<(), ApiError> {
    let Some(mut found) = find(context, name) else { return Ok(()) };
    let mut attempt = 1;
    loop {
        let (field, old) = match id.kind {
            ResourceKind::Object => ("scaledobjects", &found.status.scaledobjects),
            ResourceKind::Job => ("scaledjobs", &found.status.scaledjobs),
        };
        let Some(new) = users(context, name, id, usage, old) else { return Ok(()) };
        let patch = json!({
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "status": {field: Some(new).filter(|new| !new.is_empty())},
        });
        let applier = AuthenticationApplier { context, name, metadata: &found.metadata };
        match applier.apply(AuthenticationEffect::PatchStatus(patch)).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) if error.is_conflict() && attempt < MAX_STATUS_ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
        // An empty patch returns the newest object and needs no permission to read it.
        let newest = applier.apply(AuthenticationEffect::PatchStatus(json!({}))).await?;
        let Some(newest) = newest else { return Ok(()) };
        found = newest;
    }
}

/// The new list of users, joined with commas; none if the old one may stay.
fn users(
    context: &OperatorContext,
    name: &NamespacedName,
    id: &ResourceId,
    usage: Usage,
    old: &str,
) -> Option<String> {
    let listed = || old.split(',').filter(|user| !user.is_empty());
    let (is_listed, is_used) = (listed().any(|user| user == &*id.name), usage == Usage::Used);
    if is_used == is_listed {
        return None;
    }
    let store = context.store();
    let others = store.users(name);
    let mut others =
        others.iter().filter(|other| *other != id && other.kind == id.kind && !is_deleted(&store, other));
    // The list has no namespaces, so a user of a ClusterTriggerAuthentication may have a namesake in another namespace.
    if !is_used && others.clone().any(|other| other.name == id.name) {
        return None;
    }
    let kept: Vec<&str> = listed().filter(|user| is_used || *user != &*id.name).collect();
    let mut new: BTreeSet<&str> = Some(&*id.name).filter(|_| is_used).into_iter().collect();
    if !context.settings.compat.is_strict() {
        // All known users are added in the same write, so that many new objects need few writes. No other user is removed, because
        // it may be in a namespace that this operator does not watch.
        new.extend(others.by_ref().map(|other| &*other.name));
    }
    for user in &kept {
        new.remove(user);
    }
    Some(kept.into_iter().chain(new).collect::<Vec<_>>().join(","))
}

/// Whether an object is gone or being deleted.
fn is_deleted(store: &Store, id: &ResourceId) -> bool {
    match id.kind {
        ResourceKind::Object => store.object(id).is_none_or(|own| own.metadata.deletion_timestamp.is_some()),
        ResourceKind::Job => store.scaled_job(id).is_none_or(|own| own.metadata.deletion_timestamp.is_some()),
    }
}

fn find(context: &OperatorContext, name: &NamespacedName) -> Option<Arc<TriggerAuthentication>> {
    let kind = if name.namespace.is_empty() { CLUSTER_KIND } else { "" };
    let reference = AuthenticationRef { name: name.name.to_string(), kind: kind.to_owned() };
    context.store().authentication(&name.namespace, &reference)
}

/// Adds or removes the finalizer of a TriggerAuthentication. A write that fails is retried, because nothing else removes the
/// finalizer.
pub(crate) async fn reconcile_authentication(
    context: &OperatorContext,
    name: &NamespacedName,
    change: AuthenticationChange,
) {
    for failures in 1..=MAX_FINALIZER_ATTEMPTS {
        match update_finalizer(context, name, change).await {
            Err(error) if !error.is_not_found() => {
                tracing::warn!(authentication = %name.name, %error, "failed to update the finalizer of a TriggerAuthentication");
            }
            _ => return,
        }
        tokio::time::sleep(retry_delay(failures)).await;
    }
}

async fn update_finalizer(
    context: &OperatorContext,
    name: &NamespacedName,
    change: AuthenticationChange,
) -> Result<(), ApiError> {
    let Some(found) = find(context, name) else { return Ok(()) };
    let (metadata, subject) = (&found.metadata, EventSubject::authentication(name));
    let applier = AuthenticationApplier { context, name, metadata };
    let (kind, is_cluster) = (subject.kind(), subject == EventSubject::ClusterAuthentication);
    if metadata.deletion_timestamp.is_some() {
        if has_finalizer(metadata) {
            applier.apply(AuthenticationEffect::RemoveFinalizer(without_finalizer(metadata))).await?;
            let reason = if is_cluster {
                "ClusterTriggerAuthenticationDeleted"
            } else {
                "TriggerAuthenticationDeleted"
            };
            let event = Event::normal(reason, format!("{kind} was deleted"));
            applier.apply(AuthenticationEffect::Event(event)).await?;
        }
        return Ok(());
    }
    if has_finalizer(metadata) {
        if change == AuthenticationChange::SpecEdited {
            let event = updated(context, subject, &name.name);
            applier.apply(AuthenticationEffect::Event(event)).await?;
        }
        return Ok(());
    }
    let mut finalizers = metadata.finalizers.clone();
    finalizers.push(FINALIZER.to_owned());
    let patch = json!({"metadata": {"resourceVersion": metadata.resource_version, "finalizers": finalizers}});
    applier.apply(AuthenticationEffect::PatchObject(patch)).await?;
    let reason = if is_cluster { "ClusterTriggerAuthenticationAdded" } else { "TriggerAuthenticationAdded" };
    let event = Event::normal(reason, format!("New {kind} configured"));
    applier.apply(AuthenticationEffect::Event(event)).await?;
    Ok(())
}

/// The event of an edit. KEDA uses the text for ClusterTriggerAuthentications in both cases.
fn updated(context: &OperatorContext, subject: EventSubject, name: &str) -> Event {
    if subject == EventSubject::ClusterAuthentication || context.settings.compat.is_strict() {
        let note = format!("ClusterTriggerAuthentication {name} is updated");
        return Event::normal("ClusterTriggerAuthenticationUpdated", note);
    }
    Event::normal("TriggerAuthenticationUpdated", format!("TriggerAuthentication {name} is updated"))
}
