//! The patch types: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

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

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
}

impl PatchKind {
    /// The type of a content type; parameters such as `charset` are ignored.
    pub fn from_content_type(text: &str) -> Option<Self> {
        match text.split(';').next()?.trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            _ => None,
        }
    }
}

/// Applies a patch; the object itself is not changed.
///
/// The schema determines which lists a strategic merge patch merges, and by which key; without a schema it replaces all
/// lists.
pub fn apply(
    kind: PatchKind,
    schema: Option<&Schema>,
    object: &Value,
    patch: &Value,
) -> Result<Value, Status> {
    match (kind, patch) {
        (PatchKind::Json, _) => json::apply(object, patch),
        (PatchKind::Merge, Value::Null) => Err(Status::bad_request("Invalid JSON Patch")),
        (PatchKind::Merge, Value::Object(_)) => {
            let mut patched = object.clone();
            merge::apply(&mut patched, patch);
            Ok(patched)
        }
        (PatchKind::Merge, _) => Err(Status::bad_request(format!("error decoding patch: {}", no_map(patch)))),
        (PatchKind::Strategic, Value::Null) => Ok(object.clone()),
        (PatchKind::Strategic, Value::Object(changes)) => strategic::apply(schema, object, changes),
        (PatchKind::Strategic, _) => Err(Status::bad_request(no_map(patch))),
    }
}

fn no_map(patch: &Value) -> String {
    format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", go::word(patch))
}
