//! The patches clients send: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

mod json;
mod merge;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::status::Status;

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
pub fn apply(kind: Kind, object: &Value, patch: &Value) -> Result<Value, Status> {
    match kind {
        Kind::Json => json::apply(object, patch),
        Kind::Merge => Ok(merge::apply(object.clone(), patch)),
        Kind::Strategic => strategic::apply(object, patch),
    }
}
