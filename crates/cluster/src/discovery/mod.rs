//! The kinds and versions the server knows, remembered for a while.
//!
//! ```text
//! catalog    what is known, and what can be asked of it
//! document   the server's documents: one for all groups, or one per group and version
//! ```

mod catalog;
mod document;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use tokio::time::Instant;

use runtime::SingleFlight;

use crate::request::ApiError;
pub(crate) use catalog::Catalog;

/// A copy older than this is not used (docs/spec/hpa.md 2.4).
const USABLE: Duration = Duration::from_secs(30);

/// A copy younger than this is not asked for again because something is not in it.
const FRESH: Duration = Duration::from_secs(5);

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
    /// AutoscalerKind.
    pub kind: String,
    /// Whether its objects live in namespaces.
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
    /// It is not.
    Absent,
    /// Nobody can tell at the moment.
    Unknown,
}

/// What the server serves. Cheap to clone.
#[derive(Clone)]
pub struct Discovery(Arc<Inner>);

struct Inner {
    client: Client,
    memory: Mutex<Memory>,
    flights: SingleFlight<(), Result<Arc<Catalog>, ApiError>>,
}

#[derive(Default)]
struct Memory {
    copy: Option<(Instant, Arc<Catalog>)>,
    /// When it was last asked for in vain, since the copy came.
    failed: Option<Instant>,
    requests: u64,
}

impl Discovery {
    /// Nothing is asked until somebody wants to know.
    pub fn new(client: Client) -> Self {
        Self(Arc::new(Inner { client, memory: Mutex::default(), flights: SingleFlight::default() }))
    }

    /// All resources with this group and kind, in the server's order (docs/spec/hpa.md 2.4, 3.2): dropped every 30 s, and asked once
    /// more at once when nothing is found and the copy is not fresh.
    ///
    /// A kind in several versions comes as often as it has versions, each time in the preferred one (T43).
    pub async fn mappings(&self, group: &str, kind: &str) -> Result<Vec<Resource>, String> {
        let found = self.look_up(|catalog| catalog.mappings(group, kind), Vec::is_empty);
        let found = found.await.map_err(|e| e.message)?;
        if found.is_empty() {
            return Err(format!("no matches for kind \"{kind}\" in group \"{group}\""));
        }
        Ok(found)
    }

    /// The resource of a kind in exactly this version; none if the server has no such kind. As [`Discovery::mappings`],
    /// it looks once more at once when nothing is found.
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

    /// As [`Discovery::versions`], but from a copy that is no older than `age`.
    pub async fn versions_within(&self, group: &str, age: Duration) -> Result<Vec<String>, ApiError> {
        Ok(self.copy(age).await?.1.versions(group))
    }

    /// All resources, each in its preferred version, groups in the server's order: from a copy that is no older than `age`.
    pub async fn resources_within(&self, age: Duration) -> Result<Vec<Resource>, ApiError> {
        Ok(self.copy(age).await?.1.resources())
    }

    /// As what the scale of a resource is served.
    pub async fn scale_kind(&self, resource: &Resource) -> ScaleKind {
        let found = self.look_up(|catalog| catalog.scale_kind(resource), Option::is_none).await;
        found.map_or(ScaleKind::Unknown, |kind| kind.map_or(ScaleKind::Absent, ScaleKind::Served))
    }

    /// How many documents were asked for.
    pub fn requests(&self) -> u64 {
        self.memory().requests
    }

    async fn look_up<T>(
        &self,
        ask: impl Fn(&Catalog) -> T,
        nothing: impl Fn(&T) -> bool,
    ) -> Result<T, ApiError> {
        let (came, catalog) = self.copy(USABLE).await?;
        let found = ask(&catalog);
        if nothing(&found) && came.elapsed() > FRESH {
            return Ok(ask(&self.copy(FRESH).await?.1));
        }
        Ok(found)
    }

    /// A copy no older than `age`. While the server cannot be asked, an old copy is better than none.
    async fn copy(&self, age: Duration) -> Result<(Instant, Arc<Catalog>), ApiError> {
        let old = {
            let memory = self.memory();
            if let Some((came, catalog)) = &memory.copy
                && (came.elapsed() <= age || memory.failed.is_some_and(|at| at.elapsed() <= FRESH))
            {
                return Ok((*came, Arc::clone(catalog)));
            }
            memory.copy.clone()
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

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    async fn fetch(&self, known: Option<Arc<Catalog>>) -> Result<Arc<Catalog>, ApiError> {
        let mut requests = 0;
        let fetched = document::fetch(&self.client, known.as_deref(), &mut requests).await;
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.requests += requests;
        match fetched {
            Ok(catalog) => {
                let catalog = Arc::new(catalog);
                memory.copy = Some((Instant::now(), Arc::clone(&catalog)));
                memory.failed = None;
                Ok(catalog)
            }
            Err(error) => {
                memory.failed = Some(Instant::now());
                tracing::warn!(%error, kept = known.is_some(), "cannot ask which kinds the server knows");
                Err(error)
            }
        }
    }
}
