//! What is served, as its owner hands it over.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use serde_json::{Value, json};
use tower::util::BoxCloneSyncService;

use crate::decisions::DecisionSource;
use crate::discovery::ResourceList;
use crate::health::HealthChecks;
use crate::request_metrics::RequestMetrics;
use crate::response::Body;

/// A service for requests that are already authorized; it finds a [`AuthorizedRequest`](crate::Call) among their extensions.
pub type Route = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Makes the text of `/metrics`.
pub type MetricsExporter = Arc<dyn Fn() -> Exposition + Send + Sync>;

/// Metrics as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposition {
    /// The content type, which tells the text's format.
    pub content_type: String,
    /// The text.
    pub text: String,
}

/// Everything that is served.
#[derive(Clone, Default)]
pub struct App {
    /// What `/version` says, such as `1.2.3`.
    pub version: String,
    /// What must hold for the program to be well.
    pub checks: HealthChecks,
    /// What `/metrics` says.
    pub metrics: Option<MetricsExporter>,
    /// The decisions API.
    pub decisions: Option<Arc<dyn DecisionSource>>,
    /// Further APIs.
    pub groups: Vec<ApiGroupVersion>,
    /// Anything else, by the beginning of its path (whole segments, such as `/debug`).
    pub routes: Vec<(String, Route)>,
    /// What `/apis` says to be the server's address; empty: `:443`.
    pub address: String,
    /// What was asked and how long it took; keep a clone to tell about it.
    pub traffic: Arc<RequestMetrics>,
}

/// A version of an API group.
#[derive(Clone)]
pub struct ApiGroupVersion {
    /// Group.
    pub name: String,
    /// Version. Of several versions of a group the first is preferred.
    pub version: String,
    /// What it has.
    pub resources: Vec<ApiResource>,
    /// Who answers.
    pub route: Route,
    /// Where it is made known.
    pub known: DiscoveryVisibility,
    /// What `/apis/{group}/{version}` says instead of the resources, if that changes.
    pub listing: Option<ResourceListing>,
}

/// Where a version of a group is made known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryVisibility {
    /// In `/apis` and `/apis/{group}`.
    pub listed: bool,
    /// In the aggregated form of `/apis`.
    pub aggregated: bool,
}

/// Makes the list of what an API has, each time it is asked for, with the headers of whoever asks.
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
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// Other names for people in a hurry.
    pub short_names: Vec<String>,
    /// Names for several resources at once, such as `all`.
    pub categories: Vec<String>,
    /// What it is, in a sentence.
    pub description: String,
    /// Its fields, as the `properties` of a schema.
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
    /// A version of a group that is made known everywhere.
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

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("version", &self.version)
            .field("checks", &self.checks)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}
