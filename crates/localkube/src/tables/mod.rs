//! Tables: what `kubectl get` prints.
//!
//! The columns of built-in kinds are recorded in `columns.json`; the cells are computed here, one function per kind.
//! Custom resources define their own columns.

mod column;
mod core;
mod custom;
mod pod;
mod read;
mod workload;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::catalog::{ResourceOrigin, ServedResource};
use crate::release::ApiServerBehavior;
use crate::status::Status;

pub use crate::custom::Column;

/// The part of its object that a row includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// No fault.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

/// The cells of an object.
type Cells = fn(object: &Value, now: Timestamp) -> Vec<Value>;

/// The kinds with their own columns, named as in `columns.json`.
const CELLS: &[(&str, Cells)] = &[
    ("namespaces", core::namespace),
    ("nodes", core::node),
    ("pods", pod::cells),
    ("services", core::service),
    ("configmaps", core::config_map),
    ("secrets", core::secret),
    ("serviceaccounts", core::service_account),
    ("events", core::event),
    ("deployments.apps", workload::deployment),
    ("replicasets.apps", workload::replica_set),
    ("statefulsets.apps", workload::stateful_set),
    ("jobs.batch", workload::job),
    ("horizontalpodautoscalers.autoscaling", workload::autoscaler),
    ("leases.coordination.k8s.io", core::lease),
    ("apiservices.apiregistration.k8s.io", core::api_service),
    ("validatingwebhookconfigurations.admissionregistration.k8s.io", core::webhooks),
    (DEFINITIONS, core::definition),
];

/// Resource definitions, which have columns of their own in some releases.
const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

impl Include {
    /// Parses the query parameter `includeObject`.
    pub fn parse(text: Option<&str>) -> Result<Self, Status> {
        match text.unwrap_or_default() {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                 'Object', 'None', or empty",
                api::gotext::quote(other)
            ))),
        }
    }
}

/// The `meta.k8s.io/v1` table of objects, with the columns of a version.
///
/// The objects may be in the stored version, unless rows include them: Kubernetes computes cells and metadata before
/// conversion as well.
pub fn table(
    served: &ServedResource,
    version: &str,
    objects: &[Value],
    include: Include,
    metadata: Value,
    now: Timestamp,
    behavior: &ApiServerBehavior,
) -> Value {
    let row = |object: &Value, cells: Vec<Value>| {
        let shown = match include {
            Include::None => Value::Null,
            Include::Metadata => partial(object),
            Include::Object => whole(served, version, object),
        };
        let conditions = pod::conditions(served, object).map(|conditions| ("conditions", conditions));
        record([("cells", cells.into())].into_iter().chain(conditions).chain([("object", shown)]))
    };
    let rows = |cells: &dyn Fn(&Value) -> Vec<Value>| -> Value {
        objects.iter().map(|object| row(object, cells(object))).collect()
    };
    let (columns, rows) = match &served.origin {
        ResourceOrigin::Custom(definition) => {
            let columns = definition.columns(version);
            (custom::columns(columns), rows(&|object| custom::cells(columns, object, now)))
        }
        ResourceOrigin::BuiltIn(_) => {
            let name = served.group_resource();
            let own = |known: &str| known == name && (known != DEFINITIONS || behavior.definition_columns);
            match CELLS.iter().find(|(known, _)| own(known)) {
                Some((DEFINITIONS, _)) if objects.is_empty() => (column::built_in(&name), Value::Null),
                Some((_, cells)) => (column::built_in(&name), rows(&|object| cells(object, now))),
                // For kinds without columns an empty table has null rows.
                None if objects.is_empty() => (column::usual("Created At"), Value::Null),
                None => (column::usual("Created At"), rows(&core::other)),
            }
        }
    };
    record([
        ("kind", "Table".into()),
        ("apiVersion", "meta.k8s.io/v1".into()),
        ("metadata", metadata),
        ("columnDefinitions", columns),
        ("rows", rows),
    ])
}

/// Removes the columns from a later table of a watch: only the first event has them.
pub fn follow_up(table: &mut Value) {
    if let Some(columns) = table.get_mut("columnDefinitions") {
        *columns = Value::Null;
    }
}

/// Sets the `meta.k8s.io` version of a table or metadata object.
pub fn stamp(object: &mut Value, version: &str) {
    let inner = object.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten();
    for shown in inner.filter_map(|row| row.get_mut("object")) {
        if shown.get("kind").is_some_and(|kind| kind == PARTIAL) {
            stamp(shown, version);
        }
    }
    for item in object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        stamp(item, version);
    }
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".to_owned(), format!("meta.k8s.io/{version}").into());
    }
}

const PARTIAL: &str = "PartialObjectMetadata";

/// The `PartialObjectMetadata` of an object.
pub fn partial(object: &Value) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| Map::new().into());
    record([("kind", PARTIAL.into()), ("apiVersion", "meta.k8s.io/v1".into()), ("metadata", metadata)])
}

/// The `PartialObjectMetadataList` of several objects.
pub fn partial_list(objects: &[Value], metadata: Value) -> Value {
    record([
        ("kind", format!("{PARTIAL}List").into()),
        ("apiVersion", "meta.k8s.io/v1".into()),
        ("metadata", metadata),
        ("items", objects.iter().map(partial).collect()),
    ])
}

/// The object with kind and version, which list items omit.
fn whole(served: &ServedResource, version: &str, object: &Value) -> Value {
    let mut whole = Map::new();
    whole.insert("kind".to_owned(), served.kind.clone().into());
    whole.insert("apiVersion".to_owned(), served.api_version(version).into());
    let rest =
        object.as_object().into_iter().flatten().filter(|(key, _)| *key != "kind" && *key != "apiVersion");
    whole.extend(rest.map(|(key, value)| (key.clone(), value.clone())));
    Value::Object(whole)
}

fn record<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
