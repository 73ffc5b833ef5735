//! CPU and memory of pods and nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::provider::{
    ListFilter, Lookup, MetricsError, NodeUsage, PodUsage, ProviderFuture, ResourceMetricsProvider,
};
use quantity::Format;

use super::{PrometheusProvider, ProviderInner, ProviderState, separable};
use crate::inventory::{Node, Pod};
use crate::prometheus::client::{PrometheusError, QueryResponse};
use crate::prometheus::convert::{self, ResourceResponse, UnusableResult};
use crate::prometheus::query::{ObjectFilter, PromQuery, QueryBuildError};
use crate::prometheus::rule::{ResourceQueries, ResourceQuery};

impl ResourceMetricsProvider for PrometheusProvider {
    fn source(&self) -> Option<&'static str> {
        Some("Prometheus")
    }

    fn pods<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>> {
        Box::pin(async move {
            let mut pods = self.0.cluster.pods(which.namespace.as_deref());
            pods.retain(|pod| {
                pod.labels.are_selected(&which.labels)
                    && which.fields.matches(|field| match field {
                        "metadata.name" => &pod.name,
                        "metadata.namespace" => &pod.namespace,
                        _ => "",
                    })
            });
            self.0.pods(pods).await
        })
    }

    fn pod<'a>(&'a self, namespace: &'a str, name: &'a str) -> ProviderFuture<'a, Lookup<PodUsage>> {
        Box::pin(async move {
            let Some(pod) = self.0.cluster.pod(namespace, name) else { return Ok(Lookup::NotFound) };
            Ok(self.0.pods(vec![pod]).await?.pop().map_or(Lookup::NoSamples, Lookup::Found))
        })
    }

    fn nodes<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<NodeUsage>> {
        Box::pin(async move {
            let mut nodes = self.0.cluster.nodes();
            nodes.retain(|node| {
                node.labels.are_selected(&which.labels)
                    && which.fields.matches(|field| if field == "metadata.name" { &node.name } else { "" })
            });
            self.0.nodes(nodes).await
        })
    }

    fn node<'a>(&'a self, name: &'a str) -> ProviderFuture<'a, Lookup<NodeUsage>> {
        Box::pin(async move {
            let Some(node) = self.0.cluster.node(name) else { return Ok(Lookup::NotFound) };
            Ok(self.0.nodes(vec![node]).await?.pop().map_or(Lookup::NoSamples, Lookup::Found))
        })
    }
}

