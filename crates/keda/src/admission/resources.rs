//! Rule 2: targets of cpu and memory triggers must request the resource, and cannot scale to zero with only such triggers.

use std::collections::BTreeSet;

use api::gotext::quote;
use api::keda::{ScaledObject, Trigger};
use quantity::Quantity;
use serde_json::Value;

use super::{AdmissionRules, ClusterView, Denial, Target, WorkloadKind};

pub(super) fn check(
    object: &ScaledObject,
    target: &Target,
    dry_run: bool,
    around: &dyn ClusterView,
    rules: &AdmissionRules<'_>,
) -> Result<(), Denial> {
    // The containers of other kinds are unknown.
    let Some(kind) = WorkloadKind::of(target).filter(|_| !dry_run) else { return Ok(()) };
    let namespace = &object.metadata.namespace;
    let is_alone = object.spec.triggers.iter().all(Trigger::is_resource);
    let mut checked = BTreeSet::new();
    for trigger in object.spec.triggers.iter().filter(|trigger| trigger.is_resource()) {
        // A review may have tens of thousands of triggers; those of the same resource and container have the same result.
        if !checked.insert((&*trigger.type_, trigger.metadata.get("containerName"))) {
            continue;
        }
        let workload = around.workload(kind, namespace, &target.name).ok_or_else(|| {
            Denial::not_found(format!("{}.apps {} not found", kind.plural(), quote(&target.name)))
        })?;
        let is_of_pod = rules.behavior().counts_pod_resources && pod_sets_resource(trigger, &workload);
        if !is_of_pod
            && let Some(name) = container_without(trigger, &workload)
            && !has_default(&trigger.type_, &around.limit_ranges(namespace))
        {
            let type_ = &trigger.type_;
            let text = format!(
                "the scaledobject has a {type_} trigger but the container {name} doesn't have the {type_} request \
                 defined"
            );
            return Err(Denial::of("missing-requests", text));
        }
        if is_alone && matches!(object.spec.min_replica_count, None | Some(0)) {
            return Err(Denial::of(
                "scale-to-zero-requirements-not-met",
                "scaledobject has only cpu/memory triggers AND minReplica is 0 (scale to zero doesn't work in this case)",
            ));
        }
    }
    Ok(())
}

/// The first measured container without a request or limit for the resource.
fn container_without<'a>(trigger: &Trigger, workload: &'a Value) -> Option<&'a str> {
    let only = trigger.metadata.get("containerName").filter(|name| !name.is_empty());
    let containers = workload.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let name = |container: &'a Value| container.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_meant = |container: &&'a Value| only.is_none_or(|only| only == name(container));
    let sets = |container: &Value, what: &str| {
        container.get("resources").is_some_and(|resources| is_positive(resources.get(what), &trigger.type_))
    };
    let mut containers = containers.into_iter().flatten().filter(is_meant);
    containers.find(|container| !sets(container, "requests") && !sets(container, "limits")).map(name)
}

/// Whether the pod as a whole has a request or limit for the resource, and the trigger measures no single container.
fn pod_sets_resource(trigger: &Trigger, workload: &Value) -> bool {
    let measures_container = trigger.metadata.get("containerName").is_some_and(|name| !name.is_empty());
    let sets = |what: &str| {
        let amounts = workload.pointer(&format!("/spec/template/spec/resources/{what}"));
        is_positive(amounts, &trigger.type_)
    };
    !measures_container && (sets("requests") || sets("limits"))
}

/// Whether a LimitRange sets a default for the resource.
fn has_default(resource: &str, ranges: &[std::sync::Arc<Value>]) -> bool {
    let items = ranges.iter().filter_map(|range| range.pointer("/spec/limits")?.as_array()).flatten();
    let mut items = items.filter(|item| item.get("type").is_some_and(|type_| type_ == "Container"));
    items.any(|item| ["default", "defaultRequest"].iter().any(|what| is_positive(item.get(*what), resource)))
}

fn is_positive(amounts: Option<&Value>, resource: &str) -> bool {
    let amount = amounts.and_then(|amounts| amounts.get(resource));
    let amount = amount.and_then(|amount| Quantity::from_json_text(&amount.to_string()).ok());
    amount.is_some_and(|amount| amount.sign() > 0)
}
