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
        Self { code, reason, message, about: about.map(Box::new), causes: Vec::new() }
    }

    /// 404: there is no such object.
    pub fn not_found(about: About) -> Self {
        Self::new(404, "NotFound", format!("{} not found", about.quoted()), Some(about))
    }

    /// 404: there is no such path.
    pub fn no_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource".into(), None)
    }

    /// 409: the name is taken.
    pub fn already_exists(about: About) -> Self {
        Self::new(409, "AlreadyExists", format!("{} already exists", about.quoted()), Some(about))
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

    /// 410: that revision is no longer known; list again.
    pub fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"), None)
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into(), None)
    }

    /// 422: the object is not valid.
    pub fn invalid(about: About, causes: Vec<Cause>) -> Self {
        let each: Vec<String> = causes.iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
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
            let cause = |c: &Cause| json!({"reason": c.reason, "message": c.message, "field": c.field});
            details.insert("causes".to_owned(), self.causes.iter().map(cause).collect());
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        });
        if let Some(object) = status.as_object_mut() {
            if !details.is_empty() {
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
