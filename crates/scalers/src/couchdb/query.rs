//! The Mango query, and the number of documents it returns.

use serde_json::{Value, json};

use crate::ScalerError;
use crate::responses::{error_field, json as read, kind};
use crate::web::path_escaped;

/// Maximum number of documents that are counted; CouchDB's default limit is 25.
const MAX_DOCUMENTS: u32 = 10_000;

/// The URL that queries a database.
pub(super) fn url(server: &str, database: &str) -> String {
    format!("{}/{}/_find", server.trim_end_matches('/'), path_escaped(database))
}

/// The request body: selector, fields and limit of the query. KEDA counts only the first page.
pub(super) fn body(query: &str, first_page: bool) -> Result<String, ScalerError> {
    let query: Value =
        serde_json::from_str(query).map_err(|error| scaler_error!("the query is not JSON: {error}"))?;
    let mut body = json!({"selector": query.get("selector").unwrap_or(&json!({}))});
    for key in ["fields", "limit"] {
        if let Some(value) = query.get(key) {
            set(&mut body, key, value.clone());
        } else if key == "limit" && !first_page {
            set(&mut body, key, MAX_DOCUMENTS.into());
        }
    }
    Ok(body.to_string())
}

/// The number of documents returned.
pub(super) fn found(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    if status != 200 {
        bail!("CouchDB returned {status}: {}", error_field(body, "/reason"));
    }
    let answer = read(body)?;
    let docs = answer.get("docs");
    let count = docs.and_then(Value::as_array).map(Vec::len);
    let count =
        count.ok_or_else(|| scaler_error!("the answer has {} at docs instead of a list", kind(docs)))?;
    Ok(count as f64)
}

fn set(body: &mut Value, key: &str, value: Value) {
    if let Some(body) = body.as_object_mut() {
        body.insert(key.to_owned(), value);
    }
}
