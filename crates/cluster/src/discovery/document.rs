//! The server's documents: one for all groups, or, from servers that do not have it, one per group and version.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use kube::Client;
use serde::Deserialize;

use super::catalog::{Catalog, Entry, Group, Part, Version};
use crate::request::{ApiError, Expected, Request, ask_again, decode, exchange, path};

/// What we can read, the most useful first.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

const DEADLINE: Duration = Duration::from_secs(10);

/// How many documents of an old server are read at once.
const AT_ONCE: usize = 8;

/// `/api` or `/apis` in either form.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Document {
    kind: String,
    /// Of an `APIGroupDiscoveryList`.
    items: Vec<GroupItem>,
    /// Of an `APIGroupList`.
    groups: Vec<GroupName>,
    /// Of `APIVersions`.
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct GroupItem {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    versions: Vec<VersionItem>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct VersionItem {
    version: String,
    #[serde(default)]
    resources: Option<Vec<ResourceItem>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceItem {
    resource: String,
    singular_resource: String,
    response_kind: Option<GroupVersionKind>,
    scope: String,
    subresources: Option<Vec<SubresourceItem>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SubresourceItem {
    subresource: String,
    response_kind: Option<GroupVersionKind>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupVersionKind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GroupName {
    name: String,
    versions: Vec<VersionName>,
    preferred_version: VersionName,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VersionName {
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceList {
    resources: Vec<ListedResource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListedResource {
    name: String,
    singular_name: String,
    kind: String,
    namespaced: bool,
    group: String,
    version: String,
}

/// Asks what the server serves; what has not changed since `known` is not sent again.
pub(super) async fn fetch(
    client: &Client,
    known: Option<&Catalog>,
    requests: &mut u64,
) -> Result<Catalog, ApiError> {
    let core = part(client, "/api", known.map(|known| &known.core), requests).await?;
    let groups = part(client, "/apis", known.map(|known| &known.groups), requests).await?;
    Ok(Catalog { core, groups })
}

async fn part(
    client: &Client,
    uri: &str,
    known: Option<&Part>,
    requests: &mut u64,
) -> Result<Part, ApiError> {
    *requests += 1;
    let tag = known.and_then(|part| part.etag.as_deref());
    let Some(answer) = ask_again(client, &Request::get(uri, "", DEADLINE), ACCEPT, tag).await? else {
        return Ok(known.cloned().unwrap_or_default());
    };
    let document: Document = decode(&answer, &Expected::anything())?;
    if document.kind == "APIGroupDiscoveryList" {
        let groups: Arc<[Group]> = document.items.into_iter().map(Group::from).collect();
        return Ok(Part { etag: answer.etag, groups });
    }
    let groups = if document.kind == "APIVersions" {
        vec![(String::new(), document.versions)]
    } else {
        document.groups.into_iter().map(GroupName::ordered).collect()
    };
    *requests += groups.iter().map(|(_, versions)| versions.len() as u64).sum::<u64>();
    let groups =
        stream::iter(groups).then(|(name, versions)| old_group(client, name, versions)).collect::<Vec<_>>();
    // Its resources may change while its list of groups does not.
    Ok(Part { etag: None, groups: groups.await.into() })
}

async fn old_group(client: &Client, name: String, versions: Vec<String>) -> Group {
    let versions = stream::iter(versions)
        .map(|version| old_version(client, &name, version))
        .buffered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    Group { name, versions }
}

/// A version whose server cannot be reached has no resources, and hides no others.
async fn old_version(client: &Client, group: &str, version: String) -> Version {
    let uri = if group.is_empty() { path(["api", &version]) } else { path(["apis", group, &version]) };
    let listed = async {
        let answer = exchange(client, &Request::get(uri, "", DEADLINE)).await?;
        decode::<ResourceList>(&answer, &Expected::anything())
    };
    let resources = match listed.await {
        Ok(list) => entries(&list.resources, group, &version),
        Err(error) => {
            tracing::debug!(%error, group, version, "cannot ask which kinds a version has");
            Vec::new()
        }
    };
    Version { name: version, resources }
}

fn entries(listed: &[ListedResource], group: &str, version: &str) -> Vec<Entry> {
    let scale_of = |plural: &str| {
        let scale = listed.iter().find(|r| r.name.strip_suffix("/scale") == Some(plural))?;
        let given = (!scale.version.is_empty()).then_some((scale.group.as_str(), scale.version.as_str()));
        let (group, version) = given.unwrap_or((group, version));
        Some(api_version(group, version))
    };
    let whole = listed.iter().filter(|resource| !resource.name.contains('/'));
    whole
        .map(|resource| Entry {
            plural: resource.name.clone(),
            singular: resource.singular_name.clone(),
            kind: resource.kind.clone(),
            namespaced: resource.namespaced,
            scale: scale_of(&resource.name),
        })
        .collect()
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

impl GroupName {
    /// The group's name and its versions, the preferred one first.
    fn ordered(self) -> (String, Vec<String>) {
        let mut versions: Vec<String> = self.versions.into_iter().map(|v| v.version).collect();
        versions.sort_by_key(|version| *version != self.preferred_version.version);
        (self.name, versions)
    }
}

impl From<GroupItem> for Group {
    fn from(item: GroupItem) -> Self {
        Self { name: item.metadata.name, versions: item.versions.into_iter().map(Version::from).collect() }
    }
}

impl From<VersionItem> for Version {
    fn from(item: VersionItem) -> Self {
        let resources = item.resources.unwrap_or_default();
        Self { name: item.version, resources: resources.into_iter().map(Entry::from).collect() }
    }
}

impl From<ResourceItem> for Entry {
    fn from(item: ResourceItem) -> Self {
        let parts = item.subresources.unwrap_or_default();
        let scale = parts.into_iter().find(|part| part.subresource == "scale");
        let scale = scale.and_then(|scale| scale.response_kind);
        Self {
            plural: item.resource,
            singular: item.singular_resource,
            kind: item.response_kind.map(|kind| kind.kind).unwrap_or_default(),
            namespaced: item.scope == "Namespaced",
            scale: scale.map(|kind| api_version(&kind.group, &kind.version)),
        }
    }
}
