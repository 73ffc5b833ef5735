//! The JSON of metrics: objects, lists and tables.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use quantity::Quantity;
use serde_json::{Map, Value, json};

use super::contents::{DescribedObject, Labels, NodeUsage, PodUsage, SampleTime, Series};
use crate::kinds::KINDS;
use crate::tables::{Include, partial, partial_list, stamp};
use crate::verbs::present::Representation;

/// The group and version of resource metrics.
pub(super) const RESOURCE_METRICS_VERSION: &str = "metrics.k8s.io/v1beta1";

pub(super) fn pod(namespace: &str, name: &str, pod: &PodUsage, now: Timestamp) -> Value {
    let containers = pod.containers.iter().map(|container| {
        let usage: Map<String, Value> = amounts(&container.usage);
        json!({"name": container.name, "usage": usage})
    });
    json!({
        "metadata": metadata(name, namespace, &pod.labels, now),
        "timestamp": time(pod.when, now),
        "window": go_duration(pod.window),
        "containers": containers.collect::<Value>(),
    })
}

pub(super) fn node(name: &str, node: &NodeUsage, now: Timestamp) -> Value {
    json!({
        "metadata": metadata(name, "", &node.labels, now),
        "timestamp": time(node.when, now),
        "window": go_duration(node.window),
        "usage": amounts(&node.usage),
    })
}

pub(super) fn custom(
    version: &str,
    metric: &str,
    object: &DescribedObject,
    series: &Series,
    selector: &Value,
    now: Timestamp,
) -> Value {
    let mut item = json!({"describedObject": reference(object)});
    let mut set = |key: &str, value: Value| {
        if let Some(item) = item.as_object_mut() {
            item.insert(key.to_owned(), value);
        }
    };
    let old = version == "v1beta1";
    if old {
        set("metricName", metric.into());
    } else {
        set("metric", json!({"name": metric, "selector": selector}));
    }
    set("timestamp", time(series.when, now));
    if let Some(window) = series.window {
        set(if old { "window" } else { "windowSeconds" }, window.as_secs().into());
    }
    set("value", series.value.canonical().into());
    if old {
        set("selector", selector.clone());
    }
    item
}

pub(super) fn external(metric: &str, series: &Series, now: Timestamp) -> Value {
    let mut item = json!({
        "metricName": metric,
        "metricLabels": series.labels,
        "timestamp": time(series.when, now),
    });
    if let Some(item) = item.as_object_mut() {
        if let Some(window) = series.window {
            item.insert("window".to_owned(), window.as_secs().into());
        }
        item.insert("value".to_owned(), series.value.canonical().into());
    }
    item
}

pub(super) fn list(kind: &str, api_version: &str, items: Vec<Value>) -> Value {
    let head = [("kind", kind.into()), ("apiVersion", api_version.into()), ("metadata", json!({}))];
    let fields = head.into_iter().chain([("items", Value::Array(items))]);
    fields.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Resource metrics in the requested representation.
pub(super) fn shown(form: &Representation, kind: &str, items: Vec<Value>, single: bool) -> Value {
    match form {
        Representation::Table { version, include } => {
            let mut table = table(kind, &items, *include);
            stamp(&mut table, version);
            table
        }
        Representation::Partial { version, .. } => {
            let mut found = match items.first().filter(|_| single) {
                Some(item) => partial(item),
                None => partial_list(&items, json!({})),
            };
            stamp(&mut found, version);
            found
        }
        Representation::Whole if single => {
            items.into_iter().next().map_or(Value::Null, |item| typed(kind, &item))
        }
        Representation::Whole => list(&format!("{kind}List"), RESOURCE_METRICS_VERSION, items),
    }
}

fn table(kind: &str, items: &[Value], include: Include) -> Value {
    let totals: Vec<BTreeMap<String, Quantity>> = items.iter().map(total).collect();
    let keys: Vec<&String> =
        totals.iter().find(|total| !total.is_empty()).into_iter().flat_map(BTreeMap::keys).collect();
    let column = |name: &str, format: &str, description: &str| json!({"name": name, "type": "string", "format": format, "description": description, "priority": 0});
    let mut columns = vec![column("Name", "name", "Name of the resource")];
    columns.extend(keys.iter().map(|key| column(key, "quantity", "")));
    columns.push(column("Window", "duration", ""));
    let row = |(item, total): (&Value, &BTreeMap<String, Quantity>)| {
        let mut cells = vec![item.pointer("/metadata/name").cloned().unwrap_or_default()];
        cells.extend(
            keys.iter().map(|key| total.get(*key).map_or_else(|| json!(""), |sum| json!(sum.canonical()))),
        );
        cells.push(item.get("window").cloned().unwrap_or_default());
        let object = match include {
            Include::None => Value::Null,
            Include::Metadata => partial(item),
            Include::Object => typed(kind, item),
        };
        json!({"cells": cells, "object": object})
    };
    let rows: Vec<Value> = items.iter().zip(&totals).map(row).collect();
    let (columns, rows) =
        if items.is_empty() { (Value::Null, Value::Null) } else { (columns.into(), rows.into()) };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns, "rows": rows})
}

