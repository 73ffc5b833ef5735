//! Groups, versions and resources, in the old form and in the aggregated one.

use serde_json::{Value, json};

use crate::app::{Group, Resource};

/// `APIGroupList`.
pub(super) fn list(groups: &[Group]) -> Value {
    let each: Vec<Value> = names(groups).into_iter().map(|name| bare(groups, name)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": each})
}

/// `APIGroup`.
pub(super) fn group(groups: &[Group], name: &str) -> Value {
    let mut group = json!({"kind": "APIGroup", "apiVersion": "v1"});
    if let (Some(group), Value::Object(fields)) = (group.as_object_mut(), bare(groups, name)) {
        group.extend(fields);
    }
    group
}

fn names(groups: &[Group]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for group in groups {
        if !names.contains(&group.name.as_str()) {
            names.push(&group.name);
        }
    }
    names
}

fn bare(groups: &[Group], name: &str) -> Value {
    let versions: Vec<Value> = groups
        .iter()
        .filter(|group| group.name == name)
        .map(|group| json!({"groupVersion": group.group_version(), "version": group.version}))
        .collect();
    let preferred = versions.first().cloned();
    json!({"name": name, "versions": versions, "preferredVersion": preferred})
}

/// `APIResourceList`.
pub(super) fn resources(group: &Group) -> Value {
    let each: Vec<Value> = group.resources.iter().map(resource).collect();
    let group_version = group.group_version();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": each})
}

fn resource(of: &Resource) -> Value {
    let mut value = json!({
        "name": of.name, "singularName": of.singular, "namespaced": of.namespaced, "kind": of.kind, "verbs": of.verbs,
    });
    named(&mut value, of);
    value
}

/// Adds what only some have.
fn named(value: &mut Value, of: &Resource) {
    let Some(fields) = value.as_object_mut() else { return };
    for (key, names) in [("shortNames", &of.short_names), ("categories", &of.categories)] {
        if !names.is_empty() {
            fields.insert(key.to_owned(), json!(names));
        }
    }
}

/// `APIGroupDiscoveryList`.
pub(super) fn aggregated(groups: &[Group]) -> Value {
    let item = |name: &str| {
        let own = groups.iter().filter(|group| group.name == name);
        let versions: Vec<Value> = own
            .map(|group| {
                let each: Vec<Value> = group.resources.iter().map(|of| discovered(group, of)).collect();
                json!({"version": group.version, "resources": each, "freshness": "Current"})
            })
            .collect();
        json!({"metadata": {"name": name}, "versions": versions})
    };
    let items: Vec<Value> = names(groups).into_iter().map(item).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn discovered(group: &Group, of: &Resource) -> Value {
    let mut value = json!({
        "resource": of.name,
        "responseKind": {"group": group.name, "version": group.version, "kind": of.kind},
        "scope": if of.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": of.singular,
        "verbs": of.verbs,
    });
    named(&mut value, of);
    value
}
