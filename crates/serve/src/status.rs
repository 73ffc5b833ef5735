//! Errors of the Kubernetes API: code, reason, message, details.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// A `Status` with status `Failure`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// HTTP code.
    pub code: u16,
    /// Machine-readable reason; may be empty.
    pub reason: Cow<'static, str>,
    /// Human-readable message.
    pub message: String,
    /// The object in `details`; absent without `details`.
    pub about: Option<Box<StatusDetails>>,
    /// Causes in `details`.
    pub causes: Vec<StatusCause>,
    /// `retryAfterSeconds` in `details`.
    pub retry_after: Option<u32>,
}

/// The object an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusDetails {
    /// API group; empty for the core one.
    pub group: String,
    /// Resource.
    pub kind: String,
    /// Name; empty for the whole resource.
    pub name: String,
}

/// One cause of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCause {
    /// Machine-readable reason; may be empty.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
    /// Path of the field; may be empty.
    pub field: String,
}

impl StatusDetails {
    /// The object with this group, resource and name.
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
    /// Any status.
    pub fn new(
        code: u16,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        about: Option<StatusDetails>,
    ) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            about: about.map(Box::new),
            causes: Vec::new(),
            retry_after: None,
        }
    }

    /// 400: the request is invalid.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message, None)
    }

    /// 401: the credentials are not valid.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized", None)
    }

    /// 403: the user is not allowed.
    pub fn forbidden(message: impl Into<String>, about: StatusDetails) -> Self {
        Self::new(403, "Forbidden", message, Some(about))
    }

    /// 404: there is no such object.
    pub fn not_found(about: StatusDetails) -> Self {
        Self::new(404, "NotFound", format!("{} not found", about.words()), Some(about))
    }

    /// 404: there is no such path.
    pub fn no_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
            Some(StatusDetails::default()),
        )
    }

    /// 405: the method is not supported.
    pub fn not_allowed() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", text, Some(StatusDetails::default()))
    }

    /// 405: the resource has no watch.
    pub fn no_watch(about: StatusDetails) -> Self {
        let text = format!("watch is not supported on resources of kind \"{}\"", about.words());
        Self::new(405, "MethodNotAllowed", text, Some(about))
    }

    /// 410: what the request refers to is no longer there.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(410, "Gone", message, None)
    }

    /// 406: only JSON is available.
    pub fn not_acceptable() -> Self {
        Self::not_represented("application/json")
    }

    /// 406: only these content types are available.
    pub fn not_represented(types: &str) -> Self {
        let text = format!("406: Not Acceptable\n\nAvailable representations: {types}");
        Self::new(406, "NotAcceptable", text, Some(StatusDetails::default()))
    }

    /// 406 with another message and without details.
    pub fn not_convertible(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message, None)
    }

    /// 413: the body is too large.
    pub fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"), None)
    }

    /// 422: fields are invalid.
    pub fn invalid(about: StatusDetails, causes: Vec<StatusCause>) -> Self {
        let each: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let all = match each.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let of = StatusDetails { name: String::new(), ..about.clone() };
        let message = format!("{} {} is invalid: {all}", of.words(), api::gotext::quote(&about.name));
        Self { causes, ..Self::new(422, "Invalid", message, Some(about)) }
    }

    /// 429: a limit is reached.
    pub fn too_many() -> Self {
        let text = "Too many requests, please try again later.";
        Self { retry_after: Some(1), ..Self::new(429, "TooManyRequests", text, None) }
    }

    /// 500: an internal error.
    pub fn internal(text: &str) -> Self {
        let message = format!("Internal error occurred: {text}");
        let cause = StatusCause { message: text.to_owned(), ..StatusCause::default() };
        Self {
            causes: vec![cause],
            ..Self::new(500, "InternalError", message, Some(StatusDetails::default()))
        }
    }

    /// 504: it took too long.
    pub fn timeout() -> Self {
        let text = "Timeout: request did not complete within the allotted timeout";
        Self::new(504, "Timeout", text, Some(StatusDetails::default()))
    }

    /// Sets the `details` of another server's status.
    pub(crate) fn with_details(mut self, details: &Value) -> Self {
        let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let about = StatusDetails {
            group: text(details, "group"),
            kind: text(details, "kind"),
            name: text(details, "name"),
        };
        let cause = |of: &Value| StatusCause {
            reason: text(of, "reason"),
            message: text(of, "message"),
            field: text(of, "field"),
        };
        self.causes =
            details.get("causes").and_then(Value::as_array).into_iter().flatten().map(cause).collect();
        self.retry_after = details
            .get("retryAfterSeconds")
            .and_then(Value::as_u64)
            .and_then(|seconds| u32::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0);
        self.about = details.is_object().then(|| Box::new(about));
        self
    }

    /// Whether there are `details`.
    pub(crate) fn has_details(&self) -> bool {
        self.about.is_some() || !self.causes.is_empty() || self.retry_after.is_some()
    }

    /// The `Status` object on the wire.
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
        });
        let Some(object) = status.as_object_mut() else { return status };
        if !self.reason.is_empty() {
            object.insert("reason".to_owned(), json!(self.reason));
        }
        if self.has_details() {
            object.insert("details".to_owned(), self.details());
        }
        object.insert("code".to_owned(), json!(self.code));
        status
    }

    fn details(&self) -> Value {
        let mut details = given(match &self.about {
            Some(about) => vec![("name", &about.name), ("group", &about.group), ("kind", &about.kind)],
            None => Vec::new(),
        });
        if !self.causes.is_empty() {
            let each = self.causes.iter().map(|cause| {
                let StatusCause { reason, message, field } = cause;
                Value::Object(given(vec![("reason", reason), ("message", message), ("field", field)]))
            });
            details.insert("causes".to_owned(), each.collect());
        }
        if let Some(seconds) = self.retry_after {
            details.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        Value::Object(details)
    }
}

/// The non-empty fields.
fn given(fields: Vec<(&str, &String)>) -> Map<String, Value> {
    let some = fields.into_iter().filter(|(_, text)| !text.is_empty());
    some.map(|(key, text)| (key.to_owned(), json!(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_kubernetes() {
        let about = || StatusDetails::new("apps", "deployments", "web");
        assert_eq!(Status::not_found(about()).message, "deployments.apps \"web\" not found");
        assert_eq!(
            Status::no_watch(StatusDetails::new("metrics.k8s.io", "nodes", "")).message,
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
