//! Errors as the Kubernetes API answers them: code, reason, message, details.

use serde_json::{Map, Value, json};

/// An answer that is an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// HTTP code.
    pub code: u16,
    /// One word for programs; may be empty.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// What it is about; absent: not said at all.
    pub about: Option<Box<About>>,
    /// After how many seconds it may be tried again.
    pub retry_after: Option<u32>,
}

/// The object an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// API group; empty for the core one.
    pub group: String,
    /// Resource.
    pub kind: String,
    /// Name; empty for all of them.
    pub name: String,
}

impl About {
    /// An object by group, resource and name.
    pub fn new(group: &str, kind: &str, name: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// `deployments.apps "web"`, or `deployments.apps`.
    pub fn words(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        let name = match self.name.as_str() {
            "" => String::new(),
            name => format!(" {}", api::gotext::quote(name)),
        };
        format!("{}{dot}{}{name}", self.kind, self.group)
    }
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>, about: Option<About>) -> Self {
        Self { code, reason, message: message.into(), about: about.map(Box::new), retry_after: None }
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message, None)
    }

    /// 401: whoever asks is not who he says.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized", None)
    }

    /// 403: it may not be done.
    pub fn forbidden(message: impl Into<String>, about: About) -> Self {
        Self::new(403, "Forbidden", message, Some(about))
    }

    /// 404: there is no such object.
    pub fn not_found(about: About) -> Self {
        Self::new(404, "NotFound", format!("{} not found", about.words()), Some(about))
    }

    /// 404: there is no such path.
    pub fn no_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource", Some(About::default()))
    }

    /// 405: that cannot be done here.
    pub fn not_allowed() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", text, Some(About::default()))
    }

    /// 405: changes of these cannot be followed.
    pub fn no_watch(about: About) -> Self {
        let text = format!("watch is not supported on resources of kind \"{}\"", about.words());
        Self::new(405, "MethodNotAllowed", text, Some(about))
    }

    /// 406: it cannot be shown in the form asked for.
    pub fn not_acceptable() -> Self {
        let text = "406: Not Acceptable\n\nAvailable representations: application/json";
        Self::new(406, "NotAcceptable", text, Some(About::default()))
    }

    /// 413: the body is too large.
    pub fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"), None)
    }

    /// 429: too much at once.
    pub fn too_many() -> Self {
        let text = "Too many requests, please try again later.";
        Self { retry_after: Some(1), ..Self::new(429, "TooManyRequests", text, None) }
    }

    /// 500: something here is wrong.
    pub fn internal(text: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {text}"), Some(About::default()))
    }

    /// 504: it took too long.
    pub fn timeout() -> Self {
        let text = "Timeout: request did not complete within the allotted timeout";
        Self::new(504, "Timeout", text, Some(About::default()))
    }

    /// The `Status` object on the wire.
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
        });
        let mut details = Map::new();
        if let Some(about) = &self.about {
            for (key, value) in [("name", &about.name), ("group", &about.group), ("kind", &about.kind)] {
                if !value.is_empty() {
                    details.insert(key.to_owned(), json!(value));
                }
            }
        }
        if let Some(seconds) = self.retry_after {
            details.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        if let Some(object) = status.as_object_mut() {
            if !self.reason.is_empty() {
                object.insert("reason".to_owned(), json!(self.reason));
            }
            if self.about.is_some() || !details.is_empty() {
                object.insert("details".to_owned(), Value::Object(details));
            }
            object.insert("code".to_owned(), json!(self.code));
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_clients_know() {
        let about = || About::new("apps", "deployments", "web");
        assert_eq!(Status::not_found(about()).message, "deployments.apps \"web\" not found");
        assert_eq!(
            Status::no_watch(About::new("metrics.k8s.io", "nodes", "")).message,
            "watch is not supported on resources of kind \"nodes.metrics.k8s.io\""
        );
        assert_eq!(
            Status::unauthorized().to_json().to_string(),
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\
             \"message\":\"Unauthorized\",\"reason\":\"Unauthorized\",\"code\":401}"
        );
        assert_eq!(Status::no_path().to_json()["details"], json!({}));
        let details = json!({"name": "web", "group": "apps", "kind": "deployments"});
        assert_eq!(Status::not_found(about()).to_json()["details"], details);
    }
}
