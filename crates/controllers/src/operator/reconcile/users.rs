//! TriggerAuthentications: who uses them, as their status says; held until we know that they are gone (docs/spec/keda.md 1.3, 2.9).

use std::collections::BTreeSet;
use std::sync::Arc;

use api::keda::{AuthenticationRef, FINALIZER, TriggerAuthentication};
use cluster::request::ApiError;
use keda::event::Event;
use serde_json::json;

use super::end::{is_held, release};
use super::pause;
use crate::operator::context::OperatorContext;
use crate::operator::event_recorder::EventSubject;
use crate::operator::id::{Id, Kind, Name};
use crate::operator::leader_client::ResourcePath;
use crate::operator::scalers_cache::ScaledResource;
use crate::operator::store::{Store, users_of};

/// The kind of those that are in no namespace.
const CLUSTER: &str = "ClusterTriggerAuthentication";
/// SampleQuery often a status is written anew when somebody else wrote in between.
const ATTEMPTS: u32 = 8;
/// SampleQuery often it is tried to hold one, or to let it go: with the pauses in between, for about half an hour.
const PATIENCE: u32 = 18;

fn path(name: &Name) -> ResourcePath<'_> {
    let plural =
        if name.namespace.is_empty() { "clustertriggerauthentications" } else { "triggerauthentications" };
    ResourcePath::keda(plural, &name.namespace, &name.name)
}

fn subject(name: &Name) -> EventSubject {
    if name.namespace.is_empty() { EventSubject::ClusterAuthentication } else { EventSubject::Authentication }
}

/// ObjectState in the status of TriggerAuthentications who uses them; `before` are names of those it used until now, with commas.
pub(super) async fn add(context: &OperatorContext, owner: &ScaledResource, before: &str) {
    note(context, owner, before, true).await;
}

/// Somebody uses them no longer.
pub(super) async fn remove(context: &OperatorContext, owner: &ScaledResource) {
    note(context, owner, "", false).await;
}

async fn note(context: &OperatorContext, owner: &ScaledResource, before: &str, adds: bool) {
    let id = owner.id();
    let used = users_of(&id.full_name(), owner.triggers());
    // Of what it used until now only the names are known. The original leaves it there for good.
    let before = before.split(',').filter(|name| !name.is_empty() && !context.settings.compat.is_strict());
    let before = before.flat_map(|name| [Name::new(&id.namespace, name), Name::new("", name)]);
    let before: Vec<Name> = before.filter(|name| !used.contains(name)).collect();
    let all = used.iter().map(|name| (name, adds)).chain(before.iter().map(|name| (name, false)));
    for (name, uses) in all {
        if let Err(error) = settle(context, name, &id, uses).await {
            tracing::warn!(authentication = %name.name, %error, "failed to note who uses a TriggerAuthentication");
        }
    }
}

