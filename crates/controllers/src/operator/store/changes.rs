//! What a change means: names of objects, and whether a new version must be reconciled.

use std::collections::HashSet;

use api::keda::annotations::SCALED_OBJECT_NAME;
use api::keda::{AuthenticationRef, FINALIZER, ScaledObject};
use api::map::StringMap;
use api::meta::ObjectMeta;

use super::StoreEvent;
use crate::operator::id::{NamespacedName, ResourceId};

/// The name of the referenced TriggerAuthentication; a ClusterTriggerAuthentication has no namespace.
pub(crate) fn authentication_name(namespace: &str, of: &AuthenticationRef) -> NamespacedName {
    match of.kind.as_str() {
        "ClusterTriggerAuthentication" => NamespacedName::new("", &of.name),
        _ => NamespacedName::new(namespace, &of.name),
    }
}

/// The TriggerAuthentications that triggers reference.
pub(crate) fn users_of(object: &NamespacedName, triggers: &[api::keda::Trigger]) -> HashSet<NamespacedName> {
    let named = triggers.iter().filter_map(|trigger| trigger.authentication_ref.as_ref());
    named.map(|of| authentication_name(&object.namespace, of)).collect()
}

pub(super) fn target_of(object: &ScaledObject) -> NamespacedName {
    NamespacedName::new(&object.metadata.namespace, &object.spec.scale_target_ref.name)
}

pub(super) fn name_of(metadata: &ObjectMeta) -> NamespacedName {
    NamespacedName::new(&metadata.namespace, &metadata.name)
}

pub(super) fn applied(id: ResourceId, changed: Option<bool>) -> Vec<StoreEvent> {
    match changed {
        None => vec![StoreEvent::New(id)],
        Some(true) => vec![StoreEvent::Changed(id)],
        Some(false) => Vec::new(),
    }
}

/// Whether an object has changed so that it must be reconciled (docs/spec/keda.md 2.1). Labels and annotations are copied to the HPA.
pub(super) fn differs(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    let changed = |of: fn(&ObjectMeta) -> &StringMap| of(old) != of(new);
    old.uid != new.uid
        || old.generation != new.generation
        || old.deletion_timestamp != new.deletion_timestamp
        || old.finalizers != new.finalizers
        || changed(|meta| &meta.annotations)
        || changed(|meta| &meta.labels)
}

/// Whether only our own finalizer and label differ.
pub(super) fn is_ours_alone(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    let plain = |meta: &ObjectMeta| {
        let mut meta = meta.clone();
        meta.labels.remove(SCALED_OBJECT_NAME);
        meta.finalizers.retain(|finalizer| finalizer != FINALIZER);
        meta
    };
    !differs(&plain(old), &plain(new))
}
