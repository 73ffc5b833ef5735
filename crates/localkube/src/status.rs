//! API errors: the `Status` object.

use serde_json::{Map, Value, json};

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// HTTP code.
    pub code: u16,
    /// The machine-readable reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// The object that the error is about.
    pub about: Option<Box<About>>,
    /// The individual errors.
    pub causes: Vec<Cause>,
    /// Seconds until a retry.
    pub retry_after: Option<u32>,
}

/// The object that an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// API group; empty for the core one.
    pub group: String,
    /// The resource in most errors, the kind in validation errors.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// One error in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The machine-readable reason.
    pub reason: String,
    /// The message.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

impl Cause {
    fn to_json(&self) -> Value {
        let fields = [("reason", &self.reason), ("message", &self.message), ("field", &self.field)];
        let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
        Value::Object(given.map(|(key, value)| (key.to_owned(), json!(value))).collect())
    }
}

impl About {
    /// An object by group, resource and name.
    pub fn new(group: &str, kind: &str, name: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// `deployments.apps "web"`.
    fn quoted(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{} \"{}\"", self.kind, self.group, self.name)
    }
}

impl Status {
    fn new(code: u16, reason: &'static str, message: String, about: Option<About>) -> Self {
        Self { code, reason, message, about: about.map(Box::new), causes: Vec::new(), retry_after: None }
    }

    /// 404: the object does not exist.
    pub fn not_found(about: About) -> Self {
        Self::new(404, "NotFound", format!("{} not found", about.quoted()), Some(about))
    }

    /// 404: the path does not exist.
    pub fn no_path() -> Self {
        let text = "the server could not find the requested resource";
        Self::new(404, "NotFound", text.into(), Some(About::default()))
    }

    /// 409: the object exists.
    pub fn already_exists(about: About) -> Self {
        Self::new(409, "AlreadyExists", format!("{} already exists", about.quoted()), Some(about))
    }

    /// 409: the server could not generate a free name.
    pub fn no_name_left(about: About) -> Self {
        let text = "the server was not able to generate a unique name for the object";
        let message = format!("{} already exists, {text}", about.quoted());
        Self { retry_after: Some(1), ..Self::new(409, "AlreadyExists", message, Some(about)) }
    }

    /// 409: an object of that name is being deleted.
    pub fn being_deleted(about: About) -> Self {
        let message = format!("object is being deleted: {} already exists", about.quoted());
        Self::new(409, "AlreadyExists", message, Some(about))
    }

