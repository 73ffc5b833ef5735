//! The one document with everything in it (`apidiscovery.k8s.io/v2`).

use serde::Serialize;
use serde_json::{Value, json};

use super::{Resource, Version};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described<'a> {
    resource: &'a str,
    response_kind: Kind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: Option<&'a [String]>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    subresource: &'a str,
    response_kind: Kind<'a>,
    verbs: &'a [String],
}

#[derive(Default, Serialize)]
struct Kind<'a> {
    group: &'a str,
    version: &'a str,
    #[serde(rename = "kind")]
    name: &'a str,
}

/// The document about the given groups, in their order.
pub(super) fn of(groups: Vec<(&str, &[Version])>) -> Value {
    let items = groups.into_iter().map(|(group, versions)| {
        let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
        let versions: Vec<Value> = versions.iter().map(|version| described(group, version)).collect();
        json!({"metadata": metadata, "versions": versions})
    });
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

fn described(group: &str, version: &Version) -> Value {
    let Some(list) = &version.resources else {
        return json!({"version": version.name, "freshness": "Stale"});
    };
    let kind = |resource| version.kind(group, resource);
    let (parts, whole): (Vec<_>, Vec<_>) = list.iter().partition(|resource| resource.name.contains('/'));
    let mut found: Vec<Described<'_>> = Vec::new();
    for resource in whole {
        found.push(Described {
            resource: &resource.name,
            response_kind: kind(resource),
            scope: scope(resource),
            singular_resource: &resource.singular_name,
            verbs: Some(&resource.verbs),
            short_names: &resource.short_names,
            categories: &resource.categories,
            subresources: Vec::new(),
        });
    }
    for resource in parts {
        let Some((name, part)) = resource.name.split_once('/') else { continue };
        let part = Part { subresource: part, response_kind: kind(resource), verbs: &resource.verbs };
        match found.iter_mut().find(|known| known.resource == name) {
            Some(parent) => parent.subresources.push(part),
            // Metrics APIs have subresources of resources that are not theirs.
            None => found.push(Described {
                resource: name,
                response_kind: Kind::default(),
                scope: scope(resource),
                singular_resource: "",
                verbs: None,
                short_names: &[],
                categories: &[],
                subresources: vec![part],
            }),
        }
    }
    json!({"version": version.name, "resources": found, "freshness": "Current"})
}

impl Version {
    fn kind<'a>(&'a self, group: &'a str, resource: &'a Resource) -> Kind<'a> {
        match (self.explicit, resource.group.is_empty()) {
            (true, true) => Kind { group, version: &self.name, name: &resource.kind },
            _ => Kind { group: &resource.group, version: &resource.version, name: &resource.kind },
        }
    }
}

fn scope(resource: &Resource) -> &'static str {
    if resource.namespaced { "Namespaced" } else { "Cluster" }
}
