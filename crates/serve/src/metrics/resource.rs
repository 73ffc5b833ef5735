//! `metrics.k8s.io`: resource usage of nodes and pods.

use std::sync::Arc;

use api::provider::{
    ListFilter, Lookup, NodeUsage, ObjectChunks, PodUsage, ResourceMetricsProvider, single_chunk,
};
use http::Response;
use serde_json::json;

use super::list_options::{self, ListOptions};
use super::list_stream::{self, ListSource};
use super::partial::{Partial, PartialList};
use super::table::Table;
use super::usage::{Measured, ResponseContext, UsageList, UsageObject};
use super::{MetricsApiSettings, below, only_get, route, sent, sent_many, status};
use crate::api_group::{ApiGroupVersion, ApiResource};
use crate::encode::{Choice, Form, Forms, choose, presentable};
use crate::include_object::IncludeObject;
use crate::request::AuthorizedRequest;
use crate::response::Body;
use crate::status::{Status, StatusDetails};

const GROUP: &str = "metrics.k8s.io";

/// All conversions are supported.
const RESOURCE_FORMS: Forms = Forms { table: true, partial: true };

/// The group versions of the API: `v1beta1`, and except in strict compatibility the identical
/// `v1`.
#[allow(clippy::needless_pass_by_value, reason = "callers pass an Arc of their own type")]
pub fn resource(
    source: Arc<dyn ResourceMetricsProvider>,
    settings: &MetricsApiSettings,
) -> Vec<ApiGroupVersion> {
    let versions: &[&str] = if settings.compat.is_strict() { &["v1beta1"] } else { &["v1beta1", "v1"] };
    let group = |version: &&str| {
        let api = Arc::new(ResourceMetricsApi {
            source: Arc::clone(&source),
            settings: settings.clone(),
            api_version: format!("{GROUP}/{version}").into(),
        });
        let route = route(move |call: AuthorizedRequest| {
            let api = Arc::clone(&api);
            async move { api.answer(&call).await }
        });
        ApiGroupVersion::new(GROUP, version, resources(), route)
    };
    versions.iter().map(group).collect()
}

/// Singular names are empty, so that clients use the kind (`kubectl get podmetrics`).
fn resources() -> Vec<ApiResource> {
    let amounts = json!({"type": "object", "description": "What is used, by resource.",
        "additionalProperties": {"type": "string"}});
    let container = json!({"type": "object", "description": "What a container uses.", "required": ["name", "usage"],
        "properties": {"name": {"type": "string", "description": "Name."}, "usage": amounts}});
    let of = |name: &str, kind: &str, namespaced, used: (&str, serde_json::Value), description: &str| {
        let mut properties = json!({
            "timestamp": {"type": "string", "format": "date-time", "description": "End of the measurement."},
            "window": {"type": "string", "description": "Length of the measurement."},
        });
        if let Some(properties) = properties.as_object_mut() {
            properties.insert(used.0.to_owned(), used.1);
        }
        ApiResource {
            name: name.to_owned(),
            kind: kind.to_owned(),
            namespaced,
            verbs: vec!["get".to_owned(), "list".to_owned()],
            description: description.to_owned(),
            properties,
            ..ApiResource::default()
        }
    };
    let containers = json!({"type": "array", "description": "Its containers.", "items": container});
    vec![
        of("nodes", "NodeMetrics", false, ("usage", amounts.clone()), "NodeMetrics is what a node uses."),
        of(
            "pods",
            "PodMetrics",
            true,
            ("containers", containers),
            "PodMetrics is what the containers of a pod use.",
        ),
    ]
}

struct ResourceMetricsApi {
    source: Arc<dyn ResourceMetricsProvider>,
    settings: MetricsApiSettings,
    api_version: Arc<str>,
}

