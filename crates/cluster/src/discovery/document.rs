//! The discovery documents: aggregated discovery, or one document per group and version from servers without it.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use kube::Client;
use serde::Deserialize;

use super::catalog::{ApiGroup, ApiVersion, Catalog, CatalogEntry, CatalogPart};
use crate::request::{ApiError, Expected, Request, decode, exchange, get_if_changed, path};

/// The accepted forms, by preference.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

const DOCUMENT_DEADLINE: Duration = Duration::from_secs(10);

/// How many documents of a server without aggregated discovery are fetched at the same time.
const MAX_CONCURRENT_REQUESTS: usize = 8;

/// `/api` or `/apis` in either form.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct DiscoveryDocument {
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
    metadata: GroupMetadata,
    #[serde(default)]
    versions: Vec<VersionItem>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupMetadata {
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

/// Fetches the catalog; documents that have not changed since `known` are not sent again.
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
    known: Option<&CatalogPart>,
    requests: &mut u64,
) -> Result<CatalogPart, ApiError> {
    *requests += 1;
    let tag = known.and_then(|part| part.etag.as_deref());
    let Some(answer) = get_if_changed(client, &Request::get(uri, "", DOCUMENT_DEADLINE), ACCEPT, tag).await?
    else {
        return Ok(known.cloned().unwrap_or_default());
    };
    let document: DiscoveryDocument = decode(&answer, &Expected::anything())?;
    if document.kind == "APIGroupDiscoveryList" {
        let groups: Arc<[ApiGroup]> = document.items.into_iter().map(ApiGroup::from).collect();
        return Ok(CatalogPart { etag: answer.etag, groups });
    }
    let groups = if document.kind == "APIVersions" {
        vec![(String::new(), document.versions)]
    } else {
        document.groups.into_iter().map(GroupName::ordered).collect()
    };
    *requests += groups.iter().map(|(_, versions)| versions.len() as u64).sum::<u64>();
    let groups = stream::iter(groups)
        .then(|(name, versions)| unaggregated_group(client, name, versions))
        .collect::<Vec<_>>();
    // The resources may change while the list of groups does not, so its `ETag` is of no use.
    Ok(CatalogPart { etag: None, groups: groups.await.into() })
}

async fn unaggregated_group(client: &Client, name: String, versions: Vec<String>) -> ApiGroup {
    let versions = stream::iter(versions)
        .map(|version| unaggregated_version(client, &name, version))
        .buffered(MAX_CONCURRENT_REQUESTS)
        .collect::<Vec<_>>()
        .await;
    ApiGroup { name, versions }
}

/// Fetches one version. A version whose server is unreachable has no resources; the others are not affected.
async fn unaggregated_version(client: &Client, group: &str, version: String) -> ApiVersion {
    let uri = if group.is_empty() { path(["api", &version]) } else { path(["apis", group, &version]) };
    let listed = async {
        let answer = exchange(client, &Request::get(uri, "", DOCUMENT_DEADLINE)).await?;
        decode::<ResourceList>(&answer, &Expected::anything())
    };
    let resources = match listed.await {
        Ok(list) => entries(&list.resources, group, &version),
        Err(error) => {
            tracing::debug!(%error, group, version, "cannot ask which kinds a version has");
            Vec::new()
        }
    };
    ApiVersion { name: version, resources }
}

fn entries(listed: &[ListedResource], group: &str, version: &str) -> Vec<CatalogEntry> {
    let scale_of = |plural: &str| {
        let scale = listed.iter().find(|r| r.name.strip_suffix("/scale") == Some(plural))?;
        let given = (!scale.version.is_empty()).then_some((scale.group.as_str(), scale.version.as_str()));
        let (group, version) = given.unwrap_or((group, version));
        Some(api_version(group, version))
    };
    let whole = listed.iter().filter(|resource| !resource.name.contains('/'));
    whole
        .map(|resource| CatalogEntry {
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
    /// The name of the group and its versions, the preferred version first.
    fn ordered(self) -> (String, Vec<String>) {
        let mut versions: Vec<String> = self.versions.into_iter().map(|v| v.version).collect();
        versions.sort_by_key(|version| *version != self.preferred_version.version);
        (self.name, versions)
    }
}

impl From<GroupItem> for ApiGroup {
    fn from(item: GroupItem) -> Self {
        Self { name: item.metadata.name, versions: item.versions.into_iter().map(ApiVersion::from).collect() }
    }
}

impl From<VersionItem> for ApiVersion {
    fn from(item: VersionItem) -> Self {
        let resources = item.resources.unwrap_or_default();
        Self { name: item.version, resources: resources.into_iter().map(CatalogEntry::from).collect() }
    }
}

impl From<ResourceItem> for CatalogEntry {
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
