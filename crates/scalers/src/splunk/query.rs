//! The URL that runs a saved search, and its JSON lines.

use serde_json::Value;

use crate::ScalerError;
use crate::responses::{error_field, json, kind, parsed};
use crate::web::{escaped, path_escaped};

/// The URL that runs a saved search and waits for its result.
pub(super) fn url(host: &str, user: &str, search: &str) -> String {
    let host = host.trim_end_matches('/');
    let quoted = search.replace('\\', "\\\\").replace('"', "\\\"");
    let search = escaped(&format!("| savedsearch \"{quoted}\""));
    format!(
        "{host}/servicesNS/{}/search/search/jobs/export?search={search}&output_mode=json",
        path_escaped(user)
    )
}

/// The field of the first final result. Each line of the response is a JSON object; earlier lines are previews.
pub(super) fn value(status: u16, body: &[u8], field: &str) -> Result<f64, ScalerError> {
    if status != 200 {
        bail!("Splunk returned {status}: {}", error_field(body, "/messages/0/text"));
    }
    for line in body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let line = json(line)?;
        if line.get("preview") == Some(&Value::Bool(true)) {
            continue;
        }
        let Some(result) = line.get("result") else { continue };
        let found = result.get(field);
        let number = match found {
            Some(Value::String(text)) => parsed(text),
            Some(other) => other.as_f64(),
            None => None,
        };
        return number
            .ok_or_else(|| scaler_error!("the result has {} at {field} instead of a number", kind(found)));
    }
    Err(scaler_error!("the saved search has no result"))
}
