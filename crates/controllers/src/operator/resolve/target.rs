//! Resolves the scale target of a ScaledObject (docs/spec/keda.md 2.5).

use api::keda::{GroupVersionKindResource, ScaledObject};
use cluster::discovery::ScaleKind;
use cluster::request::ApiError;
use engine::{RecordedError, RequestFailure, ScaleReadError};
use keda::admission::{Target, TargetError};
use keda::event::Event;
use serde_json::Value;

use crate::operator::context::OperatorContext;
use crate::operator::leader_client::{ResourcePath, resource};

const HTTP_FORBIDDEN: u16 = 403;
const NOT_FOUND_NOTE: &str = "Target resource doesn't exist";
const NOT_SCALABLE_NOTE: &str = "Target resource doesn't expose /scale subresource";

/// A target that exists and can be scaled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedTarget {
    pub(crate) resource: GroupVersionKindResource,
    pub(crate) replicas: i32,
}

impl ResolvedTarget {
    /// Writes the target, and its first replica count, into the status.
    pub(crate) fn write_to(self, object: &mut ScaledObject) {
        let Self { resource, replicas } = self;
        let status = &mut object.status;
        status.scale_target_kind = format!("{}/{}.{}", resource.group, resource.version, resource.kind);
        status.scale_target_gvkr = Some(resource);
        status.original_replica_count.get_or_insert(replicas);
    }
}

/// Why a target was not resolved: the cause for the condition, what failed, and an event that is recorded before it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct TargetFailure {
    pub(crate) cause: String,
    pub(crate) read: ScaleReadError,
    pub(crate) event: Option<Event>,
}

/// Why the kind of a target is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum KindError {
    /// The reference is invalid, or the cluster has no such kind.
    #[error(transparent)]
    Reference(#[from] TargetError),
    /// Discovery failed.
    #[error(transparent)]
    Discovery(#[from] ApiError),
}

/// Finds the target and its replica count.
pub(crate) async fn resolve(
    context: &OperatorContext,
    object: &ScaledObject,
) -> Result<ResolvedTarget, TargetFailure> {
    let resource = find(context, object).await.map_err(|error| {
        let cause = error.to_string();
        let event = Event::warning("ScaledObjectUpdateFailed", cause.clone());
        let read = match &error {
            KindError::Reference(TargetError::GroupVersion(_)) => {
                ScaleReadError::InvalidApiVersion(cause.clone())
            }
            KindError::Reference(TargetError::NoMatch { .. }) => ScaleReadError::UnknownKind(cause.clone()),
            KindError::Discovery(error) => unread(&cause, error.failure()),
        };
        TargetFailure { cause, read, event: Some(event) }
    })?;
    let replicas = replicas(context, object, &resource).await?;
    Ok(ResolvedTarget { resource, replicas })
}

/// The resource of the target's kind.
async fn find(
    context: &OperatorContext,
    object: &ScaledObject,
) -> Result<GroupVersionKindResource, KindError> {
    let reference = &object.spec.scale_target_ref;
    let target = Target::parse(&reference.api_version, &reference.kind, &reference.name);
    let Target { group, version, kind, .. } = target?;
    let resource = match kind.as_str() {
        // In KEDA these kinds need no discovery, in any group.
        "Deployment" => "deployments".to_owned(),
        "StatefulSet" => "statefulsets".to_owned(),
        _ => {
            // A failed discovery request does not mean that the kind is unknown.
            let known = context.client.discovery.mapping(&group, &version, &kind).await;
            match known? {
                Some(resource) => resource.plural,
                None => {
                    let version = object.target_api_version().to_owned();
                    return Err(TargetError::NoMatch { kind, version }.into());
                }
            }
        }
    };
    Ok(GroupVersionKindResource { group, version, kind, resource })
}

/// The replica count in the target's scale, which proves that the target exists and can be scaled.
async fn replicas(
    context: &OperatorContext,
    object: &ScaledObject,
    target: &GroupVersionKindResource,
) -> Result<i32, TargetFailure> {
    let (namespace, name) = (&object.metadata.namespace, &object.spec.scale_target_ref.name);
    if let Some(known) = context.reader.cached(&target.group, &target.kind, namespace, name) {
        return Ok(known);
    }
    let error = match context.client.scale(namespace, name, target).await {
        Ok(held) => return Ok(held.scale.spec_replicas.get()),
        Err(error) => error,
    };
    if error.code == Some(HTTP_FORBIDDEN) && !context.settings.compat.is_strict() {
        // Whether the target exists is unknown; a permission is missing.
        let cause = format!("{}; {}", error.message, missing_permission(target));
        return Err(TargetFailure { cause, read: unread(&error.message, error.failure()), event: None });
    }
    let path = ResourcePath {
        group: &target.group,
        version: &target.version,
        plural: &target.resource,
        namespace,
        name,
    };
    let note = match context.client.get_metadata::<Value>(path).await {
        Ok(_) => Some(NOT_SCALABLE_NOTE),
        Err(error) if error.is_not_found() => Some(NOT_FOUND_NOTE),
        // Scaling a target needs no permission to get it, but discovery shows whether its kind has a scale.
        Err(other) if other.code == Some(HTTP_FORBIDDEN) && error.is_not_found() => {
            note_by_kind(context, target).await
        }
        // The reason is unknown; the condition shows the error.
        Err(_) => None,
    };
    let event = note.map(|note| Event::warning("ScaledObjectCheckFailed", note));
    let failure = match note {
        Some(NOT_SCALABLE_NOTE) => RequestFailure::NotServed,
        Some(NOT_FOUND_NOTE) => RequestFailure::NotFound,
        _ => error.failure(),
    };
    Err(TargetFailure { read: unread(&error.message, failure), cause: error.message, event })
}

fn unread(text: &str, failure: RequestFailure) -> ScaleReadError {
    ScaleReadError::Query(RecordedError::new(text, Some(failure)))
}

/// Why a scale was not found, as far as the kind of its object says.
async fn note_by_kind(context: &OperatorContext, target: &GroupVersionKindResource) -> Option<&'static str> {
    match context.client.discovery.scale_kind(&resource(target)).await {
        ScaleKind::Served(_) => Some(NOT_FOUND_NOTE),
        ScaleKind::Absent => Some(NOT_SCALABLE_NOTE),
        ScaleKind::Unknown => None,
    }
}

/// The permission that scaling a target needs.
fn missing_permission(target: &GroupVersionKindResource) -> String {
    let GroupVersionKindResource { group, resource, .. } = target;
    format!(
        "the operator needs a role that allows to get and update {resource}/scale of API group {group:?} (that of \
         deploy/operator allows it for all kinds)"
    )
}