    /// 409: a concurrent write changed the object.
    pub fn conflict(about: About) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {}: the object has been modified; please apply your changes to the latest \
             version and try again",
            about.quoted()
        );
        Self::new(409, "Conflict", message, Some(about))
    }

    /// 409 with another reason.
    pub fn conflict_because(about: About, reason: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {}: {reason}", about.quoted());
        Self::new(409, "Conflict", message, Some(about))
    }

    /// 405: the method is not supported.
    pub fn not_allowed() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", text.into(), Some(About::default()))
    }

    /// 406: the representation is not supported.
    pub fn not_acceptable(list: bool) -> Self {
        let streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        let known = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        let streams = if list { streams } else { "" };
        let text = format!("406: Not Acceptable\n\nAvailable representations: {known}{streams}");
        Self::new(406, "NotAcceptable", text, Some(About::default()))
    }

    /// 406: the JSON representation is unknown.
    pub fn unknown_form() -> Self {
        let text = "only the following media types are accepted: application/json, application/yaml, \
                    application/vnd.kubernetes.protobuf";
        Self::new(406, "NotAcceptable", text.into(), None)
    }

    /// 406: the representation of a single object was requested for a list, or the other way round.
    pub fn wrong_form(is_list: bool, found: &str) -> Self {
        let text = if is_list {
            format!("you requested PartialObjectMetadata, but the requested object is a list ({found})")
        } else {
            format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({found})"
            )
        };
        Self::new(406, "NotAcceptable", text, None)
    }

    /// 413: the body is too large.
    pub fn too_large(limit: usize) -> Self {
        let text = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", text, None)
    }

    /// 415: the content type is not supported.
    pub fn unsupported_media_type() -> Self {
        let text = "the body of the request was in an unknown format - accepted media types include: application/json, \
                    application/yaml, application/vnd.kubernetes.protobuf";
        Self::new(415, "UnsupportedMediaType", text.into(), None)
    }

    /// 415: the patch type is not supported; custom resources have no strategic merge patch.
    pub fn unsupported_patch(strategic: bool) -> Self {
        if strategic {
            let text = "the body of the request was in an unknown format - accepted media types include: \
                        application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            return Self::new(415, "UnsupportedMediaType", text.into(), None);
        }
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type".into(), Some(About::default()))
    }

    /// 403: forbidden.
    pub fn forbidden(about: About, why: &str) -> Self {
        let message = format!("{} is forbidden: {why}", about.quoted());
        Self::new(403, "Forbidden", message, Some(about))
    }

    /// 403: the namespace is terminating.
    pub fn terminating(about: About, namespace: &str) -> Self {
        let text =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        };
        let message = format!("{} is forbidden: {text}", about.quoted());
        Self { causes: vec![cause], ..Self::new(403, "Forbidden", message, Some(about)) }
    }

    /// 500: a valid request failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message.into(), None)
    }

    /// 410: the revision is too old; list again.
    pub fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"), None)
    }

    /// 504: the revision is in the future.
    pub fn too_large_revision(asked: u64, current: u64) -> Self {
        let cause = Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        };
        let text = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let status = Self::new(504, "Timeout", text, Some(About::default()));
        Self { causes: vec![cause], retry_after: Some(1), ..status }
    }

    /// 410: the continue token is too old; list from the beginning.
    pub fn expired_page() -> Self {
        let text = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                    list without the continue parameter.";
        Self::new(410, "Expired", text.into(), None)
    }

    /// 400: the request is invalid.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), None)
    }

    /// 422: the object is invalid.
    pub fn invalid(about: About, causes: Vec<Cause>) -> Self {
        // Repeated errors appear once in the message.
        let mut each: Vec<String> = Vec::new();
        for text in causes.iter().map(|c| format!("{}: {}", c.field, c.message)) {
            if !each.contains(&text) {
                each.push(text);
            }
        }
        let text = if each.len() == 1 { each.concat() } else { format!("[{}]", each.join(", ")) };
        let message = format!("{} is invalid: {text}", about.quoted());
        Self { causes, ..Self::new(422, "Invalid", message, Some(about)) }
    }

    /// The `Status` object.
    pub fn to_json(&self) -> Value {
        let mut details = Map::new();
        if let Some(about) = &self.about {
            for (key, value) in [("name", &about.name), ("group", &about.group), ("kind", &about.kind)] {
                if !value.is_empty() {
                    details.insert(key.to_owned(), json!(value));
                }
            }
        }
        if !self.causes.is_empty() {
            details.insert("causes".to_owned(), self.causes.iter().map(Cause::to_json).collect());
        }
        if let Some(seconds) = self.retry_after {
            details.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        });
        if let Some(object) = status.as_object_mut() {
            if !self.reason.is_empty() {
                object.insert("reason".to_owned(), json!(self.reason));
            }
            // On the real server, an empty `details` differs from an absent one.
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
    fn messages_match_the_real_server() {
        let about = || About::new("apps", "deployments", "web");
        assert_eq!(Status::not_found(about()).message, "deployments.apps \"web\" not found");
        assert_eq!(Status::already_exists(About::new("", "pods", "a")).message, "pods \"a\" already exists");
        assert!(
            Status::conflict(about())
                .message
                .starts_with("Operation cannot be fulfilled on deployments.apps \"web\": ")
        );
        assert_eq!(Status::expired(3, 9).message, "too old resource version: 3 (9)");
    }

    #[test]
    fn several_causes_are_in_brackets() {
        let cause = |field: &str| Cause {
            reason: "FieldValueRequired".into(),
            message: "Required value".into(),
            field: field.into(),
        };
        let about = || About::new("apps", "Deployment", "web");
        assert_eq!(
            Status::invalid(about(), vec![cause("spec.a")]).message,
            "Deployment.apps \"web\" is invalid: spec.a: Required value"
        );
        let two = Status::invalid(about(), vec![cause("spec.a"), cause("spec.b")]);
        assert_eq!(
            two.message,
            "Deployment.apps \"web\" is invalid: [spec.a: Required value, spec.b: Required value]"
        );
        assert_eq!(two.to_json()["details"]["causes"][1]["field"], "spec.b");
    }

    #[test]
    fn empty_details_are_omitted() {
        let status = Status::not_found(About::new("", "pods", "a")).to_json();
        assert_eq!(status["details"], json!({"name": "a", "kind": "pods"}));
        assert_eq!(status["code"], 404);
        assert_eq!(Status::bad_request("no").to_json().get("details"), None);
    }
}
