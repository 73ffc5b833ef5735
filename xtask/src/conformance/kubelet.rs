//! Sequences of scrapes: what is read, kept and served (`kubelet.jsonl`).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use api::provider::{
    Compat, ContainerUsage, Labels, ListFilter, NodeUsage, PodUsage, ProviderFuture, ResourceMetricsProvider,
    ResourceUsage,
};
use api::selector::{FieldSelector, Selector};
use api::time::{go_duration, parse_go_duration};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use sources::inventory::{Inventory, Node, Pod};
use sources::kubelet::text::parse;
use sources::kubelet::{MetricsPoint, Scrape};
use sources::store::{KubeletProvider, Store, StoreSettings};

use super::{Difference, Outcome};

#[derive(Deserialize)]
struct KubeletRecord {
    resolution: String,
    nodes: Vec<KubeletObject>,
    #[serde(default, rename = "runningPods")]
    running_pods: Option<Vec<KubeletObject>>,
    scrapes: Vec<Tick>,
}

#[derive(Deserialize)]
struct KubeletObject {
    #[serde(default)]
    namespace: String,
    name: String,
    #[serde(default)]
    labels: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct Tick {
    answers: Vec<Answered>,
    ready: bool,
    nodes: Value,
    pods: Value,
}

#[derive(Deserialize)]
struct Answered {
    node: Arc<str>,
    #[serde(rename = "sentAt")]
    sent_at: Timestamp,
    body: Option<String>,
    #[serde(rename = "bodyBase64")]
    body_base64: Option<String>,
    error: Option<String>,
    crash: Option<String>,
    decoded: Option<Value>,
}

/// Replays every line, each with a new server.
pub(crate) fn replay(records: &[Value]) -> Vec<Outcome> {
    let replayed = |value: &Value| {
        let record = KubeletRecord::deserialize(value);
        Outcome::of(value, |compat| check(record.as_ref().map_err(|error| anyhow!("{error}"))?, compat))
    };
    records.iter().map(replayed).collect()
}

fn check(record: &KubeletRecord, compat: Compat) -> anyhow::Result<Vec<Difference>> {
    let resolution = parse_go_duration(&record.resolution).context("`resolution` is no duration")?;
    let resolution = Duration::try_from(resolution)?;
    let inventory = inventory(record);
    let store = Store::new(StoreSettings { resolution, keep: resolution * 3, compat }, inventory.clone());
    let provider = KubeletProvider::new(store.clone(), inventory, Selector::everything());
    let mut differences = Vec::new();
    for (number, tick) in record.scrapes.iter().enumerate() {
        let mut answers: Vec<&Answered> = tick.answers.iter().collect();
        answers.sort_by_key(|answer| answer.sent_at);
        let mut reported = Vec::new();
        for answer in answers {
            let at = format!("scrapes[{number}] {}", answer.node);
            match (scraped(&at, answer, compat, &mut differences)?, compat) {
                (Some(scrape), Compat::Strict) => reported.push((Arc::clone(&answer.node), scrape)),
                (Some(scrape), Compat::Better) => store.take(&answer.node, scrape, answer.sent_at),
                (None, Compat::Strict) => {}
                (None, Compat::Better) => store.scrape_failed(&answer.node, answer.sent_at),
            }
        }
        if compat.is_strict() {
            store.replace_all(reported);
        }
        let mut compare = |what: &str, expected: &Value, got: Value| {
            if !same(expected, &got) {
                differences.push(Difference::json(format!("scrapes[{number}] {what}"), expected, &got));
            }
        };
        compare("ready", &json!(tick.ready), json!(store.is_ready()));
        let all = everything()?;
        compare("nodes", &tick.nodes, listed(provider.nodes(&all), node)?);
        compare("pods", &tick.pods, listed(provider.pods(&all), pod)?);
    }
    Ok(differences)
}

/// The decoded response of one kubelet, compared with the recording; none if it has no metrics.
fn scraped(
    at: &str,
    answer: &Answered,
    compat: Compat,
    differences: &mut Vec<Difference>,
) -> anyhow::Result<Option<Scrape>> {
    let body = match (&answer.body, &answer.body_base64) {
        (Some(body), _) => body.clone().into_bytes(),
        (None, Some(body)) => STANDARD.decode(body)?,
        // The kubelet was not scraped, or did not return metrics.
        (None, None) => return Ok(None),
    };
    let parsed = parse(&body, answer.sent_at, compat);
    let got = match &parsed {
        Ok(scrape) => decoded(scrape),
        Err(error) => json!(error.to_string()),
    };
    let agrees = match (&parsed, &answer.decoded, &answer.error) {
        (Ok(_), Some(decoded), _) => got == *decoded,
        (Err(error), _, Some(recorded)) => {
            let prefix = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
            prefix(&error.to_string()) == prefix(recorded)
        }
        _ => false,
    };
    if !agrees {
        let recorded = [answer.decoded.clone(), answer.error.clone().map(Value::from)];
        let crash = answer.crash.clone().map(Value::from);
        let expected = recorded.into_iter().chain([crash]).flatten().next().unwrap_or_default();
        differences.push(Difference::json(format!("{at} decoded"), &expected, &got));
    }
    Ok(parsed.ok())
}

fn inventory(record: &KubeletRecord) -> Inventory {
    let labels = |object: &KubeletObject| {
        let pairs =
            object.labels.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
        Arc::new(pairs.collect::<Labels>())
    };
    let inventory = Inventory::new();
    for node in &record.nodes {
        inventory.set_node(Node { name: node.name.as_str().into(), labels: labels(node), ..Node::default() });
    }
    for pod in record.running_pods.iter().flatten() {
        let (namespace, name) = (pod.namespace.as_str().into(), pod.name.as_str().into());
        inventory.set_pod(Pod { namespace, name, labels: labels(pod) });
    }
    inventory.nodes_complete();
    inventory.pods_complete();
    inventory
}

fn everything() -> anyhow::Result<ListFilter> {
    let fields = FieldSelector::parse("")?;
    Ok(ListFilter { namespace: None, labels: Selector::everything(), fields })
}

fn listed<T>(answer: ProviderFuture<'_, Vec<T>>, shown: fn(&T) -> Value) -> anyhow::Result<Value> {
    let items = answer.now_or_never().context("a list that has to wait")??;
    Ok(items.iter().map(shown).collect())
}

fn decoded(scrape: &Scrape) -> Value {
    let point = |point: &MetricsPoint| {
        let mut shown = json!({"ts": point.time, "cpu": point.cpu, "mem": point.memory});
        if let (Some(start), Some(shown)) = (point.start, shown.as_object_mut()) {
            shown.insert("start".to_owned(), json!(start));
        }
        shown
    };
    let container = |(name, sample): &(Box<str>, MetricsPoint)| {
        let mut shown = point(sample);
        if let Some(shown) = shown.as_object_mut() {
            shown.insert("name".to_owned(), json!(name));
        }
        shown
    };
    let pods: Vec<Value> = scrape
        .pods
        .iter()
        .map(|pod| {
            let containers: Vec<Value> = pod.containers.iter().map(container).collect();
            json!({"namespace": pod.namespace, "name": pod.name, "containers": containers})
        })
        .collect();
    json!({"node": scrape.node.as_ref().map(point), "pods": pods})
}

fn node(node: &NodeUsage) -> Value {
    let metadata = metadata(None, &node.name, &node.labels);
    let (timestamp, window) = times(node.timestamp, node.window);
    json!({"metadata": metadata, "timestamp": timestamp, "window": window, "usage": usage(&node.usage)})
}

fn pod(pod: &PodUsage) -> Value {
    let container =
        |container: &ContainerUsage| json!({"name": container.name, "usage": usage(&container.usage)});
    let containers: Vec<Value> = pod.containers.iter().map(container).collect();
    let metadata = metadata(Some(&pod.namespace), &pod.name, &pod.labels);
    let (timestamp, window) = times(pod.timestamp, pod.window);
    json!({"metadata": metadata, "timestamp": timestamp, "window": window, "containers": containers})
}

fn metadata(namespace: Option<&str>, name: &str, labels: &Labels) -> Value {
    let mut shown = json!({"name": name});
    if let Some(object) = shown.as_object_mut() {
        object.extend(namespace.map(|namespace| ("namespace".to_owned(), json!(namespace))));
        if !labels.is_empty() {
            let labels = labels.iter().map(|(key, value)| (key.to_owned(), json!(value)));
            object.insert("labels".to_owned(), Value::Object(labels.collect()));
        }
    }
    shown
}

fn times(timestamp: Option<Timestamp>, window: i64) -> (Value, Value) {
    let seconds = timestamp.and_then(|time| Timestamp::from_second(time.as_second()).ok());
    (json!(seconds.map(|time| time.to_string())), json!(go_duration(SignedDuration::from_nanos(window))))
}

fn usage(usage: &ResourceUsage) -> Value {
    let shown = usage.iter().map(|(name, quantity)| (name.to_string(), json!(quantity.to_string())));
    Value::Object(shown.collect())
}

/// Whether values are equal, where any of several windows may be right.
fn same(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len() && expected.iter().zip(got).all(|(expected, got)| same(expected, got))
        }
        (Value::Object(expected), Value::Object(got)) if expected.contains_key("windowAnyOf") => {
            let (mut expected, mut got) = (expected.clone(), got.clone());
            let any = expected.remove("windowAnyOf");
            let window = got.remove("window");
            let one =
                any.as_ref().and_then(Value::as_array).zip(window).is_some_and(|(any, w)| any.contains(&w));
            one && expected == got
        }
        _ => expected == got,
    }
}
