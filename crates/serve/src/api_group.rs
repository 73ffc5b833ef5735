//! API groups and resources, as their owners register them.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use serde_json::{Value, json};
use tower::util::BoxCloneSyncService;

use crate::body::Body;
use crate::encode::{Encoded, Object, json, protobuf};

/// A service for authorized requests; their extensions have an [`AuthorizedRequest`](crate::AuthorizedRequest).
pub type Route = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// A version of an API group.
#[derive(Clone)]
pub struct ApiGroupVersion {
    /// Group.
    pub name: String,
    /// Version. Of several versions of a group the first is preferred.
    pub version: String,
    /// Resources.
    pub resources: Vec<ApiResource>,
    /// The service that handles its requests.
    pub route: Route,
    /// Where discovery shows it.
    pub known: DiscoveryVisibility,
    /// Renders `/apis/{group}/{version}` if the resources change at run time.
    pub listing: Option<ResourceListing>,
}

/// Where discovery shows a version of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryVisibility {
    /// In `/apis` and `/apis/{group}`.
    pub listed: bool,
    /// In aggregated discovery.
    pub aggregated: bool,
}

/// Returns the current resources of an API for a request with these headers.
pub type ResourceListing = Arc<dyn Fn(&HeaderMap) -> Arc<ResourceList> + Send + Sync>;

/// A resource of an API.
#[derive(Clone, Debug)]
pub struct ApiResource {
    /// Plural name, as in paths.
    pub name: String,
    /// Singular name.
    pub singular: String,
    /// Kind.
    pub kind: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Verbs.
    pub verbs: Vec<String>,
    /// Short names.
    pub short_names: Vec<String>,
    /// Names for several resources at once, such as `all`.
    pub categories: Vec<String>,
    /// One sentence for `kubectl explain`.
    pub description: String,
    /// The `properties` of its schema.
    pub properties: Value,
}

impl Default for ApiResource {
    fn default() -> Self {
        Self {
            name: String::new(),
            singular: String::new(),
            kind: String::new(),
            namespaced: true,
            verbs: Vec::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            description: String::new(),
            properties: json!({}),
        }
    }
}

impl ApiGroupVersion {
    /// A version of a group that all discovery documents show.
    pub fn new(name: &str, version: &str, resources: Vec<ApiResource>, route: Route) -> Self {
        let known = DiscoveryVisibility { listed: true, aggregated: true };
        Self { name: name.to_owned(), version: version.to_owned(), resources, route, known, listing: None }
    }

    /// `group/version`.
    pub fn group_version(&self) -> String {
        format!("{}/{}", self.name, self.version)
    }
}

impl fmt::Debug for ApiGroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({})", self.group_version())
    }
}

/// The `APIResourceList` of an API, encoded.
#[derive(Debug)]
pub struct ResourceList(pub(crate) Encoded);

impl ResourceList {
    /// The resources of a group and version such as `custom.metrics.k8s.io/v1beta1`.
    pub fn new(group_version: &str, resources: &[ApiResource]) -> Self {
        Self(Encoded::new(&ApiResourceList { group_version, resources }))
    }
}

/// `APIResourceList`.
struct ApiResourceList<'a> {
    group_version: &'a str,
    resources: &'a [ApiResource],
}

impl ApiResource {
    fn listed(&self) -> Value {
        let of = self;
        let mut value = json!({
            "name": of.name, "singularName": of.singular, "namespaced": of.namespaced, "kind": of.kind, "verbs": of.verbs,
        });
        of.add_optional_names(&mut value);
        value
    }

    /// Adds short names and categories, if any.
    pub(crate) fn add_optional_names(&self, value: &mut Value) {
        let of = self;
        let Some(fields) = value.as_object_mut() else { return };
        for (key, names) in [("shortNames", &of.short_names), ("categories", &of.categories)] {
            if !names.is_empty() {
                fields.insert(key.to_owned(), json!(names));
            }
        }
    }
}

impl Object for ApiResourceList<'_> {
    fn kind(&self) -> (String, String) {
        ("v1".to_owned(), "APIResourceList".to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        let each: Vec<Value> = self.resources.iter().map(ApiResource::listed).collect();
        let version = self.group_version;
        json::value(
            out,
            &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": each}),
        );
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        protobuf::text(out, 1, self.group_version);
        for of in self.resources {
            protobuf::message(out, 2, |out| {
                protobuf::text(out, 1, &of.name);
                protobuf::number(out, 2, of.namespaced.into());
                protobuf::text(out, 3, &of.kind);
                protobuf::message(out, 4, |out| {
                    of.verbs.iter().for_each(|verb| protobuf::text(out, 1, verb));
                });
                of.short_names.iter().for_each(|name| protobuf::text(out, 5, name));
                protobuf::text(out, 6, &of.singular);
                of.categories.iter().for_each(|name| protobuf::text(out, 7, name));
                // Group, version and storage hash are empty.
                (8..=10).for_each(|field| protobuf::text(out, field, ""));
            });
        }
    }
}
