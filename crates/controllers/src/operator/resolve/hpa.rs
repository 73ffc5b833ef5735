//! Finds the HPA of a ScaledObject.

use std::sync::Arc;

use api::autoscaling::v2::HorizontalPodAutoscaler;
use api::keda::ScaledObject;
use cluster::request::ApiError;

use crate::operator::context::OperatorContext;
use crate::operator::decide;
use crate::operator::id::NamespacedName;
use crate::operator::leader_client::ResourcePath;

/// The HPA under the name that it has or is to have; none if there is none.
pub(crate) async fn find(
    context: &OperatorContext,
    object: &ScaledObject,
) -> Result<Option<Arc<HorizontalPodAutoscaler>>, ApiError> {
    let name = decide::hpa::name(object);
    let namespace = &object.metadata.namespace;
    let held =
        context.store().hpas.get(&NamespacedName::new(namespace, &name)).and_then(|hpa| hpa.full.clone());
    if held.is_some() {
        return Ok(held);
    }
    // The store keeps neither HPAs of others nor those that were found correct.
    match context.client.get(ResourcePath::hpa(namespace, &name)).await {
        Ok(found) => Ok(Some(Arc::new(found))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
