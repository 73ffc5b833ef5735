//! The request for a query of Log Analytics, and its response, without IO.

use serde_json::{Value, json};

use crate::ScalerError;
use crate::azure_client::azure_answer;
use crate::responses::excerpt;
use crate::web::path_escaped;

/// Prefix of errors of results.
const INVALID: &str = "error validating Log Analytics request. Details";

/// The path of the queries of a workspace.
pub(super) fn path(workspace: &str) -> String {
    format!("/v1/workspaces/{}/query", path_escaped(workspace))
}

/// The body of a query.
pub(super) fn request_body(query: &str) -> String {
    json!({"query": query}).to_string()
}

/// The only value of the only row.
pub(super) fn value(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    let answer = azure_answer("Log Analytics", status, body)?;
    // With this field the result is that of a part of the data.
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        bail!("{INVALID}: the result is incomplete: {}", excerpt(message));
    }
    let tables = list(Some(&answer), "tables");
    let (columns, rows) = (list(tables.first(), "columns"), list(tables.first(), "rows"));
    if columns.is_empty() || rows.is_empty() {
        bail!("{INVALID}: there is no results after running your query");
    }
    for (what, count) in [("tables", tables.len()), ("rows", rows.len())] {
        if count > 1 {
            bail!("{INVALID}: too many {what} in query result: {count}, expected: 1");
        }
    }
    let type_ =
        columns.first().and_then(|column| column.get("type")).and_then(Value::as_str).unwrap_or_default();
    match rows.first().and_then(|row| row.get(0)) {
        None | Some(Value::Null) => Err(scaler_error!("{INVALID}: value is empty, check your query")),
        Some(_) if !matches!(type_, "real" | "int" | "long") => {
            let type_ = excerpt(type_);
            Err(scaler_error!("{INVALID}: value data type should be real, int or long, but received {type_}"))
        }
        Some(found) => match found.as_f64().filter(|number| number.is_finite()) {
            Some(number) if number < 0.0 => {
                Err(scaler_error!("{INVALID}: value should be >=0, but received {number:.6}"))
            }
            Some(number) => Ok(number),
            None => Err(scaler_error!("{INVALID}: cannot convert result to type float64")),
        },
    }
}

/// The list in a field; empty if there is none.
fn list<'a>(value: Option<&'a Value>, key: &str) -> &'a [Value] {
    let found = value.and_then(|value| value.get(key)).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default()
}
