//! The aggregated discovery document (`apidiscovery.k8s.io/v2`).

use serde::Serialize;
use serde_json::{Value, json};

use super::{ApiResource, DiscoveredVersion};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceEntry<'a> {
    resource: &'a str,
    response_kind: ResponseKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: Option<&'a [String]>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceEntry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceEntry<'a> {
    subresource: &'a str,
    response_kind: ResponseKind<'a>,
    verbs: &'a [String],
}

#[derive(Default, Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    #[serde(rename = "kind")]
    name: &'a str,
}

/// The document of the given groups, in their order.
pub(super) fn of(groups: Vec<(&str, &[DiscoveredVersion])>) -> Value {
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

fn described(group: &str, version: &DiscoveredVersion) -> Value {
    let Some(list) = &version.resources else {
        return json!({"version": version.name, "freshness": "Stale"});
    };
    let kind = |resource| version.kind(group, resource);
    let (parts, whole): (Vec<_>, Vec<_>) = list.iter().partition(|resource| resource.name.contains('/'));
    let mut found: Vec<ResourceEntry<'_>> = Vec::new();
    for resource in whole {
        found.push(ResourceEntry {
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
        let part =
            SubresourceEntry { subresource: part, response_kind: kind(resource), verbs: &resource.verbs };
        match found.iter_mut().find(|known| known.resource == name) {
            Some(parent) => parent.subresources.push(part),
            // Metrics APIs have subresources of resources that they do not serve.
            None => found.push(ResourceEntry {
                resource: name,
                response_kind: ResponseKind::default(),
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

impl DiscoveredVersion {
    fn kind<'a>(&'a self, group: &'a str, resource: &'a ApiResource) -> ResponseKind<'a> {
        match (self.explicit, resource.group.is_empty()) {
            (true, true) => ResponseKind { group, version: &self.name, name: &resource.kind },
            _ => ResponseKind { group: &resource.group, version: &resource.version, name: &resource.kind },
        }
    }
}

fn scope(resource: &ApiResource) -> &'static str {
    if resource.namespaced { "Namespaced" } else { "Cluster" }
}
