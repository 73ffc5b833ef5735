//! The address that runs a saved search, and the lines it answers with.

use serde_json::Value;

use crate::Error;
use crate::answers::{excerpt, json, kind, parsed};
use crate::web::{escaped, path_escaped};

/// The address that runs a saved search and waits for its result.
pub(super) fn url(host: &str, user: &str, search: &str) -> String {
    let host = host.trim_end_matches('/');
    let quoted = search.replace('\\', "\\\\").replace('"', "\\\"");
    let search = escaped(&format!("| savedsearch \"{quoted}\""));
    format!(
        "{host}/servicesNS/{}/search/search/jobs/export?search={search}&output_mode=json",
        path_escaped(user)
    )
}

/// The field of the first final result. Each line of the answer is JSON; those before are previews.
pub(super) fn value(status: u16, body: &[u8], field: &str) -> Result<f64, Error> {
    if status != 200 {
        return Err(Error::new(format!("Splunk returned {status}: {}", excerpt(body))));
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
        return number.ok_or_else(|| {
            Error::new(format!("the result has {} at {field} instead of a number", kind(found)))
        });
    }
    Err(Error::new("the saved search has no result"))
}
