//! The definitions of KEDA's kinds: every field of `api::keda`, as docs/spec/keda.md 1 has it.
//!
//! ```text
//! scaled_object, scaled_job, authentication, cloud_events   one file of kinds each
//! job                                                       the spec of a Job, from the API server's own schemas
//! ```
//!
//! What KEDA's definitions accept, these accept; they refuse what KEDA's refuse. Nothing is filled in but the two defaults
//! that KEDA fills in.

mod authentication;
mod cloud_events;
mod job;
mod scaled_job;
mod scaled_object;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::schema::{Schema, flag, list, map, metadata, object, text, word};

/// One kind.
struct Definition {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    columns: Vec<Column>,
    about: &'static str,
    /// Spec, and status.
    schema: (Schema, Schema),
}

/// One column of `kubectl get`.
struct Column {
    name: &'static str,
    kind: &'static str,
    path: String,
    /// Whether it is shown only to those who ask for more.
    wide: bool,
}

impl Column {
    fn text(name: &'static str, path: &str) -> Self {
        Self { name, kind: "string", path: path.to_owned(), wide: false }
    }

    fn number(name: &'static str, path: &str) -> Self {
        Self { kind: "integer", ..Self::text(name, path) }
    }

    fn condition(name: &'static str) -> Self {
        Self::text(name, &format!(".status.conditions[?(@.type==\"{name}\")].status"))
    }

    fn age() -> Self {
        Self { kind: "date", ..Self::text("Age", ".metadata.creationTimestamp") }
    }

    fn to_json(&self) -> Value {
        let mut column = Map::new();
        let mut add = |name: &str, value: Value| drop(column.insert(name.to_owned(), value));
        add("name", json!(self.name));
        add("type", json!(self.kind));
        add("jsonPath", json!(self.path));
        if self.wide {
            add("priority", json!(1));
        }
        column.into()
    }
}

fn definitions() -> anyhow::Result<Vec<Definition>> {
    let [source, cluster_source] = cloud_events::definitions();
    let [authentication, cluster_authentication] = authentication::definitions();
    let job = scaled_job::definition()?;
    Ok(vec![source, cluster_source, cluster_authentication, job, scaled_object::definition(), authentication])
}

/// Every file with what belongs into it.
pub(super) fn files() -> anyhow::Result<Vec<(String, String)>> {
    let file = |definition: Definition| {
        let name = format!("deploy/crds/keda/{}.{}.yaml", definition.plural, definition.group);
        let text = api::yaml::to_yaml(&definition.to_json());
        let head = "# Made by `cargo xtask generate` from xtask/src/generate/keda; do not edit.";
        (name, format!("{head}\n{text}"))
    };
    Ok(definitions()?.into_iter().map(file).collect())
}

impl Definition {
    fn to_json(&self) -> Value {
        let Self { group, kind, plural, about, .. } = self;
        let (spec, status) = self.schema.clone();
        let mut names = Map::new();
        let mut name = |key: &str, value: Value| drop(names.insert(key.to_owned(), value));
        name("kind", json!(kind));
        name("listKind", json!(format!("{kind}List")));
        name("plural", json!(plural));
        name("singular", json!(kind.to_lowercase()));
        if !self.short_names.is_empty() {
            name("shortNames", json!(self.short_names));
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "names": names,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": [{
                    "name": "v1alpha1",
                    "served": true,
                    "storage": true,
                    "additionalPrinterColumns": self.columns.iter().map(Column::to_json).collect::<Vec<_>>(),
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": object(about, [
                        ("apiVersion", text(&format!("{group}/v1alpha1."))),
                        ("kind", text(&format!("{kind}."))),
                        ("metadata", metadata()),
                        ("spec", spec),
                        ("status", status),
                    ]).into_value()},
                }],
            },
        })
    }
}

/// The conditions of any kind: there is no time in them.
fn conditions() -> Schema {
    let condition = object(
        "One aspect of how the object fares.",
        [
            ("type", text("What it is about.").required()),
            ("status", text("Whether it is so: True, False or Unknown.").required()),
            ("reason", text("One word saying why.")),
            ("message", text("A sentence saying why.")),
        ],
    );
    list("How the object fares.", condition)
}

/// A reference to where credentials are.
fn authentication_ref() -> Schema {
    let kinds = ["TriggerAuthentication", "ClusterTriggerAuthentication"];
    object(
        "Where credentials are.",
        [
            ("kind", word("Its kind; without it, TriggerAuthentication.", &kinds)),
            ("name", text("Its name.").required()),
        ],
    )
}

/// The triggers of ScaledObjects, and, without a type of metrics, of ScaledJobs.
fn triggers(of_objects: bool) -> Schema {
    let type_ = ("type", text("Which scaler.").said().required());
    let about = "The scaler's parameters; may be empty.";
    let parameters = ("metadata", map(about, text("A value.")).required());
    let name = ("name", text("Its name in formulas; unique."));
    let cached = ("useCachedMetrics", flag("Answer the autoscaler with what the last round found."));
    let authentication = ("authenticationRef", authentication_ref());
    let about = "An event source; its place in the list is part of the names of its metrics.";
    let trigger = if of_objects {
        let metric = ("metricType", text("AverageValue, Value or, for cpu and memory, Utilization."));
        object(about, [type_, parameters, name, cached, authentication, metric])
    } else {
        object(about, [type_, parameters, name, cached, authentication])
    };
    list("The event sources.", trigger).filled().required()
}

/// Activity of each metric.
fn triggers_activity() -> Schema {
    let activity = object("How a metric is.", [("isActive", flag("Whether it is active."))]);
    map("Whether each metric is active, by its name.", activity)
}