/// The total usage of an item.
fn total(item: &Value) -> BTreeMap<String, Quantity> {
    let own = item.get("usage");
    let containers = item.get("containers").and_then(Value::as_array).into_iter().flatten();
    let mut sums: BTreeMap<String, Quantity> = BTreeMap::new();
    for usage in own.into_iter().chain(containers.filter_map(|container| container.get("usage"))) {
        for (key, amount) in usage.as_object().into_iter().flatten() {
            let Some(amount) = amount.as_str().and_then(|text| Quantity::parse(text).ok()) else { continue };
            match sums.get_mut(key) {
                Some(sum) => sum.add(&amount),
                None => {
                    sums.insert(key.clone(), amount);
                }
            }
        }
    }
    sums
}

fn typed(kind: &str, item: &Value) -> Value {
    let head = [
        ("kind".to_owned(), Value::from(kind)),
        ("apiVersion".to_owned(), Value::from(RESOURCE_METRICS_VERSION)),
    ];
    let rest = item.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
    Value::Object(head.into_iter().chain(rest).collect())
}

fn metadata(name: &str, namespace: &str, labels: &Labels, now: Timestamp) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    metadata.insert("creationTimestamp".to_owned(), api::instant::format(now).into());
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), json!(labels));
    }
    Value::Object(metadata)
}

/// A reference to an object; the kind of an unknown resource is guessed from its plural.
fn reference(object: &DescribedObject) -> Value {
    let (plural, group) = object.resource.split_once('.').unwrap_or((&object.resource, ""));
    let known = KINDS.iter().find(|kind| kind.plural == plural && kind.group == group);
    let guessed = || {
        let one = plural.strip_suffix('s').unwrap_or(plural);
        one.chars().take(1).flat_map(char::to_uppercase).chain(one.chars().skip(1)).collect::<String>()
    };
    let kind = known.map_or_else(guessed, |kind| kind.kind.to_owned());
    let version = known.and_then(|kind| kind.versions.first()).copied().unwrap_or("v1");
    let mut reference = Map::new();
    reference.insert("kind".to_owned(), kind.into());
    if !object.namespace.is_empty() {
        reference.insert("namespace".to_owned(), object.namespace.clone().into());
    }
    reference.insert("name".to_owned(), object.name.clone().into());
    // The slash is written for the core group as well, as other implementations do.
    reference.insert("apiVersion".to_owned(), format!("{group}/{version}").into());
    Value::Object(reference)
}

fn amounts(usage: &BTreeMap<String, Quantity>) -> Map<String, Value> {
    usage.iter().map(|(key, amount)| (key.clone(), amount.canonical().into())).collect()
}

fn time(when: SampleTime, now: Timestamp) -> Value {
    match when {
        SampleTime::Now => api::instant::format(now).into(),
        SampleTime::At(time) => api::instant::format(time).into(),
        SampleTime::Never => Value::Null,
    }
}

/// A duration as Go prints it.
pub(super) fn go_duration(duration: Duration) -> String {
    api::time::go_duration(SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX))
}
