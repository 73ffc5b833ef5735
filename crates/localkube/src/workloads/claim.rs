//! Whose children are whose: what matches a selector and has no owner is taken in, what no longer matches is let go.

use std::sync::Arc;

use api::selector::LabelSelector;
use serde_json::{Value, json};

use super::objects::{Object, ObjectMeta, Spec};
use super::plan::{Write, controlled_by};

/// The writes after which the children of `owner` are those that its selector says.
pub(crate) fn claims<S: Spec, T, C: Spec, D>(
    owner: &Object<S, T>,
    selector: &LabelSelector,
    children: &[Arc<Object<C, D>>],
    orphans: &[Arc<Object<C, D>>],
) -> Vec<Write> {
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

/// With the uid, so that it is this object and no other of the same name; with the revision, so that no owner is lost.
fn patch<C: Spec, D>(child: &Object<C, D>, owners: &[Value]) -> Write {
    let meta = json!({
        "uid": child.uid(),
        "resourceVersion": child.metadata.resource_version,
        "ownerReferences": owners,
    });
    Write::patch(C::KIND, child.name(), json!({ "metadata": meta }))
}