/// Says of one TriggerAuthentication who uses it. Many may want to at once, and each reads what it changes: who comes too late
/// reads again.
async fn settle(context: &OperatorContext, name: &Name, id: &Id, uses: bool) -> Result<(), ApiError> {
    let Some(mut found) = find(context, name) else { return Ok(()) };
    let mut attempt = 1;
    loop {
        let (field, old) = match id.kind {
            Kind::Object => ("scaledobjects", &found.status.scaledobjects),
            Kind::Job => ("scaledjobs", &found.status.scaledjobs),
        };
        let Some(new) = users(context, name, id, uses, old) else { return Ok(()) };
        let patch = json!({
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "status": {field: Some(new).filter(|new| !new.is_empty())},
        });
        match context.client.merge::<TriggerAuthentication>(path(name), "status", &patch).await {
            Ok(written) => {
                context.store().wrote_authentication(name, written);
                return Ok(());
            }
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
        // A patch that changes nothing tells what is there, and needs no further right.
        let newest: TriggerAuthentication = context.client.merge(path(name), "status", &json!({})).await?;
        context.store().wrote_authentication(name, newest.clone());
        found = Arc::new(newest);
    }
}

/// The names that should stand there, with commas, if somebody uses it from now on or no longer; none if those that do stand
/// there may stay.
fn users(context: &OperatorContext, name: &Name, id: &Id, uses: bool, old: &str) -> Option<String> {
    let stand = || old.split(',').filter(|user| !user.is_empty());
    let is_there = stand().any(|user| user == &*id.name);
    if uses == is_there {
        return None;
    }
    let store = context.store();
    let others = store.users(name);
    let mut others =
        others.iter().filter(|other| *other != id && other.kind == id.kind && !is_going(&store, other));
    // Names stand there without namespaces: of those of the cluster a namesake may be a user.
    if !uses && others.clone().any(|other| other.name == id.name) {
        return None;
    }
    let kept: Vec<&str> = stand().filter(|user| uses || *user != &*id.name).collect();
    let mut new: BTreeSet<&str> = Some(&*id.name).filter(|_| uses).into_iter().collect();
    if !context.settings.compat.is_strict() {
        // Whoever else uses it is noted along with it: many who come at once need few writes. Nobody else is taken away, since
        // others may be in namespaces that are not ours.
        new.extend(others.by_ref().map(|other| &*other.name));
    }
    for user in &kept {
        new.remove(user);
    }
    Some(kept.into_iter().chain(new).collect::<Vec<_>>().join(","))
}

/// Whether an object is gone, or on its way out.
fn is_going(store: &Store, id: &Id) -> bool {
    match id.kind {
        Kind::Object => store.object(id).is_none_or(|own| own.metadata.deletion_timestamp.is_some()),
        Kind::Job => store.scaled_job(id).is_none_or(|own| own.metadata.deletion_timestamp.is_some()),
    }
}

fn find(context: &OperatorContext, name: &Name) -> Option<Arc<TriggerAuthentication>> {
    let kind = if name.namespace.is_empty() { CLUSTER } else { "" };
    let of = AuthenticationRef { name: name.name.to_string(), kind: kind.to_owned() };
    context.store().authentication(&name.namespace, &of)
}

/// A TriggerAuthentication has come, has changed (`is_news`) or is on its way out. What cannot be written is tried again:
/// nobody else lets go of it.
pub(crate) async fn authentication(context: &OperatorContext, name: &Name, is_news: bool) {
    for failures in 1..=PATIENCE {
        match attend(context, name, is_news).await {
            Err(error) if !error.is_not_found() => {
                tracing::warn!(authentication = %name.name, %error, "failed to hold a TriggerAuthentication, or to let it go");
            }
            _ => return,
        }
        tokio::time::sleep(pause(failures)).await;
    }
}

async fn attend(context: &OperatorContext, name: &Name, is_news: bool) -> Result<(), ApiError> {
    let Some(found) = find(context, name) else { return Ok(()) };
    let (metadata, subject) = (&found.metadata, subject(name));
    let kind = subject.kind();
    if metadata.deletion_timestamp.is_some() {
        if is_held(metadata) {
            release(context, path(name), metadata).await?;
            let reason = match subject {
                EventSubject::ClusterAuthentication => "ClusterTriggerAuthenticationDeleted",
                _ => "TriggerAuthenticationDeleted",
            };
            context.events.record_reconcile(
                subject,
                metadata,
                &Event::normal(reason, format!("{kind} was deleted")),
            );
        }
        return Ok(());
    }
    if is_held(metadata) {
        if is_news {
            context.events.record_reconcile(subject, metadata, &updated(context, subject, &name.name));
        }
        return Ok(());
    }
    let mut finalizers = metadata.finalizers.clone();
    finalizers.push(FINALIZER.to_owned());
    let patch = json!({"metadata": {"resourceVersion": metadata.resource_version, "finalizers": finalizers}});
    let written = context.client.merge::<TriggerAuthentication>(path(name), "", &patch).await?;
    context.store().wrote_authentication(name, written);
    let reason = match subject {
        EventSubject::ClusterAuthentication => "ClusterTriggerAuthenticationAdded",
        _ => "TriggerAuthenticationAdded",
    };
    context.events.record_reconcile(
        subject,
        metadata,
        &Event::normal(reason, format!("New {kind} configured")),
    );
    Ok(())
}

/// The original says it of all of them in the words of those of the cluster.
fn updated(context: &OperatorContext, subject: EventSubject, name: &str) -> Event {
    if subject == EventSubject::ClusterAuthentication || context.settings.compat.is_strict() {
        let note = format!("ClusterTriggerAuthentication {name} is updated");
        return Event::normal("ClusterTriggerAuthenticationUpdated", note);
    }
    Event::normal("TriggerAuthenticationUpdated", format!("TriggerAuthentication {name} is updated"))
}