/// Why the usage of pods or nodes could not be queried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
enum UsageError {
    Query(#[from] QueryBuildError),
    Prometheus(#[from] PrometheusError),
    Result(#[from] UnusableResult),
}

/// CPU and memory responses, and the labels that name their objects.
struct CpuAndMemory {
    cpu: (Arc<QueryResponse>, String),
    memory: (Arc<QueryResponse>, String),
}

impl ProviderInner {
    /// Usage of pods, one query pair per namespace. A namespace whose queries fail is omitted; if all fail, that is
    /// an error outside strict mode.
    async fn pods(&self, pods: Vec<Arc<Pod>>) -> Result<Vec<PodUsage>, MetricsError> {
        let state = self.state();
        let rules = served(&state)?;
        let mut by_namespace: BTreeMap<Arc<str>, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in pods {
            by_namespace.entry(Arc::clone(&pod.namespace)).or_default().push(pod);
        }
        let queries =
            by_namespace.iter().map(|(namespace, pods)| self.namespace(&state, rules, namespace, pods));
        let answers = futures::future::join_all(queries).await;
        let mut found = Vec::new();
        let mut first_failure = None;
        let mut any = answers.is_empty();
        for (namespace, answer) in by_namespace.keys().zip(answers) {
            match answer {
                Ok(pods) => {
                    any = true;
                    found.extend(pods);
                }
                Err(why) => {
                    tracing::warn!(%namespace, %why, "pods of a namespace are omitted");
                    first_failure.get_or_insert(why);
                }
            }
        }
        match first_failure {
            Some(why) if !any && !self.compat().is_strict() => {
                Err(MetricsError::Unavailable(format!("unable to fetch metrics: {why}")))
            }
            _ => Ok(found),
        }
    }

    async fn namespace(
        &self,
        state: &ProviderState,
        rules: &ResourceQueries,
        namespace: &str,
        pods: &[Arc<Pod>],
    ) -> Result<Vec<PodUsage>, UsageError> {
        let names: Vec<&str> = pods.iter().map(|pod| &*pod.name).collect();
        let one = |rule: &ResourceQuery| {
            let objects = self.objects(rule.containers.text(), &names);
            rule.containers_query(&state.mapper, namespace, &objects)
        };
        let both = self.both(one(&rules.cpu)?, one(&rules.memory)?).await?;
        let parts = both.parts(&rules.cpu.container_label, &rules.memory.container_label);
        let mut usage = convert::pods(&parts, self.compat())?;
        let window = window(rules);
        let found = pods.iter().filter_map(|pod| {
            let (timestamp, containers) = usage.remove(&*pod.name)?;
            Some(PodUsage {
                namespace: Arc::clone(&pod.namespace),
                name: Arc::clone(&pod.name),
                labels: Arc::clone(&pod.labels),
                timestamp,
                window,
                containers,
            })
        });
        Ok(found.collect())
    }

    async fn nodes(&self, nodes: Vec<Arc<Node>>) -> Result<Vec<NodeUsage>, MetricsError> {
        let state = self.state();
        let rules = served(&state)?;
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        match self.known_nodes(&state, rules, &nodes).await {
            Ok(found) => Ok(found),
            Err(why) => {
                tracing::warn!(%why, "nodes are omitted");
                if self.compat().is_strict() {
                    Ok(Vec::new())
                } else {
                    Err(MetricsError::Unavailable(format!("unable to fetch metrics: {why}")))
                }
            }
        }
    }

    async fn known_nodes(
        &self,
        state: &ProviderState,
        rules: &ResourceQueries,
        nodes: &[Arc<Node>],
    ) -> Result<Vec<NodeUsage>, UsageError> {
        let names: Vec<&str> = nodes.iter().map(|node| &*node.name).collect();
        let one =
            |rule: &ResourceQuery| rule.nodes_query(&state.mapper, &self.objects(rule.nodes.text(), &names));
        let both = self.both(one(&rules.cpu)?, one(&rules.memory)?).await?;
        let mut usage = convert::nodes(&both.parts("", ""), self.compat())?;
        let window = window(rules);
        let found = nodes.iter().filter_map(|node| {
            let (timestamp, usage) = usage.remove(&*node.name)?;
            Some(NodeUsage {
                name: Arc::clone(&node.name),
                labels: Arc::clone(&node.labels),
                timestamp,
                window,
                usage,
            })
        });
        Ok(found.collect())
    }

    /// Selects all objects instead of very many names, if the template allows it.
    fn objects<'n>(&self, template: &str, names: &'n [&'n str]) -> ObjectFilter<'n> {
        let many = !self.compat().is_strict() && names.len() > self.settings.max_names_per_query;
        if many && separable::is_separable(template) { ObjectFilter::Any } else { ObjectFilter::Named(names) }
    }

    async fn both(&self, cpu: PromQuery, memory: PromQuery) -> Result<CpuAndMemory, UsageError> {
        let now = self.now();
        let run_query = async |query: PromQuery| {
            let reply = self.prometheus.query(&query.text, now, self.settings.query_timeout).await;
            let reply = reply?;
            self.warnings_log.note(&query.text, &reply, 0, 0);
            Ok::<_, PrometheusError>((reply, query.label))
        };
        let (cpu, memory) = futures::future::join(run_query(cpu), run_query(memory)).await;
        Ok(CpuAndMemory { cpu: cpu?, memory: memory? })
    }
}

impl CpuAndMemory {
    fn parts<'a>(&'a self, cpu_container: &'a str, memory_container: &'a str) -> [ResourceResponse<'a>; 2] {
        let (cpu, memory) = (&self.cpu, &self.memory);
        [
            ResourceResponse {
                resource: "cpu",
                format: Format::DecimalSi,
                label: &cpu.1,
                container: cpu_container,
                reply: &cpu.0,
            },
            ResourceResponse {
                resource: "memory",
                format: Format::BinarySi,
                label: &memory.1,
                container: memory_container,
                reply: &memory.0,
            },
        ]
    }
}

fn served(state: &ProviderState) -> Result<&ResourceQueries, MetricsError> {
    let none = || MetricsError::Internal("there are no resourceRules any more".to_owned());
    state.rules.resource().ok_or_else(none)
}

fn window(rules: &ResourceQueries) -> i64 {
    i64::try_from(rules.window.as_nanos()).unwrap_or(i64::MAX)
}
