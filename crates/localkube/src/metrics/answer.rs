//! Responds to metrics requests from the served metrics, without IO.

use api::selector::{FieldSelector, Selector};
use http::Method;
use http::header::ACCEPT;
use http::request::Parts;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::contents::{DescribedObject, Labels, PodUsage, Series, ServedMetrics};
use super::discovery;
use super::script::MetricsGroup;
use super::wire;
use crate::request::{Query, RequestPath, ResourcePath};
use crate::status::{About, Status};
use crate::verbs::present::Representation;

/// A decoded request.
pub(super) enum MetricsRequest {
    /// A discovery document.
    Discovery(Value),
    /// A request for metrics.
    Metrics(Box<MetricsQuery>),
    /// A health check.
    Health,
}

/// A request for metrics of one API.
pub(super) struct MetricsQuery {
    pub(super) group: MetricsGroup,
    path: ResourcePath,
    query: Query,
    form: Representation,
}

/// Decodes a request.
pub(super) fn read(parts: &Parts, contents: &[&ServedMetrics]) -> Result<MetricsRequest, Status> {
    let path = RequestPath::parse(parts.uri.path())
        .ok_or_else(|| Status::bad_request("the path is not properly encoded"))?;
    let query = Query::parse(parts.uri.query().unwrap_or_default())
        .ok_or_else(|| Status::bad_request("the query is not properly encoded"))?;
    let asked = match path {
        RequestPath::Discovery { group, version } => {
            let found = discovery::document(contents, group.as_deref(), version.as_deref());
            MetricsRequest::Discovery(found.ok_or_else(Status::no_path)?)
        }
        RequestPath::Resource(path) => {
            let group = MetricsGroup::find(&path.group, &path.version).ok_or_else(Status::no_path)?;
            let accept = parts.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
            let accept = accept.collect::<Vec<_>>().join(",");
            let list = path.name.is_none();
            let form = Representation::accepted(&accept, query.get("includeObject"), list);
            // Only resource metrics have tables; the other APIs return the whole list.
            let form =
                if group == MetricsGroup::Resource { form? } else { form.map(|_| Representation::Whole)? };
            MetricsRequest::Metrics(Box::new(MetricsQuery { group, path, query, form }))
        }
        RequestPath::Other if matches!(parts.uri.path(), "/healthz" | "/livez" | "/readyz") => {
            MetricsRequest::Health
        }
        RequestPath::Other => return Err(Status::no_path()),
    };
    if parts.method == Method::GET { Ok(asked) } else { Err(Status::not_allowed()) }
}

impl MetricsQuery {
    /// The response; earlier contents take precedence.
    pub(super) fn answer(&self, contents: &[&ServedMetrics], now: Timestamp) -> Result<Value, Status> {
        match self.group {
            MetricsGroup::Resource => self.resource(contents, now),
            MetricsGroup::Custom => self.custom(contents, now),
            MetricsGroup::External => self.external(contents, now),
        }
    }

    /// The response with an empty list.
    pub(super) fn nothing(&self) -> Value {
        let kind = match (self.group, self.path.resource.as_str()) {
            (MetricsGroup::Resource, "nodes") => "NodeMetricsList",
            (MetricsGroup::Resource, _) => "PodMetricsList",
            (MetricsGroup::Custom, _) => "MetricValueList",
            (MetricsGroup::External, _) => "ExternalMetricValueList",
        };
        wire::list(kind, &format!("{}/{}", self.path.group, self.path.version), Vec::new())
    }

    fn selector(&self, parameter: &str) -> Result<Selector, Status> {
        let text = self.query.get(parameter).unwrap_or_default();
        Selector::parse(text).map_err(|error| Status::bad_request(error.to_string()))
    }

    fn resource(&self, contents: &[&ServedMetrics], now: Timestamp) -> Result<Value, Status> {
        let ResourcePath { namespace, resource, name, subresource, .. } = &self.path;
        if subresource.is_some() {
            return Err(Status::no_path());
        }
        if self.query.is_set("watch") {
            let text = format!("watch is not supported on resources of kind \"{resource}.metrics.k8s.io\"");
            let about = About::new("metrics.k8s.io", resource, "");
            return Err(Status { message: text, about: Some(Box::new(about)), ..Status::not_allowed() });
        }
        let selector = self.selector("labelSelector")?;
        let fields = self.query.get("fieldSelector").unwrap_or_default();
        let fields = FieldSelector::parse(fields).map_err(|error| Status::bad_request(error.to_string()))?;
        let known = fields.restricted_to(&["metadata.name", "metadata.namespace"]);
        known.map_err(|error| Status::bad_request(error.to_string()))?;
        let wanted = |namespace: &str, name: &str, labels: &Labels| {
            let field = |key: &str| if key == "metadata.name" { name } else { namespace };
            selector.matches_map(labels) && fields.matches(field)
        };
        let missing = |kind: &str, name: &str| Status::not_found(About::new("", kind, name));
        let (kind, items) = match (resource.as_str(), namespace, name) {
            ("nodes", None, None) => {
                let merged = merged(contents, |c| c.nodes.iter());
                let nodes = merged.into_iter().filter(|(name, node)| wanted("", name, &node.labels));
                ("NodeMetrics", nodes.map(|(name, node)| wire::node(name, node, now)).collect())
            }
            ("nodes", None, Some(name)) => {
                let found = contents.iter().find_map(|c| c.nodes.get(name));
                let node = found.ok_or_else(|| missing("node", name))?;
                ("NodeMetrics", vec![wire::node(name, node, now)])
            }
            ("pods", namespace, None) => {
                let near = merged(contents, |c| pods_in(c, namespace.as_deref())).into_iter();
                let pods = near.filter(|((namespace, name), pod)| wanted(namespace, name, &pod.labels));
                ("PodMetrics", pods.map(|((of, name), pod)| wire::pod(of, name, pod, now)).collect())
            }
            ("pods", Some(namespace), Some(name)) => {
                let key = (namespace.clone(), name.clone());
                let found = contents.iter().find_map(|c| c.pods.get(&key));
                let pod = found.ok_or_else(|| missing("pods", name))?;
                ("PodMetrics", vec![wire::pod(namespace, name, pod, now)])
            }
            _ => return Err(Status::no_path()),
        };
        Ok(wire::shown(&self.form, kind, items, name.is_some()))
    }

