//! A Mango query, and how many documents it finds.

use serde_json::{Value, json};

use crate::Error;
use crate::answers::{excerpt, json as read, kind};
use crate::web::path_escaped;

/// More documents than this are not counted; CouchDB alone would stop at 25.
const LIMIT: u32 = 10_000;

/// Where a database is asked.
pub(super) fn url(server: &str, database: &str) -> String {
    format!("{}/{}/_find", server.trim_end_matches('/'), path_escaped(database))
}

/// What is sent: selector, fields and limit of the query. KEDA counts no further than the first page.
pub(super) fn body(query: &str, first_page: bool) -> Result<String, Error> {
    let query: Value =
        serde_json::from_str(query).map_err(|error| Error::new(format!("the query is not JSON: {error}")))?;
    let mut body = json!({"selector": query.get("selector").unwrap_or(&json!({}))});
    for key in ["fields", "limit"] {
        if let Some(value) = query.get(key) {
            set(&mut body, key, value.clone());
        } else if key == "limit" && !first_page {
            set(&mut body, key, LIMIT.into());
        }
    }
    Ok(body.to_string())
}

/// How many documents were found.
pub(super) fn found(status: u16, body: &[u8]) -> Result<f64, Error> {
    let answer = read(body)?;
    if status != 200 {
        let why = answer.get("reason").and_then(Value::as_str).map_or_else(|| excerpt(body), str::to_owned);
        return Err(Error::new(format!("CouchDB returned {status}: {}", excerpt(why.as_bytes()))));
    }
    let docs = answer.get("docs");
    let count = docs.and_then(Value::as_array).map(Vec::len);
    let count = count
        .ok_or_else(|| Error::new(format!("the answer has {} at docs instead of a list", kind(docs))))?;
    Ok(count as f64)
}

fn set(body: &mut Value, key: &str, value: Value) {
    if let Some(body) = body.as_object_mut() {
        body.insert(key.to_owned(), value);
    }
}
