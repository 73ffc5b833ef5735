//! Searches, and the number in what they find. OpenSearch has the same ones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::answers::{excerpt, json as read, parsed};
use crate::metrics_api::query::json::find;
use crate::web::path_escaped;

/// What is searched for.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// Path and body.
    pub(crate) path: String,
    pub(crate) body: String,
}

impl Search {
    /// By a query, or by a template and its parameters (`name:value`).
    pub(crate) fn new(indexes: &[String], query: &str, template: &str, parameters: &[String]) -> Self {
        let indexes: Vec<String> = indexes.iter().map(|index| path_escaped(index)).collect();
        let indexes = indexes.join(",");
        if template.is_empty() {
            return Self { path: format!("/{indexes}/_search"), body: query.to_owned() };
        }
        let pairs = parameters.iter().filter_map(|parameter| parameter.split_once(':'));
        let params: Map<String, Value> =
            pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().into())).collect();
        let body = json!({"id": template, "params": params}).to_string();
        Self { path: format!("/{indexes}/_search/template"), body }
    }
}

/// The address that a cloud id stands for: `name:base64(domain$elasticsearch$kibana)`.
pub(crate) fn cloud(id: &str) -> Result<String, Error> {
    let bad =
        || Error::new("cloudID cannot be read: it must be copied from the console of Elastic Cloud as it is");
    let coded = id.rsplit_once(':').map_or(id, |(_, coded)| coded);
    let text = STANDARD.decode(coded.trim()).map_err(|_| bad())?;
    let text = String::from_utf8(text).map_err(|_| bad())?;
    let mut parts = text.split('$');
    match (parts.next(), parts.next()) {
        (Some(domain), Some(cluster)) if !domain.is_empty() && !cluster.is_empty() => {
            let cluster = cluster.split(':').next().unwrap_or_default();
            let (host, port) = domain.split_once(':').map_or((domain, ""), |(host, port)| (host, port));
            let port = if port.is_empty() { String::new() } else { format!(":{port}") };
            Ok(format!("https://{cluster}.{host}{port}"))
        }
        _ => Err(bad()),
    }
}

/// The number in an answer.
pub(crate) fn value(
    product: &str,
    status: u16,
    body: &[u8],
    location: &str,
    ignore_null_values: bool,
) -> Result<f64, Error> {
    match status {
        200..=299 => {}
        401 => {
            return Err(Error::new(format!(
                "{product} authentication failed (HTTP 401): check username and password"
            )));
        }
        403 => {
            let why = "user has insufficient permissions";
            return Err(Error::new(format!("{product} authorization failed (HTTP 403): {why}")));
        }
        // An error is not an answer, even if the place should be there.
        _ => return Err(Error::new(format!("{product} returned {status}: {}", excerpt(body)))),
    }
    let answer = read(body)?;
    let found = find(&answer, location)?;
    let must = "valueLocation must point to value of type number but got:";
    match found.as_deref() {
        None | Some(Value::Null) if ignore_null_values => Ok(0.0),
        None | Some(Value::Null) => Err(Error::new(format!("{must} 'Null'"))),
        Some(Value::Number(number)) => {
            number.as_f64().ok_or_else(|| Error::new(format!("{must} '{number}'")))
        }
        Some(Value::String(text)) => parsed(text).ok_or_else(|| Error::new(format!("{must} 'String'"))),
        Some(Value::Bool(_)) => Err(Error::new(format!("{must} 'True' or 'False'"))),
        Some(Value::Array(_) | Value::Object(_)) => Err(Error::new(format!("{must} 'JSON'"))),
    }
}
