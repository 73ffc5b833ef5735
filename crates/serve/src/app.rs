//! What is served, as its owner hands it over.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use http::{Request, Response};
use serde_json::{Value, json};
use tower::util::BoxCloneSyncService;

use crate::answer::Body;
use crate::decisions::Decisions;
use crate::health::Checks;

/// A service for requests that are already authorized; it finds a [`Call`](crate::Call) among their extensions.
pub type Route = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Makes the text of `/metrics`.
pub type Metrics = Arc<dyn Fn() -> Exposition + Send + Sync>;

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
    pub checks: Checks,
    /// What `/metrics` says.
    pub metrics: Option<Metrics>,
    /// The decisions API.
    pub decisions: Option<Arc<dyn Decisions>>,
    /// Further APIs.
    pub groups: Vec<Group>,
    /// Anything else, by the beginning of its path (whole segments, such as `/debug`).
    pub routes: Vec<(String, Route)>,
}

/// A version of an API group.
#[derive(Clone)]
pub struct Group {
    /// Group.
    pub name: String,
    /// Version. Of several versions of a group the first is preferred.
    pub version: String,
    /// What it has.
    pub resources: Vec<Resource>,
    /// Who answers.
    pub route: Route,
}

/// A resource of an API.
#[derive(Clone, Debug)]
pub struct Resource {
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

impl Default for Resource {
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

impl Group {
    /// `group/version`.
    pub fn group_version(&self) -> String {
        format!("{}/{}", self.name, self.version)
    }
}

impl fmt::Debug for Group {
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
