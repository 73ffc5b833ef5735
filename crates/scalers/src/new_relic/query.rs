//! The NerdGraph request, and its response.

use serde_json::{Value, json};

use crate::ScalerError;
use crate::responses::{error_field, excerpt, json as read, kind};

/// The API URL of a region.
pub(super) fn url(region: &str) -> &'static str {
    match &*region.to_ascii_uppercase() {
        "EU" => "https://api.eu.newrelic.com/graphql",
        "STAGING" => "https://staging-api.newrelic.com/graphql",
        _ => "https://api.newrelic.com/graphql",
    }
}

/// The request body of a query. The query is a GraphQL variable, so that nothing in it needs escaping.
pub(super) fn request_body(account: isize, nrql: &str) -> String {
    let query = "query($account: Int!, $nrql: Nrql!) \
                 { actor { account(id: $account) { nrql(query: $nrql) { results } } } }";
    json!({"query": query, "variables": {"account": account, "nrql": nrql}}).to_string()
}

/// The number in the first result; `None` if there is no result.
pub(super) fn value(status: u16, body: &[u8]) -> Result<Option<f64>, ScalerError> {
    if status != 200 {
        bail!("New Relic returned {status}: {}", error_field(body, "/error/title"));
    }
    let answer = read(body)?;
    if let Some(error) = answer.pointer("/errors/0") {
        let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        bail!("New Relic answered with an error: {}", excerpt(message));
    }
    let found = answer.pointer("/data/actor/account/nrql/results");
    let Some(results) = found.and_then(Value::as_array) else {
        bail!("the answer has {} instead of a list of results", kind(found));
    };
    let Some(first) = results.first().and_then(Value::as_object) else { return Ok(None) };
    if let Some(number) = first.values().find_map(Value::as_f64) {
        return Ok(Some(number));
    }
    // An aggregate over no events is null.
    if first.values().all(Value::is_null) {
        return Ok(None);
    }
    Err(scaler_error!("the first result has no number in it"))
}
