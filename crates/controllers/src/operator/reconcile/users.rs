//! TriggerAuthentications: who uses them, as their status says; held until we know that they are gone (spec 1.3, 2.9).

use std::sync::Arc;

use api::keda::{FINALIZER, TriggerAuthentication};
use keda::event::Event;
use serde_json::json;

use super::end::{is_held, release};
use crate::operator::core::Core;
use crate::operator::hand::Place;
use crate::operator::id::{Id, Kind, Name};
use crate::operator::tell::Subject;
use crate::operator::triggers::Owner;
use crate::operator::world::users_of;

fn place(name: &Name) -> Place<'_> {
    let plural =
        if name.namespace.is_empty() { "clustertriggerauthentications" } else { "triggerauthentications" };
    Place::keda(plural, &name.namespace, &name.name)
}

fn subject(name: &Name) -> Subject {
    if name.namespace.is_empty() { Subject::ClusterAuthentication } else { Subject::Authentication }
}

/// Notes in the status of TriggerAuthentications who uses them.
pub(super) async fn add(core: &Core, owner: &Owner) {
    note(core, owner, true).await;
}

/// Somebody uses them no longer.
pub(super) async fn remove(core: &Core, owner: &Owner) {
    note(core, owner, false).await;
}

/// Whether a ClusterTriggerAuthentication is used from another namespace under the same name: names stand there without
/// namespaces.
fn is_namesake(core: &Core, name: &Name, id: &Id) -> bool {
    let users = core.world().users(name);
    users.iter().any(|other| other != id && (other.kind, &other.name) == (id.kind, &id.name))
}

async fn note(core: &Core, owner: &Owner, adds: bool) {
    let id = &owner.id();
    for name in users_of(&id.full_name(), owner.triggers()) {
        let Some(found) = find(core, &name) else { continue };
        if !adds && is_namesake(core, &name, id) {
            continue;
        }
        let (field, old) = match id.kind {
            Kind::Object => ("scaledobjects", &found.status.scaledobjects),
            Kind::Job => ("scaledjobs", &found.status.scaledjobs),
        };
        let mut names: Vec<String> =
            old.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        match adds {
            true if !names.iter().any(|name| **name == *id.name) => names.push(id.name.to_string()),
            true => {}
            false => names.retain(|name| **name != *id.name),
        }
        let new = names.join(",");
        if new == *old {
            continue;
        }
        let patch = json!({"status": {field: Some(&new).filter(|new| !new.is_empty())}});
        match core.hand.merge::<TriggerAuthentication>(place(&name), "status", &patch).await {
            Ok(written) => core.world().wrote_authentication(&name, written),
            Err(error) => {
                tracing::warn!(authentication = %name.name, %error, "failed to note who uses a TriggerAuthentication");
            }
        }
    }
}

fn find(core: &Core, name: &Name) -> Option<Arc<TriggerAuthentication>> {
    let world = core.world();
    world.all_authentications().find(|(known, _)| *known == name).map(|(_, found)| Arc::clone(found))
}

/// A TriggerAuthentication has come, has changed (`is_news`) or is on its way out.
pub(crate) async fn authentication(core: &Core, name: &Name, is_news: bool) {
    let Some(found) = find(core, name) else { return };
    let (metadata, subject) = (&found.metadata, subject(name));
    let kind = subject.kind();
    if metadata.deletion_timestamp.is_some() {
        if is_held(metadata) && release(core, place(name), metadata).await.is_ok() {
            let reason = match subject {
                Subject::ClusterAuthentication => "ClusterTriggerAuthenticationDeleted",
                _ => "TriggerAuthenticationDeleted",
            };
            core.tell.controller(subject, metadata, &Event::normal(reason, format!("{kind} was deleted")));
        }
        return;
    }
    if is_held(metadata) {
        if is_news {
            core.tell.controller(subject, metadata, &updated(core, subject, &name.name));
        }
        return;
    }
    let mut finalizers = metadata.finalizers.clone();
    finalizers.push(FINALIZER.to_owned());
    let patch = json!({"metadata": {"resourceVersion": metadata.resource_version, "finalizers": finalizers}});
    match core.hand.merge::<TriggerAuthentication>(place(name), "", &patch).await {
        Ok(written) => {
            core.world().wrote_authentication(name, written);
            let reason = match subject {
                Subject::ClusterAuthentication => "ClusterTriggerAuthenticationAdded",
                _ => "TriggerAuthenticationAdded",
            };
            core.tell.controller(subject, metadata, &Event::normal(reason, format!("New {kind} configured")));
        }
        Err(error) => {
            tracing::debug!(authentication = %name.name, %error, "failed to hold a TriggerAuthentication");
        }
    }
}

/// The original says it of all of them in the words of those of the cluster.
fn updated(core: &Core, subject: Subject, name: &str) -> Event {
    if subject == Subject::ClusterAuthentication || core.settings.compat.is_strict() {
        let note = format!("ClusterTriggerAuthentication {name} is updated");
        return Event::normal("ClusterTriggerAuthenticationUpdated", note);
    }
    Event::normal("TriggerAuthenticationUpdated", format!("TriggerAuthentication {name} is updated"))
}
