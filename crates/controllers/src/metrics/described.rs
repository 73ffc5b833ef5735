//! The objects that rules describe: the kinds of the cluster, the names of its objects, its pods and nodes.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use api::provider::{MetricsError, ProviderFuture};
use api::selector::Selector;
use cluster::discovery::{Discovery, Resource};
use cluster::names::NameLister;
use cluster::request::ApiError;
use kube::Client;
use locks::RwLockExt as _;
use sources::inventory::{Inventory, Node, Pod};
use sources::prometheus::mapper::{KnownResource, RestMapper};
use sources::prometheus::provider::ClusterResources;

/// How long a list of names is cached: many queries of one HPA period need the same list.
const NAMES_AGE: Duration = Duration::from_secs(5);

/// The cluster for rules.
pub(super) struct Described {
    discovery: Discovery,
    names: NameLister,
    known: RwLock<(Vec<Resource>, Arc<RestMapper>)>,
    inventory: Inventory,
}

impl Described {
    /// Discovers the kinds of the cluster, without which no rule can be compiled.
    pub(super) async fn new(client: &Client, inventory: Inventory) -> Result<Self, ApiError> {
        let discovery = Discovery::new(client.clone());
        let resources = discovery.resources_within(Duration::ZERO).await?;
        let mapper = Arc::new(mapper(&resources));
        let names = NameLister::new(client.clone(), NAMES_AGE);
        Ok(Self { discovery, names, known: RwLock::new((resources, mapper)), inventory })
    }

    /// Discovers the kinds again; unchanged documents are not sent again.
    pub(super) async fn rediscover(&self) {
        // After a failure the known kinds stay until the next discovery.
        let Ok(resources) = self.discovery.resources_within(Duration::ZERO).await else { return };
        let mut known = self.known.write_locked();
        if known.0 != resources {
            tracing::debug!(kinds = resources.len(), "the cluster has other kinds than before");
            *known = (resources.clone(), Arc::new(mapper(&resources)));
        }
    }
}

fn mapper(resources: &[Resource]) -> RestMapper {
    let known = |resource: &Resource| KnownResource {
        group: resource.group.clone(),
        version: resource.version.clone(),
        plural: resource.plural.clone(),
        singular: resource.singular.clone(),
        kind: resource.kind.clone(),
        namespaced: resource.namespaced,
    };
    RestMapper::new(resources.iter().map(known).collect())
}

impl ClusterResources for Described {
    fn mapper(&self) -> Arc<RestMapper> {
        Arc::clone(&self.known.read_locked().1)
    }

    fn names<'a>(
        &'a self,
        resource: &'a KnownResource,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> ProviderFuture<'a, Vec<String>> {
        Box::pin(async move {
            let of = Resource {
                group: resource.group.clone(),
                version: resource.version.clone(),
                plural: resource.plural.clone(),
                singular: resource.singular.clone(),
                kind: resource.kind.clone(),
                namespaced: resource.namespaced,
            };
            let names = self.names.list(&of, namespace, &selector.to_string()).await.map_err(|error| {
                let remedy = match error.code {
                    Some(403) => "; let the service account list it (ClusterRole plimsoll-metrics-described)",
                    _ => "",
                };
                MetricsError::Internal(format!(
                    "failed to list {}: {}{remedy}",
                    of.group_resource(),
                    error.message
                ))
            })?;
            Ok(names.to_vec())
        })
    }

    fn pods(&self, namespace: Option<&str>) -> Vec<Arc<Pod>> {
        self.inventory.pods(namespace)
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.inventory.pod(namespace, name)
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        self.inventory.nodes()
    }

    fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.inventory.node(name)
    }
}

#[cfg(test)]
mod tests {
    use localkube::{Cluster, Options};

    use super::*;

    #[tokio::test]
    async fn kinds_and_names_are_those_of_the_cluster() {
        let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
        let described = Described::new(&running.client(), Inventory::new()).await.unwrap();
        let mapper = described.mapper();
        let namespaces = mapper.find("", "namespace").unwrap().clone();
        assert_eq!((namespaces.plural.as_str(), namespaces.namespaced), ("namespaces", false));
        assert_eq!(mapper.find("apps", "deployments").unwrap().kind, "Deployment");
        let names = described.names(&namespaces, None, &Selector::default()).await.unwrap();
        assert!(names.iter().any(|name| name == "default"), "{names:?}");
        described.rediscover().await;
        // Nothing has changed, so it is the same `Arc`.
        assert!(Arc::ptr_eq(&mapper, &described.mapper()));
    }
}
