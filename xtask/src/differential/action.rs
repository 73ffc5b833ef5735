//! Actions on copies in both comparisons: requests to the API server, in steps; `{ns}` is replaced by the namespace.

use http::Method;
use serde_json::Value;

/// A request to the API server.
#[derive(Clone, Debug)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    /// The path, with `{ns}`.
    pub(crate) path: String,
    /// The body; `null` for none.
    pub(crate) body: Value,
}

/// One step: the actions on all copies at the same moment.
#[derive(Clone, Debug)]
pub(crate) struct Step<D> {
    /// The title for people.
    pub(crate) title: String,
    pub(crate) actions: Vec<D>,
}

impl<D> Step<D> {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), actions: Vec::new() }
    }

    pub(crate) fn with(mut self, actions: impl IntoIterator<Item = D>) -> Self {
        self.actions.extend(actions);
        self
    }
}

/// An action that may be a request to the API server.
pub(crate) trait RequestAction: From<ApiRequest> {
    fn post(path: impl Into<String>, body: Value) -> Self {
        ApiRequest { method: Method::POST, path: path.into(), body }.into()
    }

    fn patch(path: impl Into<String>, body: Value) -> Self {
        ApiRequest { method: Method::PATCH, path: path.into(), body }.into()
    }

    fn delete(path: impl Into<String>) -> Self {
        ApiRequest { method: Method::DELETE, path: path.into(), body: Value::Null }.into()
    }
}

impl<D: From<ApiRequest>> RequestAction for D {}

impl std::fmt::Display for ApiRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, path, body } = self;
        match body {
            Value::Null => write!(f, "{method} {path}"),
            body => write!(f, "{method} {path} {body}"),
        }
    }
}
