//! The cluster and the Prometheus of the records.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use api::provider::{Labels, MetricsError, ProviderFuture};
use api::selector::Selector;
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use locks::MutexExt as _;
use serde_json::{Value, json};
use sources::http::{HttpError, HttpRequest, HttpResponse, StreamedResponse};
use sources::inventory::{Node, Pod};
use sources::prometheus::client::Transport;
use sources::prometheus::mapper::{KnownResource, RestMapper};
use sources::prometheus::provider;

/// Prometheus.
pub(super) struct PlayedPrometheus {
    series: Value,
    answers: Value,
    asked: Mutex<Vec<String>>,
}

impl PlayedPrometheus {
    pub(super) fn new(series: Value, answers: Value) -> Self {
        Self { series, answers, asked: Mutex::default() }
    }

    /// All queries asked, sorted.
    pub(super) fn queries(&self) -> Vec<String> {
        let mut queries = self.asked.locked().clone();
        queries.sort();
        queries
    }

    fn query(&self, query: &str) -> (u64, String) {
        self.asked.locked().push(query.to_owned());
        let all = self.answers.as_array().into_iter().flatten();
        let mut fitting =
            all.filter(|answer| answer["contains"].as_str().is_none_or(|part| query.contains(part)));
        let none = json!({"status": 500, "body": "nobody recorded this"});
        let answer = fitting.next().unwrap_or(&none);
        (answer["status"].as_u64().unwrap_or(0), answer["body"].as_str().unwrap_or_default().to_owned())
    }

    fn series(&self, selector: &str) -> (u64, String) {
        match self.series.get(selector) {
            Some(Value::Object(raw)) => {
                let body = raw.get("body").and_then(Value::as_str).unwrap_or_default();
                (raw.get("status").and_then(Value::as_u64).unwrap_or(0), body.to_owned())
            }
            other => {
                let data = other.cloned().unwrap_or_else(|| json!([]));
                (200, json!({"status": "success", "data": data}).to_string())
            }
        }
    }

    fn respond(&self, ask: &HttpRequest) -> (StatusCode, String) {
        let (path, form) = ask.path().split_once('?').unwrap_or((ask.path(), ""));
        let first =
            form.split('&').next().and_then(|field| field.split_once('=')).map_or("", |(_, value)| value);
        let text = decoded(first);
        let (status, body) = if path == "/api/v1/query" { self.query(&text) } else { self.series(&text) };
        let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
        (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body)
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|_| *first == b'%').and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Transport for PlayedPrometheus {
    fn base(&self) -> String {
        "http://prometheus".to_owned()
    }

    fn send(&self, ask: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        let (status, body) = self.respond(&ask);
        Box::pin(async move { Ok(HttpResponse { status, headers: HeaderMap::new(), body: body.into() }) })
    }

    fn stream(&self, ask: HttpRequest) -> BoxFuture<'_, Result<StreamedResponse, HttpError>> {
        let (status, body) = self.respond(&ask);
        Box::pin(async move { Ok(StreamedResponse::from_chunks(status, [body.into()])) })
    }
}

/// The cluster.
pub(super) struct RecordedCluster {
    objects: Vec<AdapterObject>,
    mapper: Arc<RestMapper>,
    broken: bool,
}

struct AdapterObject {
    resource: String,
    namespace: String,
    name: String,
    labels: Arc<Labels>,
}

impl RecordedCluster {
    pub(super) fn new(objects: &Value, mapper: Arc<RestMapper>, broken: bool) -> Self {
        let text = |object: &Value, key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let objects = objects.as_array().into_iter().flatten().map(|object| {
            let labels: BTreeMap<String, String> =
                serde_json::from_value(object["labels"].clone()).unwrap_or_default();
            AdapterObject {
                resource: text(object, "resource"),
                namespace: text(object, "namespace"),
                name: text(object, "name"),
                labels: Arc::new(labels.into_iter().collect()),
            }
        });
        Self { objects: objects.collect(), mapper, broken }
    }

    fn of<'a>(
        &'a self,
        resource: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a AdapterObject> {
        self.objects.iter().filter(move |object| {
            object.resource == resource && namespace.is_none_or(|namespace| object.namespace == namespace)
        })
    }
}

impl provider::ClusterResources for RecordedCluster {
    fn mapper(&self) -> Arc<RestMapper> {
        Arc::clone(&self.mapper)
    }

    fn names<'a>(
        &'a self,
        resource: &'a KnownResource,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> ProviderFuture<'a, Vec<String>> {
        Box::pin(async move {
            if self.broken {
                return Err(MetricsError::Internal("the main API is broken".to_owned()));
            }
            let resource = resource.group_resource().to_string();
            let found = self.of(&resource, namespace).filter(|object| object.labels.are_selected(selector));
            Ok(found.map(|object| object.name.clone()).collect())
        })
    }

    fn pods(&self, namespace: Option<&str>) -> Vec<Arc<Pod>> {
        let pod = |object: &AdapterObject| {
            let (namespace, name) = (object.namespace.as_str().into(), object.name.as_str().into());
            Arc::new(Pod { namespace, name, labels: Arc::clone(&object.labels) })
        };
        self.of("pods", namespace).map(pod).collect()
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.pods(Some(namespace)).into_iter().find(|pod| &*pod.name == name)
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        let node = |object: &AdapterObject| {
            let labels = Arc::clone(&object.labels);
            Arc::new(Node { name: object.name.as_str().into(), labels, ..Node::default() })
        };
        self.of("nodes", None).map(node).collect()
    }

    fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes().into_iter().find(|node| &*node.name == name)
    }
}
