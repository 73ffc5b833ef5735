//! An HPA, reduced to what the operator needs.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use api::autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition};
use runtime::Versioned;

use crate::operator::id::ResourceId;

/// An HPA.
#[derive(Clone, Debug)]
pub(crate) struct Hpa {
    pub(crate) version: String,
    /// Hash of the uid, labels, annotations, owners and spec.
    pub(crate) fingerprint: u64,
    /// The full HPA, until a reconcile has found it correct.
    pub(crate) full: Option<Arc<HorizontalPodAutoscaler>>,
    /// Its condition `ScalingActive`.
    pub(crate) scaling_active: Option<Box<HorizontalPodAutoscalerCondition>>,
    /// The ScaledObject that owns it.
    pub(crate) owner: Option<ResourceId>,
}

impl Versioned for Hpa {
    fn resource_version(&self) -> &str {
        &self.version
    }
}

impl Hpa {
    pub(crate) fn of(hpa: HorizontalPodAutoscaler) -> Self {
        let meta = &hpa.metadata;
        let owner = meta.owner_references.iter().find(|owner| {
            owner.controller == Some(true)
                && owner.kind == "ScaledObject"
                && owner.api_version == api::keda::API_VERSION
        });
        let owner = owner.map(|owner| ResourceId::object(&meta.namespace, &owner.name));
        let condition =
            hpa.status.conditions.iter().find(|condition| condition.type_ == "ScalingActive").cloned();
        Self {
            version: meta.resource_version.clone(),
            fingerprint: fingerprint(&hpa),
            scaling_active: condition.map(Box::new),
            full: owner.is_some().then(|| Arc::new(hpa)),
            owner,
        }
    }
}

/// Hash of what a reconcile compares.
pub(crate) fn fingerprint(hpa: &HorizontalPodAutoscaler) -> u64 {
    let meta = &hpa.metadata;
    let mut hasher = DefaultHasher::new();
    (&meta.uid, &meta.labels, &meta.annotations).hash(&mut hasher);
    let owners: Vec<_> = meta.owner_references.iter().map(|owner| (&owner.uid, owner.controller)).collect();
    owners.hash(&mut hasher);
    serde_json::to_string(&hpa.spec).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
