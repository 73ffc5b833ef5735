//! The kinds and versions that the server serves, cached.
//!
//! ```text
//! catalog    the kinds, and lookups in them
//! document   the discovery documents: aggregated, or one per group and version
//! ```

mod catalog;
mod document;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use locks::MutexExt as _;
use tokio::time::Instant;

use runtime::SingleFlight;

use crate::request::ApiError;
pub(crate) use catalog::Catalog;

/// An older catalog is not used (docs/spec/hpa.md 2.4).
const MAX_CATALOG_AGE: Duration = Duration::from_secs(30);

/// A younger catalog is not fetched again because a kind is missing in it, nor after a failed fetch.
const MIN_REFETCH_INTERVAL: Duration = Duration::from_secs(5);

/// A resource in its preferred version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// API group; empty for the core one.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name in paths.
    pub plural: String,
    /// Singular name; empty if the server published none.
    pub singular: String,
    /// The kind.
    pub kind: String,
    /// Whether it is namespaced.
    pub namespaced: bool,
}

impl Resource {
    /// `resource.group`, or just the resource in the core group.
    pub fn group_resource(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.plural, self.group)
    }

    /// `group/version`, or just the version in the core group.
    pub fn api_version(&self) -> String {
        let slash = if self.group.is_empty() { "" } else { "/" };
        format!("{}{slash}{}", self.group, self.version)
    }
}

/// Whether the scale of a resource is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleKind {
    /// As this `apiVersion`, almost always `autoscaling/v1`.
    Served(String),
    /// Not served.
    Absent,
    /// Discovery failed.
    Unknown,
}

/// Why the resources of a kind are unknown, in the words of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// Discovery failed.
    #[error(transparent)]
    Discovery(#[from] ApiError),
    /// No served resource has this kind.
    #[error("no matches for kind \"{kind}\" in group \"{group}\"")]
    NoMatch {
        /// The API group.
        group: String,
        /// The kind.
        kind: String,
    },
}

/// Cached discovery. Cheap to clone.
#[derive(Clone)]
pub struct Discovery(Arc<DiscoveryState>);

struct DiscoveryState {
    client: Client,
    cache: Mutex<CatalogCache>,
    flights: SingleFlight<(), Result<Arc<Catalog>, ApiError>>,
}

#[derive(Default)]
struct CatalogCache {
    copy: Option<(Instant, Arc<Catalog>)>,
    /// When fetching last failed, since the catalog was fetched.
    failed: Option<Instant>,
    requests: u64,
}

impl Discovery {
    /// Discovery that fetches on first use.
    pub fn new(client: Client) -> Self {
        Self(Arc::new(DiscoveryState { client, cache: Mutex::default(), flights: SingleFlight::default() }))
    }

    /// All resources with this group and kind, in the server's order (docs/spec/hpa.md 2.4, 3.2). The catalog expires after 30 s,
    /// and is fetched again at once if nothing is found and it is older than 5 s.
    ///
    /// A kind with several versions is returned once per version, each time in the preferred version (T43).
    pub async fn mappings(&self, group: &str, kind: &str) -> Result<Vec<Resource>, MappingError> {
        let found = self.look_up(|catalog| catalog.mappings(group, kind), Vec::is_empty);
        let found = found.await?;
        if found.is_empty() {
            return Err(MappingError::NoMatch { group: group.to_owned(), kind: kind.to_owned() });
        }
        Ok(found)
    }

    /// The resource of a kind in exactly this version; none if it is not served. As [`Discovery::mappings`], fetches again at
    /// once if nothing is found.
    pub async fn mapping(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Option<Resource>, ApiError> {
        self.look_up(|catalog| catalog.mapping(group, version, kind), Option::is_none).await
    }

    /// The served versions of a group, the preferred one first; empty if the group is not served.
    pub async fn versions(&self, group: &str) -> Result<Vec<String>, ApiError> {
        self.look_up(|catalog| catalog.versions(group), Vec::is_empty).await
    }

    /// As [`Discovery::versions`], from a catalog no older than `age`.
    pub async fn versions_within(&self, group: &str, age: Duration) -> Result<Vec<String>, ApiError> {
        Ok(self.copy(age).await?.1.versions(group))
    }

    /// All resources, each in its preferred version, groups in the server's order, from a catalog no older than `age`.
    pub async fn resources_within(&self, age: Duration) -> Result<Vec<Resource>, ApiError> {
        Ok(self.copy(age).await?.1.resources())
    }

    /// The `apiVersion` of the scale subresource of a resource.
    pub async fn scale_kind(&self, resource: &Resource) -> ScaleKind {
        let found = self.look_up(|catalog| catalog.scale_kind(resource), Option::is_none).await;
        found.map_or(ScaleKind::Unknown, |kind| kind.map_or(ScaleKind::Absent, ScaleKind::Served))
    }

    /// The number of documents requested so far.
    pub fn requests(&self) -> u64 {
        self.cache().requests
    }

    async fn look_up<T>(
        &self,
        query: impl Fn(&Catalog) -> T,
        nothing: impl Fn(&T) -> bool,
    ) -> Result<T, ApiError> {
        let (came, catalog) = self.copy(MAX_CATALOG_AGE).await?;
        let found = query(&catalog);
        if nothing(&found) && came.elapsed() > MIN_REFETCH_INTERVAL {
            return Ok(query(&self.copy(MIN_REFETCH_INTERVAL).await?.1));
        }
        Ok(found)
    }

    /// A catalog no older than `age`. While fetching fails, an old catalog is used.
    async fn copy(&self, age: Duration) -> Result<(Instant, Arc<Catalog>), ApiError> {
        let old = {
            let cache = self.cache();
            if let Some((came, catalog)) = &cache.copy
                && (came.elapsed() <= age
                    || cache.failed.is_some_and(|at| at.elapsed() <= MIN_REFETCH_INTERVAL))
            {
                return Ok((*came, Arc::clone(catalog)));
            }
            cache.copy.clone()
        };
        let known = old.as_ref().map(|(_, catalog)| Arc::clone(catalog));
        let inner = Arc::clone(&self.0);
        let fetch = || async move { inner.fetch(known).await }.boxed();
        let (fetched, _) = self.0.flights.run_within(&(), Duration::MAX, fetch).await;
        match (fetched, old) {
            (Ok(catalog), _) => Ok((Instant::now(), catalog)),
            (Err(_), Some(old)) => Ok(old),
            (Err(error), None) => Err(error),
        }
    }

    fn cache(&self) -> MutexGuard<'_, CatalogCache> {
        self.0.cache.locked()
    }
}

impl DiscoveryState {
    async fn fetch(&self, known: Option<Arc<Catalog>>) -> Result<Arc<Catalog>, ApiError> {
        let mut requests = 0;
        let fetched = document::fetch(&self.client, known.as_deref(), &mut requests).await;
        let mut cache = self.cache.locked();
        cache.requests += requests;
        match fetched {
            Ok(catalog) => {
                let catalog = Arc::new(catalog);
                cache.copy = Some((Instant::now(), Arc::clone(&catalog)));
                cache.failed = None;
                Ok(catalog)
            }
            Err(error) => {
                cache.failed = Some(Instant::now());
                tracing::warn!(%error, kept = known.is_some(), "cannot ask which kinds the server knows");
                Err(error)
            }
        }
    }
}