    fn custom(&self, contents: &[&ServedMetrics], now: Timestamp) -> Result<Value, Status> {
        let ResourcePath { version, namespace, resource, name, subresource, .. } = &self.path;
        let (namespace, resource, name, metric) = match (namespace, name, subresource) {
            (Some(namespace), Some(metric), None) if resource == "metrics" => {
                ("", "namespaces".to_owned(), namespace, metric)
            }
            (Some(_), None, None) => return Err(Status::bad_request("invalid request path")),
            (namespace, Some(name), Some(metric)) => {
                (namespace.as_deref().unwrap_or_default(), resource.to_lowercase(), name, metric)
            }
            _ => return Err(Status::no_path()),
        };
        let (objects, series) = (self.selector("labelSelector")?, self.selector("metricLabelSelector")?);
        let all = contents.iter().flat_map(|c| &c.custom);
        let known: Vec<(&DescribedObject, &Vec<Series>)> = all
            .filter(|((other, object), _)| other == metric && object.resource == resource)
            .map(|((_, object), series)| (object, series))
            .collect();
        let missing = |object: &str| {
            let text = format!("the server could not find the metric {metric} for {resource}{object}");
            Err(Status { message: text, about: None, ..Status::no_path() })
        };
        if known.is_empty() {
            return missing("");
        }
        let every = name == "*";
        let shown = selector_object(&series)?;
        let near = known.into_iter().filter(|(object, _)| object.namespace == namespace);
        let near = near.filter(|(object, _)| every || object.name == *name);
        let items: Vec<Value> = near
            .flat_map(|(object, all)| all.iter().map(move |one| (object, one)))
            .filter(|(_, one)| !every || objects.matches_map(&one.object_labels))
            .filter(|(_, one)| series.matches_map(&one.labels))
            .map(|(object, one)| wire::custom(version, metric, object, one, &shown, now))
            .collect();
        if items.is_empty() && !every {
            return missing(&format!(" {name}"));
        }
        Ok(wire::list("MetricValueList", &format!("custom.metrics.k8s.io/{version}"), items))
    }

    fn external(&self, contents: &[&ServedMetrics], now: Timestamp) -> Result<Value, Status> {
        let (Some(namespace), None) = (&self.path.namespace, &self.path.name) else {
            return Err(Status::no_path());
        };
        if self.query.is_set("watch") {
            let text = "watch is not supported on resources of kind \"*.external.metrics.k8s.io\"".to_owned();
            let about = Some(Box::new(About::new("external.metrics.k8s.io", "*", "")));
            return Err(Status { message: text, about, ..Status::not_allowed() });
        }
        let metric = &self.path.resource;
        let selector = self.selector("labelSelector")?;
        let key = (namespace.clone(), metric.to_lowercase());
        let Some(found) = contents.iter().find_map(|c| c.external.get(&key)) else {
            let text = format!("the server could not find the metric {metric} for namespaces");
            return Err(Status { message: text, about: None, ..Status::no_path() });
        };
        let items = found.iter().filter(|series| selector.matches_map(&series.labels));
        let items = items.map(|series| wire::external(metric, series, now)).collect();
        Ok(wire::list("ExternalMetricValueList", "external.metrics.k8s.io/v1beta1", items))
    }
}

/// The pods of a namespace, or all. Only the range of the namespace is read, since clients ask for one namespace after
/// the other.
fn pods_in<'a>(
    contents: &'a ServedMetrics,
    namespace: Option<&'a str>,
) -> Box<dyn Iterator<Item = (&'a (String, String), &'a PodUsage)> + 'a> {
    match namespace {
        None => Box::new(contents.pods.iter()),
        Some(wanted) => {
            let from = (wanted.to_owned(), String::new());
            Box::new(contents.pods.range(from..).take_while(move |((of, _), _)| of == wanted))
        }
    }
}

/// The maps merged; earlier ones take precedence.
fn merged<'a, K: Ord + 'a, V: 'a, I: Iterator<Item = (&'a K, &'a V)>>(
    contents: &[&'a ServedMetrics],
    part: impl Fn(&'a ServedMetrics) -> I,
) -> std::collections::BTreeMap<&'a K, &'a V> {
    contents.iter().rev().flat_map(|contents| part(contents)).collect()
}

/// A selector as responses repeat it: null if there was none.
fn selector_object(selector: &Selector) -> Result<Value, Status> {
    if selector.is_everything() {
        return Ok(Value::Null);
    }
    let object = selector.to_label_selector().map_err(|error| Status::bad_request(error.to_string()))?;
    Ok(json!(object))
}
