//! The job to create (docs/spec/keda.md 5.4).

use api::keda::{KedaProfile, ScaledJob, annotations};
use serde_json::{Map, Value, json};

use crate::hpa::{other_labels, own_labels, owner};

/// The job's `generateName`.
pub fn generate_name(object: &ScaledJob) -> String {
    format!("{}-", object.metadata.name)
}

/// A job of a ScaledJob; none without a valid `jobTargetRef`.
pub fn job(object: &ScaledJob, profile: KedaProfile) -> Option<Value> {
    let name = &object.metadata.name;
    let excluded = object.metadata.annotations.get(annotations::JOB_EXCLUDED_LABELS);
    let mut labels = own_labels(name, name, profile);
    labels.insert(annotations::SCALED_JOB_NAME.to_owned(), name.clone());
    labels.extend(other_labels(&object.metadata.labels, excluded));
    let generation = object.metadata.generation.to_string();
    let mut noted =
        std::collections::BTreeMap::from([(annotations::SCALED_JOB_GENERATION.to_owned(), generation)]);
    noted.extend(object.metadata.annotations.clone());
    Some(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "generateName": generate_name(object),
            "namespace": object.metadata.namespace,
            "labels": labels,
            "annotations": noted,
            "ownerReferences": [owner("ScaledJob", &object.metadata)],
        },
        "spec": spec(object)?,
    }))
}

/// The job's spec, with labels on its pods.
fn spec(object: &ScaledJob) -> Option<Value> {
    let mut spec = object.spec.job_target_ref.clone()?;
    let template = child(spec.as_object_mut()?, "template")?;
    let metadata = child(template, "metadata")?;
    metadata.insert("generateName".to_owned(), generate_name(object).into());
    let labels = child(metadata, "labels")?;
    labels.insert(annotations::SCALED_JOB_NAME.to_owned(), object.metadata.name.clone().into());
    let pod = child(template, "spec")?;
    if pod.get("restartPolicy").and_then(Value::as_str).is_none_or(str::is_empty) {
        pod.insert("restartPolicy".to_owned(), "OnFailure".into());
    }
    Some(spec)
}

/// A nested object, created if it is missing.
fn child<'a>(parent: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    let child = parent.entry(name).or_insert_with(|| Value::Object(Map::new()));
    if child.is_null() {
        *child = Value::Object(Map::new());
    }
    child.as_object_mut()
}
