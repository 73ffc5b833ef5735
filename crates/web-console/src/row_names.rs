//! The part of a row that stays as long as its object is the same. A change of the row is sent without it.

use std::sync::Arc;

use serde_json::{Value, json};

/// What identifies a row, and what it shows of the object besides values.
#[derive(Debug, PartialEq, Eq)]
pub struct RowNames {
    /// `namespace/kind/name`.
    pub id: Arc<str>,
    /// All names: a JSON object without its last brace.
    pub(crate) json: String,
    /// Only the id, in the same form.
    pub(crate) id_json: String,
}

impl RowNames {
    /// Names with an id and with these fields, which are a JSON object.
    pub fn new(id: &str, fields: &Value) -> Self {
        let id_json = format!("{{\"id\":{}", json!(id));
        let fields = fields.to_string();
        let inner = fields.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default();
        let json = if inner.is_empty() { id_json.clone() } else { format!("{id_json},{inner}") };
        Self { id: id.into(), json, id_json }
    }
}
