//! Requests to Cloud Spanner and their responses, without IO.

use serde_json::{Value, json};

use super::Parameters;
use crate::ScalerError;
use crate::google_client::google_answer;
use crate::responses::{excerpt, kind};
use crate::web::path_escaped;

const PRODUCT: &str = "Cloud Spanner";

/// Where sessions are created.
pub(super) fn sessions_url(parameters: &Parameters) -> String {
    let Parameters { project, instance, database, .. } = parameters;
    format!(
        "https://spanner.googleapis.com/v1/projects/{}/instances/{}/databases/{}/sessions",
        path_escaped(project),
        path_escaped(instance),
        path_escaped(database)
    )
}

/// The id of a new session.
pub(super) fn session(status: u16, body: &[u8]) -> Result<String, ScalerError> {
    let answer = google_answer(PRODUCT, status, body)?;
    let name = answer.get("name").and_then(Value::as_str).unwrap_or_default();
    let id = name.rsplit_once("/sessions/").map(|(_, id)| id).unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if id.is_empty() || !id.chars().all(allowed) {
        bail!("{PRODUCT} answered without the name of a session");
    }
    Ok(id.to_owned())
}

/// Where queries of a session are sent.
pub(super) fn query_url(parameters: &Parameters, session: &str) -> String {
    format!("{}/{session}:executeSql", sessions_url(parameters))
}

/// The body of a query that reads the current data and changes nothing.
pub(super) fn request_body(query: &str) -> String {
    json!({"sql": query, "transaction": {"singleUse": {"readOnly": {"strong": true}}}}).to_string()
}

/// The first column of the first row; 0 without rows, as in KEDA.
pub(super) fn value(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    let answer = google_answer(PRODUCT, status, body)?;
    // Without the types an answer without rows cannot be told from one of another kind.
    let Some(type_) = answer.pointer("/metadata/rowType/fields/0/type/code").and_then(Value::as_str) else {
        bail!("the answer of {PRODUCT} has no columns");
    };
    if type_ != "INT64" {
        bail!("reading first column as INT64: the column is {}", excerpt(type_));
    }
    let rows = match answer.get("rows") {
        None | Some(Value::Null) => return Ok(0.0),
        Some(Value::Array(rows)) => rows,
        Some(other) => bail!("the answer of {PRODUCT} has {} as rows", kind(Some(other))),
    };
    let Some(row) = rows.first() else { return Ok(0.0) };
    // Integers are strings in JSON, because they have 64 bits.
    let found = row.get(0);
    let number = found.and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok());
    number
        .map(|number| number as f64)
        .ok_or_else(|| scaler_error!("reading first column as INT64: the value is {}", kind(found)))
}