/// The object or list that a path names.
enum ResourcePath<'a> {
    Nodes,
    Node(&'a str),
    Pods(Option<&'a str>),
    Pod(&'a str, &'a str),
}

impl<'a> ResourcePath<'a> {
    fn of(path: &[&'a str]) -> Option<Self> {
        Some(match path {
            ["nodes"] => Self::Nodes,
            ["nodes", name] => Self::Node(name),
            // An empty namespace means all namespaces; that is also what was authorized.
            ["pods"] | ["namespaces", "", "pods"] => Self::Pods(None),
            ["namespaces", namespace, "pods"] => Self::Pods(Some(namespace)),
            ["namespaces", namespace, "pods", name] => Self::Pod(namespace, name),
            _ => return None,
        })
    }

    fn is_list(&self) -> bool {
        matches!(self, Self::Nodes | Self::Pods(_))
    }
}

impl ResourceMetricsApi {
    async fn answer(&self, call: &AuthorizedRequest) -> Result<Response<Body>, Status> {
        let path = below(call);
        let wanted = ResourcePath::of(&path).ok_or_else(Status::no_path)?;
        only_get(call)?;
        presentable(&call.headers, wanted.is_list())?;
        let choice = choose(&call.headers, &call.query, RESOURCE_FORMS)?;
        match wanted {
            ResourcePath::Nodes => {
                let which = listing(call, None, "nodes")?;
                let nodes = self.source.nodes(&which).await.map_err(status)?;
                self.list::<NodeUsage>(call, single_chunk(nodes), choice).await
            }
            ResourcePath::Pods(namespace) => {
                let which = listing(call, namespace, "pods")?;
                let pods = self.source.pods_in_parts(&which).await.map_err(status)?;
                let response = self.list::<PodUsage>(call, pods, choice).await?;
                Ok(self.settings.with_source(response, self.source.source()))
            }
            ResourcePath::Node(name) => match self.source.node(name).await.map_err(status)? {
                Lookup::Found(node) => self.one(call, node, choice),
                Lookup::NoSamples => Err(Status::not_found(StatusDetails::new(GROUP, "nodemetrics", name))),
                // metrics-server names `node` and `pods` here, without a group.
                Lookup::NotFound => Err(Status::not_found(StatusDetails::new("", "node", name))),
            },
            ResourcePath::Pod(namespace, name) => {
                match self.source.pod(namespace, name).await.map_err(status)? {
                    Lookup::Found(pod) => self.one(call, pod, choice),
                    Lookup::NoSamples => {
                        let full = format!("{namespace}/{name}");
                        Err(Status::not_found(StatusDetails::new(GROUP, "podmetrics", &full)))
                    }
                    Lookup::NotFound => Err(Status::not_found(StatusDetails::new("", "pods", name))),
                }
            }
        }
    }

    fn context(&self) -> ResponseContext {
        ResponseContext { api_version: Arc::clone(&self.api_version), now: self.settings.clock.now() }
    }

    async fn list<T: Measured>(
        &self,
        call: &AuthorizedRequest,
        parts: ObjectChunks<T>,
        choice: Choice,
    ) -> Result<Response<Body>, Status> {
        let source = ListSource::new(parts, self.context(), Arc::clone(&self.settings.freshness));
        match choice.form {
            None => list_stream::sent(source, choice).await,
            Some(Form::Table(version)) => {
                let (style, compat) = (IncludeObject::of(&call.query)?, self.settings.compat);
                let of = source.whole(Vec::new()).await;
                let count = of.items.len();
                sent_many(Table { version, style, compat, of }, count, choice).await
            }
            Some(Form::PartialList(version)) => {
                let of = source.whole(Vec::new()).await;
                let count = of.items.len();
                sent_many(PartialList { version, of }, count, choice).await
            }
            Some(Form::Partial(_)) => Err(Status::not_convertible(format!(
                "you requested PartialObjectMetadata, but the requested object is a list (*metrics.{}List)",
                T::KIND
            ))),
        }
    }

    fn one<T: Measured>(
        &self,
        call: &AuthorizedRequest,
        item: T,
        choice: Choice,
    ) -> Result<Response<Body>, Status> {
        let context = self.context();
        self.settings.freshness.note(context.now, std::iter::once(item.timestamp()));
        match choice.form {
            None => Ok(sent(&UsageObject { context, item }, choice)),
            Some(Form::Table(version)) => {
                let (style, compat) = (IncludeObject::of(&call.query)?, self.settings.compat);
                let of = UsageList { context, items: vec![item] };
                Ok(sent(&Table { version, style, compat, of }, choice))
            }
            Some(Form::Partial(version)) => {
                Ok(sent(&Partial { version, of: UsageObject { context, item } }, choice))
            }
            Some(Form::PartialList(_)) => Err(Status::not_convertible(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*metrics.{})",
                T::KIND
            ))),
        }
    }
}

/// Reads the list options of a request.
fn listing(call: &AuthorizedRequest, namespace: Option<&str>, resource: &str) -> Result<ListFilter, Status> {
    let read = ListOptions::read(&call.query)?;
    list_options::consistent(&call.query)?;
    let ListOptions { labels, fields, watch } = read.with_known_fields()?;
    if watch {
        return Err(Status::no_watch(StatusDetails::new(GROUP, resource, "")));
    }
    Ok(ListFilter { namespace: namespace.map(str::to_owned), labels, fields })
}
