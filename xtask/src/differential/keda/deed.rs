//! What is done to every twin: plain data, with `{ns}` in the place of the namespace.

use http::Method;
use serde_json::Value;

use super::source::State;
use crate::differential::scenario::deed;

/// One thing that is done.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// A request to the API server; a list as the body is a JSON patch.
    Ask {
        method: Method,
        /// With `{ns}`.
        path: String,
        /// `null`: none.
        body: Value,
    },
    /// What a source says from now on, to whoever asks.
    Say { key: String, state: State },
    /// A source tells those who listen that there is something to do.
    Push { key: String },
    /// The status of every Job of this scenario that has none yet is set, up to so many.
    EndJobs { scenario: String, how: Ending, most: usize },
    /// The status of the autoscaler of this ScaledObject is set, as the HPA controller would.
    TellHpa { name: String, status: Value },
}

/// How Jobs end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    Failed,
    /// They do not end: their pod runs.
    Running,
}

/// One step: what is done at the same moment to all twins.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// For people.
    pub(crate) title: String,
    pub(crate) deeds: Vec<Deed>,
}

impl Step {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), deeds: Vec::new() }
    }

    pub(crate) fn with(mut self, deeds: impl IntoIterator<Item = Deed>) -> Self {
        self.deeds.extend(deeds);
        self
    }
}

impl Deed {
    pub(crate) fn post(path: impl Into<String>, body: Value) -> Self {
        Self::Ask { method: Method::POST, path: path.into(), body }
    }

    pub(crate) fn patch(path: impl Into<String>, body: Value) -> Self {
        Self::Ask { method: Method::PATCH, path: path.into(), body }
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::Ask { method: Method::DELETE, path: path.into(), body: Value::Null }
    }
}

impl From<deed::Deed> for Deed {
    /// Requests alone are common to both.
    fn from(deed: deed::Deed) -> Self {
        match deed {
            deed::Deed::Ask { method, path, body } => Self::Ask { method, path, body },
            other => Self::Ask { method: Method::OPTIONS, path: other.to_string(), body: Value::Null },
        }
    }
}

impl std::fmt::Display for Deed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ask { method, path, body: Value::Null } => write!(f, "{method} {path}"),
            Self::Ask { method, path, body } => write!(f, "{method} {path} {body}"),
            Self::Say { key, state } => write!(f, "source {key}: {state}"),
            Self::Push { key } => write!(f, "source {key} tells of activity"),
            Self::EndJobs { how, most, .. } => write!(f, "up to {most} jobs: {how:?}"),
            Self::TellHpa { name, status } => write!(f, "status of the HPA of {name}: {status}"),
        }
    }
}
