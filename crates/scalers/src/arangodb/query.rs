//! The cursor request and its result.

use serde_json::{Value, json};

use crate::ScalerError;
use crate::responses::{error_field, json as read, kind};
use crate::web::path_escaped;

/// The URL that creates a cursor in a database.
pub(super) fn url(endpoint: &str, database: &str) -> String {
    format!("{}/_db/{}/_api/cursor", endpoint.trim_end_matches('/'), path_escaped(database))
}

/// The body that creates a cursor with a short TTL: only its first batch is read.
pub(super) fn body(query: &str) -> String {
    json!({"query": query, "batchSize": 1, "ttl": 5}).to_string()
}

/// The number in the only result.
pub(super) fn value(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    if !(200..300).contains(&status) {
        bail!("ArangoDB returned {status}: {}", error_field(body, "/errorMessage"));
    }
    let answer = read(body)?;
    let results = answer.get("result");
    let has_more = answer.get("hasMore") == Some(&Value::Bool(true));
    let first = match results.and_then(Value::as_array).map(Vec::as_slice) {
        Some([first]) if !has_more => first,
        Some([_, ..]) => bail!("the query has more than one result"),
        _ => bail!("the query has no result ({} at result)", kind(results)),
    };
    let number = first.as_f64().or_else(|| first.get("value").and_then(Value::as_f64));
    number.ok_or_else(|| {
        scaler_error!("the result is {} instead of a number or an object with `value`", kind(Some(first)))
    })
}
