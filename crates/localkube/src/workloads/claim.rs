//! Adoption and release: an owner adopts matching objects without a controller, and releases children that no longer
//! match.

use std::sync::Arc;

use api::selector::LabelSelector;
use serde_json::{Value, json};

use super::objects::{ObjectMeta, WorkloadObject, WorkloadSpec};
use super::plan::{ObjectWrite, controlled_by};

/// The writes that adopt and release children.
pub(crate) fn claims<S: WorkloadSpec, T, C: WorkloadSpec, D>(
    owner: &WorkloadObject<S, T>,
    selector: &LabelSelector,
    children: &[Arc<WorkloadObject<C, D>>],
    orphans: &[Arc<WorkloadObject<C, D>>],
) -> Vec<ObjectWrite> {
    let Ok(selector) = selector.to_selector() else { return Vec::new() };
    if owner.is_deleting() || selector.is_everything() {
        return Vec::new();
    }
    let empty = std::collections::BTreeMap::new();
    let matches = |meta: &ObjectMeta| selector.matches_map(meta.labels.as_ref().unwrap_or(&empty));
    let adopted = orphans.iter().filter(|child| matches(&child.metadata) && !child.is_deleting());
    let adopted = adopted.map(|child| {
        let mut owners = references(&child.metadata);
        owners.push(json!(controlled_by(owner)));
        patch(child, &owners)
    });
    let released = children.iter().filter(|child| !matches(&child.metadata) && !child.is_deleting());
    let released = released.map(|child| {
        let mut owners = references(&child.metadata);
        owners.retain(|other| other.get("uid").and_then(Value::as_str) != Some(owner.uid()));
        patch(child, &owners)
    });
    adopted.chain(released).collect()
}

fn references(meta: &ObjectMeta) -> Vec<Value> {
    meta.owner_references.iter().flatten().map(|owner| json!(owner)).collect()
}

/// The uid prevents patching another object of the same name; the revision prevents losing a concurrent owner change.
fn patch<C: WorkloadSpec, D>(child: &WorkloadObject<C, D>, owners: &[Value]) -> ObjectWrite {
    let meta = json!({
        "uid": child.uid(),
        "resourceVersion": child.metadata.resource_version,
        "ownerReferences": owners,
    });
    ObjectWrite::patch(C::KIND, child.name(), json!({ "metadata": meta }))
}
