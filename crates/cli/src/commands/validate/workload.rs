//! The parts of Deployments, StatefulSets and ReplicaSets that scaling depends on, with the texts of the API server.

use std::collections::BTreeSet;

use api::field::{AsJson, FieldError};
use api::manifest::{placed, problems_of};
use api::meta::ObjectMeta;
use api::pod::{PodSpec, ResourceRequirements};
use api::selector::LabelSelector;
use api::yaml::{Diagnostic, Document};
use serde::Deserialize;

/// The fields that are read. Others are not checked.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WorkloadManifest {
    metadata: ObjectMeta,
    spec: WorkloadSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WorkloadSpec {
    replicas: Option<i32>,
    selector: Option<LabelSelector>,
    template: WorkloadTemplate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WorkloadTemplate {
    metadata: ObjectMeta,
    spec: PodSpec,
}

pub(super) fn problems(document: &Document, kind: &str) -> Vec<Diagnostic> {
    problems_of(document.decode_partial_lenient(), |workload: WorkloadManifest| {
        Some(faults(&workload, kind).iter().map(|fault| placed(document, fault)).collect())
    })
}

fn faults(workload: &WorkloadManifest, kind: &str) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if workload.metadata.name.is_empty() && workload.metadata.generate_name.is_empty() {
        faults.push(FieldError::required("metadata.name", "name or generateName is required"));
    }
    if let Some(replicas) = workload.spec.replicas.filter(|replicas| *replicas < 0) {
        faults.push(FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    selector(&workload.spec, kind, &mut faults);
    let containers = &workload.spec.template.spec.containers;
    if containers.is_empty() {
        faults.push(FieldError::required("spec.template.spec.containers", ""));
    }
    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("spec.template.spec.containers[{index}]");
        if container.name.is_empty() {
            faults.push(FieldError::required(format!("{path}.name"), ""));
        } else if !names.insert(&container.name) {
            faults.push(FieldError::duplicate(format!("{path}.name"), &container.name));
        }
        resources(&path, &container.resources, &mut faults);
    }
    faults
}

fn selector(spec: &WorkloadSpec, kind: &str, faults: &mut Vec<FieldError>) {
    let Some(selector) = &spec.selector else {
        faults.push(FieldError::required("spec.selector", ""));
        return;
    };
    let labels = spec.template.metadata.labels.clone().into_iter().collect();
    match LabelSelector::to_selector_or_nothing(Some(selector)) {
        Err(error) => faults.push(FieldError::invalid("spec.selector", &error.to_string(), "")),
        Ok(parsed) if parsed.is_everything() => {
            // The API server names a ReplicaSet so, too.
            let named = if kind == "StatefulSet" { "statefulset" } else { "deployment" };
            let text = format!("empty selector is invalid for {named}");
            faults.push(FieldError::invalid("spec.selector", AsJson(selector), text));
        }
        Ok(parsed) if !parsed.matches_map(&labels) => {
            let text = "`selector` does not match template `labels`";
            faults.push(FieldError::invalid("spec.template.metadata.labels", AsJson(&labels), text));
        }
        Ok(_) => {}
    }
}

fn resources(path: &str, resources: &ResourceRequirements, faults: &mut Vec<FieldError>) {
    for (name, request) in &resources.requests {
        if let Some(limit) = resources.limits.get(name).filter(|limit| request > limit) {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            let path = format!("{path}.resources.requests[{name}]");
            faults.push(FieldError::invalid(path, &request.to_string(), detail));
        }
    }
}
