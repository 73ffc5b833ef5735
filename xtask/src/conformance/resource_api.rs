//! The resource metrics API over HTTP (`resource_api.jsonl`).

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use api::provider::{
    ContainerUsage, Labels, ListFilter, Lookup, NodeUsage, PodUsage, ProviderFuture, ResourceMetricsProvider,
    ResourceUsage,
};
use jiff::Timestamp;
use quantity::{Format, Quantity};
use serde::Deserialize;
use serde_json::Value;
use serve::metrics::MetricsApiSettings;
use serve::{App, InProcessServer};

use super::Outcome;
use super::custom_api::exchange;

/// The first record.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceApiFixture {
    creation_timestamp: Timestamp,
    nodes: Vec<NodeFixture>,
    pods: Vec<PodFixture>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeFixture {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    timestamp: Option<Timestamp>,
    window_ms: i64,
    usage: Option<Amounts>,
    #[serde(default)]
    no_metrics: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodFixture {
    namespace: String,
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    timestamp: Option<Timestamp>,
    window_ms: i64,
    containers: Option<Vec<Container>>,
    #[serde(default)]
    no_metrics: bool,
}

#[derive(Deserialize)]
struct Container {
    name: String,
    #[serde(flatten)]
    usage: Amounts,
}

#[derive(Deserialize)]
struct Amounts {
    cpu: String,
    memory: String,
}

/// What is known; none: without samples.
struct ResourceApiProvider {
    nodes: Vec<(String, Option<NodeUsage>)>,
    pods: Vec<(String, String, Option<PodUsage>)>,
}

/// Replays the whole file: its first record is what the server knows.
pub(crate) fn replay(records: &[Value]) -> anyhow::Result<Vec<Outcome>> {
    let [first, records @ ..] = records else { anyhow::bail!("the file is empty") };
    let fixture: ResourceApiFixture =
        serde_json::from_value(first.clone()).context("the first record is no fixture")?;
    let (now, provider) = (fixture.creation_timestamp, Arc::new(ResourceApiProvider::new(fixture)?));
    exchange::replay(records, |compat| {
        let settings =
            MetricsApiSettings { clock: serve::Clock::new(move || now), ..MetricsApiSettings::from(compat) };
        let groups = serve::metrics::resource(provider.clone(), &settings);
        let app = App { groups, address: "localhost:443".to_owned(), ..App::default() };
        [(String::new(), InProcessServer::new(app))].into()
    })
}

impl ResourceApiProvider {
    fn new(fixture: ResourceApiFixture) -> anyhow::Result<Self> {
        let mut nodes = Vec::new();
        for node in fixture.nodes {
            let usage = match node.usage {
                Some(amounts) if !node.no_metrics => Some(NodeUsage {
                    name: node.name.as_str().into(),
                    labels: labels(node.labels),
                    timestamp: node.timestamp,
                    window: node.window_ms * 1_000_000,
                    usage: amounts.read()?,
                }),
                _ => None,
            };
            nodes.push((node.name, usage));
        }
        let mut pods = Vec::new();
        for pod in fixture.pods {
            let usage = match pod.containers {
                Some(containers) if !pod.no_metrics => Some(PodUsage {
                    namespace: pod.namespace.as_str().into(),
                    name: pod.name.as_str().into(),
                    labels: labels(pod.labels),
                    timestamp: pod.timestamp,
                    window: pod.window_ms * 1_000_000,
                    containers: containers
                        .into_iter()
                        .map(|it| {
                            Ok(ContainerUsage { name: it.name.as_str().into(), usage: it.usage.read()? })
                        })
                        .collect::<anyhow::Result<_>>()?,
                }),
                _ => None,
            };
            pods.push((pod.namespace, pod.name, usage));
        }
        nodes.sort_by(|a, b| a.0.cmp(&b.0));
        pods.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        Ok(Self { nodes, pods })
    }
}

impl Amounts {
    /// In the units in which they are kept: nanoseconds per second, and bytes.
    fn read(&self) -> anyhow::Result<ResourceUsage> {
        let cpu = Quantity::parse(&self.cpu)?.scaled_value(-9);
        let memory = Quantity::parse(&self.memory)?.value();
        Ok(vec![
            ("cpu".into(), Quantity::from_scaled(cpu, -9, Format::DecimalSi)),
            ("memory".into(), Quantity::new(memory, Format::BinarySi)),
        ])
    }
}

fn labels(labels: BTreeMap<String, String>) -> Arc<Labels> {
    Arc::new(labels.into_iter().collect())
}

/// Whether a list has an object with these labels, name and namespace.
fn is_listed(which: &ListFilter, labels: &Labels, name: &str, namespace: &str) -> bool {
    let field = |field: &str| if field == "metadata.name" { name } else { namespace };
    labels.are_selected(&which.labels)
        && which.fields.matches(field)
        && which.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
}

fn found<T: Clone>(entry: Option<&Option<T>>) -> Lookup<T> {
    match entry {
        None => Lookup::NotFound,
        Some(None) => Lookup::NoSamples,
        Some(Some(usage)) => Lookup::Found(usage.clone()),
    }
}

impl ResourceMetricsProvider for ResourceApiProvider {
    fn pods<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<PodUsage>> {
        let all = self.pods.iter().filter_map(|(_, _, usage)| usage.clone());
        let pods = all.filter(|pod| is_listed(which, &pod.labels, &pod.name, &pod.namespace)).collect();
        Box::pin(async { Ok(pods) })
    }

    fn pod<'a>(&'a self, namespace: &'a str, name: &'a str) -> ProviderFuture<'a, Lookup<PodUsage>> {
        let entry = self.pods.iter().find(|pod| pod.0 == namespace && pod.1 == name);
        Box::pin(async move { Ok(found(entry.map(|pod| &pod.2))) })
    }

    fn nodes<'a>(&'a self, which: &'a ListFilter) -> ProviderFuture<'a, Vec<NodeUsage>> {
        let all = self.nodes.iter().filter_map(|(_, usage)| usage.clone());
        let nodes = all.filter(|node| is_listed(which, &node.labels, &node.name, "")).collect();
        Box::pin(async { Ok(nodes) })
    }

    fn node<'a>(&'a self, name: &'a str) -> ProviderFuture<'a, Lookup<NodeUsage>> {
        let entry = self.nodes.iter().find(|node| node.0 == name);
        Box::pin(async move { Ok(found(entry.map(|node| &node.1))) })
    }
}
