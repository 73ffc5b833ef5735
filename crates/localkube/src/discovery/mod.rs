//! Discovery of groups, versions and resources: the lists, and the aggregated document that clients prefer.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use api::autoscaling::KubernetesProfile;
use serde_json::{Value, json};

use crate::catalog::Catalog;
use crate::custom::VersionOrder;

mod document;
mod resource;

pub(crate) use resource::ApiResource;

/// A version of a group that an aggregated API serves; there is one per APIService.
#[derive(Clone, Debug)]
pub(crate) struct AggregatedVersion {
    /// The group.
    pub(crate) group: String,
    /// The version.
    pub(crate) version: String,
    /// `spec.groupPriorityMinimum` of the APIService.
    pub(crate) group_priority: i64,
    /// `spec.versionPriority` of the APIService.
    pub(crate) version_priority: i64,
    /// The `resources` of the server's `APIResourceList`; `None` if it did not respond.
    pub(crate) resources: Option<Vec<ApiResource>>,
}

/// A version of a group, served here or aggregated.
#[derive(Debug)]
struct DiscoveredVersion {
    name: String,
    priority: i64,
    group_priority: i64,
    /// `None` if they are unknown.
    resources: Option<Vec<ApiResource>>,
    /// Whether the aggregated document states group and version of each kind: only for custom resources.
    explicit: bool,
}

/// Versions by group, the preferred ones first.
type Groups = BTreeMap<String, Vec<DiscoveredVersion>>;

/// The priorities of the built-in groups, as in Kubernetes; custom groups follow.
const GROUP_PRIORITIES: &[(&str, i64)] = &[
    ("apiregistration.k8s.io", i64::MAX),
    ("apps", 17_800),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("admissionregistration.k8s.io", 16_700),
    ("apiextensions.k8s.io", 16_700),
    ("coordination.k8s.io", 16_500),
];
const CUSTOM_GROUP_PRIORITY: i64 = 1000;
const CUSTOM_VERSION_PRIORITY: i64 = 100;

const AGGREGATED_MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const JSON_MEDIA_TYPE: &str = "application/json";

/// Content type and body of a discovery response for `/api`, `/apis`, a group or a version; `None` if it does not exist.
pub(crate) fn answer(
    catalog: &Catalog,
    others: &[AggregatedVersion],
    core: bool,
    group: Option<&str>,
    version: Option<&str>,
    accept: &str,
) -> Option<(String, Value)> {
    let mut groups = groups(catalog, others);
    let core_group = groups.remove("");
    let whole = group.is_none() && wants_aggregated(accept);
    let value = match (core, group, version) {
        (true, None, _) if whole => document::of(vec![("", core_group.as_deref()?)]),
        (false, None, _) if whole => document::of(ordered(&groups, |group, _| group.to_owned())),
        (true, None, _) => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        }),
        (false, None, _) => {
            // Groups of equal priority are sorted by the names of their APIServices.
            let service = |group: &str, versions: &[DiscoveredVersion]| {
                versions.iter().map(|v| format!("{}.{group}", v.name)).min().unwrap_or_default()
            };
            let list =
                ordered(&groups, service).into_iter().map(|(group, versions)| summary(group, versions));
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list.collect::<Vec<_>>()})
        }
        (true, Some(_), version) => resources("", core_group.as_deref()?, version?)?,
        (false, Some(group), Some(version)) => resources(group, groups.get(group)?, version)?,
        (false, Some(group), None) => {
            let mut found = summary(group, groups.get(group)?);
            if let Some(fields) = found.as_object_mut() {
                fields.shift_insert(0, "kind".to_owned(), "APIGroup".into());
                fields.shift_insert(1, "apiVersion".to_owned(), "v1".into());
            }
            found
        }
    };
    Some(((if whole { AGGREGATED_MEDIA_TYPE } else { JSON_MEDIA_TYPE }).to_owned(), value))
}

/// The response of `/version` in a release of Kubernetes.
pub(crate) fn version(profile: &KubernetesProfile) -> Value {
    let minor = profile.version.minor();
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "major": "1",
        "minor": minor.to_string(),
        "emulationMajor": "1",
        "emulationMinor": minor.to_string(),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": (minor - 1).to_string(),
        "gitVersion": profile.git_version,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{architecture}", std::env::consts::OS),
    })
}

/// Whether the first known media type of an `Accept` header is the aggregated document.
fn wants_aggregated(accept: &str) -> bool {
    let known = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next()?;
        let parts: Vec<&str> = parts.collect();
        let aggregated = ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"];
        match parts.iter().any(|part| part.starts_with("as=")) {
            true if media == JSON_MEDIA_TYPE && aggregated.iter().all(|part| parts.contains(part)) => {
                Some(true)
            }
            true => None,
            false => matches!(media, "*/*" | "application/*" | JSON_MEDIA_TYPE).then_some(false),
        }
    };
    accept.split(',').find_map(known).unwrap_or_default()
}

fn groups(catalog: &Catalog, others: &[AggregatedVersion]) -> Groups {
    let mut groups = Groups::new();
    for served in catalog.all() {
        let priority =
            GROUP_PRIORITIES.iter().find(|(group, _)| *group == served.group).map(|(_, priority)| *priority);
        let versions = groups.entry(served.group.clone()).or_default();
        for version in &served.versions {
            let entries = resource::of(served, version);
            match versions.iter_mut().find(|known| known.name == *version) {
                Some(known) => known.resources.get_or_insert_default().extend(entries),
                None => versions.push(DiscoveredVersion {
                    name: version.clone(),
                    priority: CUSTOM_VERSION_PRIORITY,
                    group_priority: priority.unwrap_or(CUSTOM_GROUP_PRIORITY),
                    resources: Some(entries),
                    explicit: served.row().is_none(),
                }),
            }
        }
    }
    for other in others {
        groups.entry(other.group.clone()).or_default().push(DiscoveredVersion {
            name: other.version.clone(),
            priority: other.version_priority,
            group_priority: other.group_priority,
            resources: other.resources.clone(),
            explicit: false,
        });
    }
    for versions in groups.values_mut() {
        versions.sort_by_cached_key(|version| (Reverse(version.priority), VersionOrder::of(&version.name)));
    }
    groups
}

/// Groups by priority, then by the given key.
fn ordered(
    groups: &Groups,
    key: impl Fn(&str, &[DiscoveredVersion]) -> String,
) -> Vec<(&str, &[DiscoveredVersion])> {
    let mut all: Vec<_> =
        groups.iter().map(|(group, versions)| (group.as_str(), versions.as_slice())).collect();
    all.sort_by_cached_key(|(group, versions)| {
        (Reverse(versions.iter().map(|version| version.group_priority).max()), key(group, versions))
    });
    all
}

fn summary(group: &str, versions: &[DiscoveredVersion]) -> Value {
    let name = |version: &DiscoveredVersion| json!({"groupVersion": format!("{group}/{}", version.name), "version": version.name});
    json!({
        "name": group,
        "versions": versions.iter().map(name).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(name),
    })
}

fn resources(group: &str, versions: &[DiscoveredVersion], version: &str) -> Option<Value> {
    let found = versions.iter().find(|known| known.name == version)?.resources.as_ref()?;
    Some(if group.is_empty() {
        json!({"kind": "APIResourceList", "groupVersion": version, "resources": found})
    } else {
        let group_version = format!("{group}/{version}");
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": found})
    })
}

#[cfg(test)]
mod tests;
