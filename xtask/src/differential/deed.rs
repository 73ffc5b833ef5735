//! What both comparisons do to twins: requests to the API server, in steps; `{ns}` is in the place of the namespace.

use http::Method;
use serde_json::Value;

/// A request to the API server.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// With `{ns}`.
    pub(crate) path: String,
    /// `null`: none.
    pub(crate) body: Value,
}

/// One step: what is done at the same moment to all twins.
#[derive(Clone, Debug)]
pub(crate) struct Step<D> {
    /// For people.
    pub(crate) title: String,
    pub(crate) deeds: Vec<D>,
}

impl<D> Step<D> {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), deeds: Vec::new() }
    }

    pub(crate) fn with(mut self, deeds: impl IntoIterator<Item = D>) -> Self {
        self.deeds.extend(deeds);
        self
    }
}

/// Whatever can be a request.
pub(crate) trait Asking: From<Ask> {
    fn post(path: impl Into<String>, body: Value) -> Self {
        Ask { method: Method::POST, path: path.into(), body }.into()
    }

    fn patch(path: impl Into<String>, body: Value) -> Self {
        Ask { method: Method::PATCH, path: path.into(), body }.into()
    }

    fn delete(path: impl Into<String>) -> Self {
        Ask { method: Method::DELETE, path: path.into(), body: Value::Null }.into()
    }
}

impl<D: From<Ask>> Asking for D {}

impl std::fmt::Display for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, path, body } = self;
        match body {
            Value::Null => write!(f, "{method} {path}"),
            body => write!(f, "{method} {path} {body}"),
        }
    }
}
