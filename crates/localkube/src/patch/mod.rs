//! The patches clients send: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

mod json;
pub(crate) mod merge;
mod order;
mod readable;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::schema::{Schema, go};
use crate::status::Status;

pub use readable::check;
pub(crate) use readable::refuse;

/// How a patch is meant, told by its content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
}

impl Kind {
    /// The kind a content type names; parameters such as `charset` do not matter.
    pub fn from_content_type(text: &str) -> Option<Self> {
        match text.split(';').next()?.trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            _ => None,
        }
    }
}

/// The object with the patch applied; nothing is changed if that fails.
///
/// The schema says which lists a strategic merge patch merges, and by which key; without one it replaces them all.
pub fn apply(kind: Kind, schema: Option<&Schema>, object: &Value, patch: &Value) -> Result<Value, Status> {
    match (kind, patch) {
        (Kind::Json, _) => json::apply(object, patch),
        (Kind::Merge, Value::Null) => Err(Status::bad_request("Invalid JSON Patch")),
        (Kind::Merge, Value::Object(_)) => {
            let mut patched = object.clone();
            merge::apply(&mut patched, patch);
            Ok(patched)
        }
        (Kind::Merge, _) => Err(Status::bad_request(format!("error decoding patch: {}", no_map(patch)))),
        (Kind::Strategic, Value::Null) => Ok(object.clone()),
        (Kind::Strategic, Value::Object(changes)) => strategic::apply(schema, object, changes),
        (Kind::Strategic, _) => Err(Status::bad_request(no_map(patch))),
    }
}

fn no_map(patch: &Value) -> String {
    format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", go::word(patch))
}
