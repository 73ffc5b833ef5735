//! Discovery documents of the metrics APIs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::contents::ServedMetrics;
use super::script::MetricsGroup;

/// The document of a group and version; `None` if it is not served.
pub(super) fn document(
    contents: &[&ServedMetrics],
    group: Option<&str>,
    version: Option<&str>,
) -> Option<Value> {
    match (group, version) {
        (None, _) => {
            let groups: Vec<Value> = MetricsGroup::ALL.into_iter().map(described).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        (Some(name), None) => {
            let group = MetricsGroup::ALL.into_iter().find(|group| group.name() == name)?;
            let mut found = json!({"kind": "APIGroup", "apiVersion": "v1"});
            if let (Some(found), Value::Object(rest)) = (found.as_object_mut(), described(group)) {
                found.extend(rest);
            }
            Some(found)
        }
        (Some(name), Some(version)) => {
            let group = MetricsGroup::find(name, version)?;
            let resources = resources(contents, group);
            let group_version = format!("{name}/{version}");
            Some(
                json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}),
            )
        }
    }
}

fn described(group: MetricsGroup) -> Value {
    let version =
        |version: &&str| json!({"groupVersion": format!("{}/{version}", group.name()), "version": version});
    let versions: Vec<Value> = group.versions().iter().map(version).collect();
    json!({"name": group.name(), "versions": versions, "preferredVersion": versions.first()})
}

fn resources(contents: &[&ServedMetrics], group: MetricsGroup) -> Vec<Value> {
    let one = |name: &str, namespaced: bool, kind: &str, verbs: &[&str]| json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": verbs});
    match group {
        MetricsGroup::Resource => vec![
            one("nodes", false, "NodeMetrics", &["get", "list"]),
            one("pods", true, "PodMetrics", &["get", "list"]),
        ],
        MetricsGroup::Custom => {
            let all = contents.iter().flat_map(|contents| contents.custom.keys());
            let all = all.map(|(metric, object)| {
                (format!("{}/{metric}", object.resource), !object.namespace.is_empty())
            });
            let names: BTreeSet<(String, bool)> = all.collect();
            let found =
                names.iter().map(|(name, namespaced)| one(name, *namespaced, "MetricValueList", &["get"]));
            // kubectl reports an error for an empty list.
            or_else(found.collect(), || one("/custommetrics", false, "MetricValueList", &["get"]))
        }
        MetricsGroup::External => {
            let names: BTreeSet<&str> =
                contents.iter().flat_map(|c| c.external.keys()).map(|(_, metric)| metric.as_str()).collect();
            let found = names.iter().map(|name| one(name, true, "ExternalMetricValueList", &["get"]));
            or_else(found.collect(), || one("externalmetrics", true, "ExternalMetricValueList", &["get"]))
        }
    }
}

fn or_else(found: Vec<Value>, placeholder: impl FnOnce() -> Value) -> Vec<Value> {
    if found.is_empty() { vec![placeholder()] } else { found }
}
