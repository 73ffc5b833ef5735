//! What is scaled (docs/spec/keda.md 2.5).

use api::keda::{GroupVersionKindResource, ScaledObject};
use cluster::discovery::ScaleKind;
use keda::admission::{Target, TargetError};
use keda::event::Event;
use serde_json::Value;

use crate::operator::context::OperatorContext;
use crate::operator::event_recorder::EventSubject;
use crate::operator::leader_client::{ResourcePath, resource};

/// What an API server answers to whom it does not allow something.
const FORBIDDEN: u16 = 403;
const NOT_THERE: &str = "Target resource doesn't exist";
const NOT_SCALABLE: &str = "Target resource doesn't expose /scale subresource";

/// Finds the target, and object_state in the status what it is and how many replicas it had at first.
pub(super) async fn resolve(context: &OperatorContext, object: &mut ScaledObject) -> Result<(), String> {
    let found = match find(context, object).await {
        Ok(found) => found,
        Err(error) => {
            let event = Event::warning("ScaledObjectUpdateFailed", error.clone());
            context.events.record_reconcile(EventSubject::Object, &object.metadata, &event);
            return Err(error);
        }
    };
    let replicas = replicas(context, object, &found).await?;
    let status = &mut object.status;
    status.scale_target_kind = format!("{}/{}.{}", found.group, found.version, found.kind);
    status.scale_target_gvkr = Some(found);
    status.original_replica_count.get_or_insert(replicas);
    Ok(())
}

async fn find(context: &OperatorContext, object: &ScaledObject) -> Result<GroupVersionKindResource, String> {
    let reference = &object.spec.scale_target_ref;
    let target = Target::parse(&reference.api_version, &reference.kind, &reference.name);
    let Target { group, version, kind, .. } = target.map_err(|error| error.to_string())?;
    let resource = match kind.as_str() {
        // Whatever their group.
        "Deployment" => "deployments".to_owned(),
        "StatefulSet" => "statefulsets".to_owned(),
        _ => {
            // That the server cannot be asked does not mean that it has no such kind.
            let known = context.client.discovery.mapping(&group, &version, &kind).await;
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

/// SampleQuery many replicas it is to have; that also says that it is there and can be scaled.
async fn replicas(
    context: &OperatorContext,
    object: &ScaledObject,
    target: &GroupVersionKindResource,
) -> Result<i32, String> {
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    if let Some(known) = context.reader.cached(&target.group, &target.kind, namespace, name) {
        return Ok(known);
    }
    let error = match context.client.scale(namespace, name, target).await {
        Ok(held) => return Ok(held.scale.spec_replicas),
        Err(error) => error,
    };
    if error.code == FORBIDDEN && !context.settings.compat.is_strict() {
        // Nobody knows whether it is there; what is missing is a right.
        return Err(format!("{}; {}", error.message, missing_right(target)));
    }
    let path = ResourcePath {
        group: &target.group,
        version: &target.version,
        plural: &target.resource,
        namespace,
        name,
    };
    let note = match context.client.get_metadata::<Value>(path).await {
        Ok(_) => Some(NOT_SCALABLE),
        Err(error) if error.is_not_found() => Some(NOT_THERE),
        // To scale a target nobody needs to get it; what its kind offers is known to all.
        Err(other) if other.code == FORBIDDEN && error.is_not_found() => by_kind(context, target).await,
        // Nobody knows; the error of the reconcile says why.
        Err(_) => None,
    };
    if let Some(note) = note {
        let event = Event::warning("ScaledObjectCheckFailed", note);
        context.events.record_reconcile(EventSubject::Object, &object.metadata, &event);
    }
    Err(error.message)
}

/// Why a scale is not there, as far as the kind of its object tells.
async fn by_kind(context: &OperatorContext, target: &GroupVersionKindResource) -> Option<&'static str> {
    match context.client.discovery.scale_kind(&resource(target)).await {
        ScaleKind::Served(_) => Some(NOT_THERE),
        ScaleKind::Absent => Some(NOT_SCALABLE),
        ScaleKind::Unknown => None,
    }
}

/// What is to be allowed so that a target can be scaled.
fn missing_right(target: &GroupVersionKindResource) -> String {
    let GroupVersionKindResource { group, resource, .. } = target;
    format!(
        "the operator needs a role that allows to get and update {resource}/scale of API group {group:?} (that of \
         deploy/operator allows it for all kinds)"
    )
}
