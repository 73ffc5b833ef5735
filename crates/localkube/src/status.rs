//! Errors as the Kubernetes API answers them: code, reason, message, details.

use serde_json::{Map, Value, json};

/// An answer that is an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// HTTP code.
    pub code: u16,
    /// One word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// What it is about.
    pub about: Option<Box<About>>,
    /// What exactly is wrong with the object.
    pub causes: Vec<Cause>,
    /// After how many seconds it may be tried again.
    pub retry_after: Option<u32>,
}

/// The object an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// API group; empty for the core one.
    pub group: String,
    /// Resource in most errors, kind in those of validation.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// One word for programs.
    pub reason: String,
    /// A sentence for people.
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
    /// An object by resource and name.
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

    /// 404: there is no such object.
    pub fn not_found(about: About) -> Self {
        Self::new(404, "NotFound", format!("{} not found", about.quoted()), Some(about))
    }

    /// 404: there is no such path.
    pub fn no_path() -> Self {
        let text = "the server could not find the requested resource";
        Self::new(404, "NotFound", text.into(), Some(About::default()))
    }

    /// 409: the name is taken.
    pub fn already_exists(about: About) -> Self {
        Self::new(409, "AlreadyExists", format!("{} already exists", about.quoted()), Some(about))
    }

    /// 409: the name is taken, and the server could not make another.
    pub fn no_name_left(about: About) -> Self {
        let text = "the server was not able to generate a unique name for the object";
        let message = format!("{} already exists, {text}", about.quoted());
        Self { retry_after: Some(1), ..Self::new(409, "AlreadyExists", message, Some(about)) }
    }

    /// 409: the name is taken by an object that is going.
    pub fn being_deleted(about: About) -> Self {
        let message = format!("object is being deleted: {} already exists", about.quoted());
        Self::new(409, "AlreadyExists", message, Some(about))
    }

    /// 409: somebody else wrote in between.
    pub fn conflict(about: About) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {}: the object has been modified; please apply your changes to the latest \
             version and try again",
            about.quoted()
        );
        Self::new(409, "Conflict", message, Some(about))
    }

    /// 409: for another reason.
    pub fn conflict_because(about: About, reason: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {}: {reason}", about.quoted());
        Self::new(409, "Conflict", message, Some(about))
    }

    /// 405: that cannot be done here.
    pub fn not_allowed() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", text.into(), Some(About::default()))
    }

    /// 406: it cannot be shown in the form asked for.
    pub fn not_acceptable(list: bool) -> Self {
        let streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        let known = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        let streams = if list { streams } else { "" };
        let text = format!("406: Not Acceptable\n\nAvailable representations: {known}{streams}");
        Self::new(406, "NotAcceptable", text, Some(About::default()))
    }

    /// 406: JSON, but in a form nobody knows.
    pub fn unknown_form() -> Self {
        let text = "only the following media types are accepted: application/json, application/yaml, \
                    application/vnd.kubernetes.protobuf";
        Self::new(406, "NotAcceptable", text.into(), None)
    }

    /// 406: a list was asked for in the form of one object, or the other way round.
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

    /// 415: the body is in a form nobody knows.
    pub fn unsupported_media_type() -> Self {
        let text = "the body of the request was in an unknown format - accepted media types include: application/json, \
                    application/yaml, application/vnd.kubernetes.protobuf";
        Self::new(415, "UnsupportedMediaType", text.into(), None)
    }

    /// 415: there is no such patch; custom resources have no strategic one.
    pub fn unsupported_patch(strategic: bool) -> Self {
        if strategic {
            let text = "the body of the request was in an unknown format - accepted media types include: \
                        application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            return Self::new(415, "UnsupportedMediaType", text.into(), None);
        }
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type".into(), Some(About::default()))
    }

    /// 403: it may not be done.
    pub fn forbidden(about: About, why: &str) -> Self {
        let message = format!("{} is forbidden: {why}", about.quoted());
        Self::new(403, "Forbidden", message, Some(about))
    }

    /// 403: the namespace is going.
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

    /// 500: the request cannot be served although it makes sense.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message.into(), None)
    }

    /// 410: that revision is no longer known; list again.
    pub fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"), None)
    }

    /// 504: that revision is still to come.
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

    /// 410: the page to go on from is no longer known; list from the beginning.
    pub fn expired_page() -> Self {
        let text = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                    list without the continue parameter.";
        Self::new(410, "Expired", text.into(), None)
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), None)
    }

    /// 422: the object is not valid.
    pub fn invalid(about: About, causes: Vec<Cause>) -> Self {
        // What is found twice is said once.
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

    /// The `Status` object on the wire.
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
            // A `Status` about nothing in particular still has details on the real server; one without them has none.
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
        assert_eq!(Status::already_exists(About::new("", "pods", "a")).message, "pods \"a\" already exists");
        assert!(
            Status::conflict(about())
                .message
                .starts_with("Operation cannot be fulfilled on deployments.apps \"web\": ")
        );
        assert_eq!(Status::expired(3, 9).message, "too old resource version: 3 (9)");
    }

    #[test]
    fn one_cause_stands_alone_several_in_brackets() {
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
    fn the_wire_form_leaves_out_what_is_empty() {
        let status = Status::not_found(About::new("", "pods", "a")).to_json();
        assert_eq!(status["details"], json!({"name": "a", "kind": "pods"}));
        assert_eq!(status["code"], 404);
        assert_eq!(Status::bad_request("no").to_json().get("details"), None);
    }
}
