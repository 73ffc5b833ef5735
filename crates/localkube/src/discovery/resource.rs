//! Resources as an `APIResourceList` shows them.

use serde::{Deserialize, Deserializer, Serialize};

use crate::catalog::ServedResource;

/// A resource, or a subresource such as `pods/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ApiResource {
    /// Plural name.
    pub(crate) name: String,
    /// Singular name; empty for subresources.
    pub(crate) singular_name: String,
    /// Whether objects live in namespaces.
    pub(crate) namespaced: bool,
    /// Group of the kind, if it differs from the list's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    /// Version of the kind, if it differs from the list's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    /// Kind of the objects.
    pub(crate) kind: String,
    /// The supported verbs.
    #[serde(deserialize_with = "or_none")]
    pub(crate) verbs: Vec<String>,
    /// Short names.
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub(crate) short_names: Vec<String>,
    /// Categories such as `all`.
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
}

const BUILT_IN_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const NAMESPACE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CUSTOM_VERBS: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// A resource and its subresources, in the order of the real server.
pub(super) fn of(served: &ServedResource, version: &str) -> Vec<ApiResource> {
    let verbs = match served.row() {
        None => CUSTOM_VERBS,
        Some(row) if row.review => &["create"],
        Some(row) if row.plural == "namespaces" => NAMESPACE_VERBS,
        Some(_) => BUILT_IN_VERBS,
    };
    let main = ApiResource {
        name: served.plural.clone(),
        singular_name: served.singular.clone(),
        namespaced: served.namespaced,
        kind: served.kind.clone(),
        verbs: owned(verbs),
        short_names: served.short.clone(),
        categories: served.categories.clone(),
        ..ApiResource::default()
    };
    let mut names: Vec<&str> = Vec::new();
    names.extend(served.has_status(version).then_some("status"));
    names.extend(served.scale(version).map(|_| "scale"));
    if let Some(row) = served.row() {
        names.extend(row.more);
        names.sort_unstable();
    }
    std::iter::once(main).chain(names.into_iter().map(|name| part(served, name))).collect()
}

fn part(served: &ServedResource, name: &str) -> ApiResource {
    let kind = served.kind.as_str();
    let (group, version, kind, verbs): (&str, &str, &str, &[&str]) = match name {
        "scale" => ("autoscaling", "v1", "Scale", SUBRESOURCE_VERBS),
        "eviction" => ("policy", "v1", "Eviction", &["create"]),
        "token" => ("authentication.k8s.io", "v1", "TokenRequest", &["create"]),
        "binding" => ("", "", "Binding", &["create"]),
        "finalize" => ("", "", kind, &["update"]),
        _ => ("", "", kind, SUBRESOURCE_VERBS),
    };
    ApiResource {
        name: format!("{}/{name}", served.plural),
        namespaced: served.namespaced,
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: owned(verbs),
        ..ApiResource::default()
    }
}

/// Some servers write an empty list as null.
fn or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
