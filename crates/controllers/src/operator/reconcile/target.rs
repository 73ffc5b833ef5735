//! What is scaled (spec 2.5).

use api::keda::{GroupVersionKindResource, ScaledObject};
use keda::admission::{Target, TargetError};
use keda::event::Event;
use serde_json::Value;

use crate::operator::core::Core;
use crate::operator::hand::Place;
use crate::operator::tell::Subject;

/// Finds the target, and notes in the status what it is and how many replicas it had at first.
pub(super) async fn resolve(core: &Core, object: &mut ScaledObject) -> Result<(), String> {
    let found = match find(core, object).await {
        Ok(found) => found,
        Err(error) => {
            let event = Event::warning("ScaledObjectUpdateFailed", error.clone());
            core.tell.controller(Subject::Object, &object.metadata, &event);
            return Err(error);
        }
    };
    let replicas = replicas(core, object, &found).await?;
    let status = &mut object.status;
    status.scale_target_kind = format!("{}/{}.{}", found.group, found.version, found.kind);
    status.scale_target_gvkr = Some(found);
    status.original_replica_count.get_or_insert(replicas);
    Ok(())
}

async fn find(core: &Core, object: &ScaledObject) -> Result<GroupVersionKindResource, String> {
    let reference = &object.spec.scale_target_ref;
    let target = Target::parse(&reference.api_version, &reference.kind, &reference.name);
    let Target { group, version, kind, .. } = target.map_err(|error| error.to_string())?;
    let resource = match kind.as_str() {
        // Whatever their group.
        "Deployment" => "deployments".to_owned(),
        "StatefulSet" => "statefulsets".to_owned(),
        _ => {
            // That the server cannot be asked does not mean that it has no such kind.
            let known = core.hand.discovery.mapping(&group, &version, &kind).await;
            match known.map_err(|error| error.message)? {
                Some(resource) => resource.plural,
                None => {
                    let version = object.target_api_version().to_owned();
                    return Err(TargetError::NoMatch { kind, version }.to_string());
                }
            }
        }
    };
    Ok(GroupVersionKindResource { group, version, kind, resource })
}

/// How many replicas it is to have; that also says that it is there and can be scaled.
async fn replicas(
    core: &Core,
    object: &ScaledObject,
    target: &GroupVersionKindResource,
) -> Result<i32, String> {
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    if let Some(known) = core.eyes.cached(&target.group, &target.kind, namespace, name) {
        return Ok(known);
    }
    let error = match core.hand.scale(namespace, name, target).await {
        Ok(held) => return Ok(held.scale.spec_replicas),
        Err(error) => error,
    };
    let place =
        Place { group: &target.group, version: &target.version, plural: &target.resource, namespace, name };
    let note = match core.hand.get_metadata::<Value>(place).await {
        Ok(_) => Some("Target resource doesn't expose /scale subresource"),
        Err(error) if error.is_not_found() => Some("Target resource doesn't exist"),
        // Nobody knows; the error of the reconcile says why.
        Err(_) => None,
    };
    if let Some(note) = note {
        let event = Event::warning("ScaledObjectCheckFailed", note);
        core.tell.controller(Subject::Object, &object.metadata, &event);
    }
    Err(error.message)
}
