//! Resources as an `APIResourceList` shows them.

use serde::{Deserialize, Deserializer, Serialize};

use crate::catalog::Served;

/// A resource, or a subresource as `pods/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Resource {
    /// Plural name.
    pub(crate) name: String,
    /// Singular name; empty for subresources.
    pub(crate) singular_name: String,
    /// Whether objects live in namespaces.
    pub(crate) namespaced: bool,
    /// Group of the kind, if it is another than the list's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    /// Version of the kind, if it is another than the list's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    /// Kind of the objects.
    pub(crate) kind: String,
    /// What can be done with it.
    #[serde(deserialize_with = "or_none")]
    pub(crate) verbs: Vec<String>,
    /// Short names for people.
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub(crate) short_names: Vec<String>,
    /// Names under which several kinds are listed together.
    #[serde(deserialize_with = "or_none", skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
}

const STORED: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const NAMESPACES: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CUSTOM: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const PART: &[&str] = &["get", "patch", "update"];

/// A resource that is served here and its subresources, in the order of the real server.
pub(super) fn of(served: &Served, version: &str) -> Vec<Resource> {
    let verbs = match served.row() {
        None => CUSTOM,
        Some(row) if row.review => &["create"],
        Some(row) if row.plural == "namespaces" => NAMESPACES,
        Some(_) => STORED,
    };
    let main = Resource {
        name: served.plural.clone(),
        singular_name: served.singular.clone(),
        namespaced: served.namespaced,
        kind: served.kind.clone(),
        verbs: owned(verbs),
        short_names: served.short.clone(),
        categories: served.categories.clone(),
        ..Resource::default()
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

fn part(served: &Served, name: &str) -> Resource {
    let kind = served.kind.as_str();
    let (group, version, kind, verbs): (&str, &str, &str, &[&str]) = match name {
        "scale" => ("autoscaling", "v1", "Scale", PART),
        "eviction" => ("policy", "v1", "Eviction", &["create"]),
        "token" => ("authentication.k8s.io", "v1", "TokenRequest", &["create"]),
        "binding" => ("", "", "Binding", &["create"]),
        "finalize" => ("", "", kind, &["update"]),
        _ => ("", "", kind, PART),
    };
    Resource {
        name: format!("{}/{name}", served.plural),
        namespaced: served.namespaced,
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: owned(verbs),
        ..Resource::default()
    }
}

/// Other servers may write an empty list as null.
fn or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
