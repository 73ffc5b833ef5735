//! An HPA, of which little is kept.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use api::autoscaling::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition};

use super::Versioned;
use crate::operator::id::Id;

/// An HPA, as far as it matters here.
#[derive(Clone, Debug)]
pub(crate) struct Hpa {
    pub(crate) version: String,
    /// What makes it different for us: labels, annotations, owners and spec.
    pub(crate) fingerprint: u64,
    /// All of it, until it was found to be as it should.
    pub(crate) full: Option<Arc<HorizontalPodAutoscaler>>,
    /// What it says of itself.
    pub(crate) scaling_active: Option<Box<HorizontalPodAutoscalerCondition>>,
    /// The ScaledObject that owns it.
    pub(crate) owner: Option<Id>,
}

impl Versioned for Hpa {
    fn version(&self) -> &str {
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
        let owner = owner.map(|owner| Id::object(&meta.namespace, &owner.name));
        let said = hpa.status.conditions.iter().find(|condition| condition.type_ == "ScalingActive").cloned();
        Self {
            version: meta.resource_version.clone(),
            fingerprint: fingerprint(&hpa),
            scaling_active: said.map(Box::new),
            full: owner.is_some().then(|| Arc::new(hpa)),
            owner,
        }
    }
}

/// What makes an HPA different for us.
pub(crate) fn fingerprint(hpa: &HorizontalPodAutoscaler) -> u64 {
    let meta = &hpa.metadata;
    let mut hasher = DefaultHasher::new();
    (&meta.uid, &meta.labels, &meta.annotations).hash(&mut hasher);
    let owners: Vec<_> = meta.owner_references.iter().map(|owner| (&owner.uid, owner.controller)).collect();
    owners.hash(&mut hasher);
    serde_json::to_string(&hpa.spec).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
