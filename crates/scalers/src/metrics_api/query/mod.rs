//! Reads a number from a response and builds URLs, without IO.
//!
//! ```text
//! json        GJSON paths, and paths through trees of YAML and XML
//! follow      the steps of a GJSON path through a tree
//! pipeline    GJSON paths with pipes, modifiers and several paths at once
//! stream      the value at a GJSON path, without a tree if the path has one stage
//! xml         XML as a tree
//! exposition  the text format of Prometheus
//! ```

pub mod exposition;
mod follow;
pub mod json;
mod pipeline;
pub mod stream;
pub mod xml;

use std::collections::BTreeSet;

use quantity::Quantity;
use serde_json::Value;

use crate::ScalerError;
use crate::responses::hidden;
use crate::web::escaped;

/// Format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// XML.
    Xml,
    /// The text format of Prometheus.
    Prometheus,
}

impl Format {
    /// Parses the name of a format; unknown names mean JSON.
    pub fn named(name: &str) -> Self {
        match name {
            "yaml" => Self::Yaml,
            "xml" => Self::Xml,
            "prometheus" => Self::Prometheus,
            _ => Self::Json,
        }
    }
}

/// The number in a response.
pub fn read(format: Format, body: &[u8], location: &str) -> Result<f64, ScalerError> {
    let text = std::str::from_utf8(body).map_err(|_| scaler_error!("the answer is not text"))?;
    let tree = match format {
        Format::Prometheus => return exposition::read(text, location),
        Format::Json => {
            let found = stream::find(body, location)
                .map_err(|error| error.described(|error| format!("the answer is not JSON: {error}")))?;
            return number(found.as_ref(), location);
        }
        Format::Yaml => yaml(text)?,
        Format::Xml => xml::parse(text).map_err(|error| scaler_error!("the answer is not XML: {error}"))?,
    };
    number(json::walk(&tree, location), location)
}

/// Maximum number of values in a YAML text: nodes of YAML are larger than those of JSON, because they have positions.
const MAX_YAML_NODES: usize = 100_000;

/// The size of a response for the choice of the thread that decodes it. With aliases, a small YAML text can have the maximum number of
/// values.
pub(super) fn max_decoded_bytes(format: Format, body: &[u8]) -> usize {
    let has_aliases = format == Format::Yaml && body.contains(&b'*');
    if has_aliases { MAX_YAML_NODES * size_of::<Value>() } else { body.len() }
}

/// The first document of a YAML text.
pub fn yaml(text: &str) -> Result<Value, ScalerError> {
    let documents = api::yaml::parse_within(&api::yaml::SourceFile::new("answer", text), MAX_YAML_NODES)
        .map_err(|_| scaler_error!("the answer is not YAML: {}", hidden(text.as_bytes())))?;
    Ok(documents.first().map_or(Value::Null, |document| document.root.to_json()))
}

fn number(value: Option<&Value>, location: &str) -> Result<f64, ScalerError> {
    let found = match value {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => Quantity::parse(text.trim()).ok().map(|quantity| quantity.as_f64()),
        _ => None,
    };
    found.filter(|number| number.is_finite()).ok_or_else(|| {
        let what = "must point to a numeric value or a string parseable as a Quantity";
        scaler_error!("valueLocation {} {what}, got {}", api::gotext::quote(location), kind(value))
    })
}

/// Describes the type of a value, for errors.
fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None | Some(Value::Null) => "Null",
        Some(Value::Bool(true)) => "True",
        Some(Value::Bool(false)) => "False",
        Some(Value::Number(_)) => "Number",
        Some(Value::String(_)) => "String",
        Some(Value::Array(_) | Value::Object(_)) => "JSON",
    }
}

/// Adds or replaces a query parameter of a URL.
pub fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let name = escaped(name);
    let others = query.split('&').filter(|pair| !pair.is_empty());
    let others = others.filter(|pair| pair.split_once('=').map_or(*pair, |(key, _)| key) != name);
    let own = format!("{name}={}", escaped(value));
    let all: Vec<&str> = others.chain([&*own]).collect();
    format!("{base}?{}", all.join("&"))
}

/// The path of a URL, for errors: without credentials and parameters.
pub fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("")
}

/// The service in a URL, and the rest of the URL for its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    scheme: String,
    path: String,
}

impl Service {
    /// The service of `http://{service}.{namespace}[.svc…][:port]/path`.
    pub fn of(url: &str) -> Result<Self, ScalerError> {
        let bad =
            || scaler_error!("the host of url must be SERVICE.NAMESPACE to aggregate from its endpoints");
        let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = host.split_once(':').map_or(host, |(host, _)| host);
        let mut labels = host.split('.');
        match (labels.next(), labels.next()) {
            (Some(name), Some(namespace)) if !name.is_empty() && !namespace.is_empty() => Ok(Self {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                scheme: scheme.to_owned(),
                path: path(url).to_owned(),
            }),
            _ => Err(bad()),
        }
    }
}

/// The distinct URLs of the endpoints.
pub fn endpoints(service: &Service, addresses: Vec<(String, Option<u16>)>) -> Vec<String> {
    let Service { scheme, path, .. } = service;
    let urls: BTreeSet<String> = addresses
        .into_iter()
        .map(|(address, port)| {
            let host = if address.contains(':') { format!("[{address}]") } else { address };
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            format!("{scheme}://{host}{port}{path}")
        })
        .collect();
    urls.into_iter().collect()
}

/// Aggregates numbers. Failures are ignored unless all requests failed; then the first error is returned.
pub fn aggregated(how: &str, answers: Vec<Result<f64, ScalerError>>) -> Result<f64, ScalerError> {
    let (mut numbers, mut error) = (Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(number) => numbers.push(number),
            Err(why) => error = error.or(Some(why)),
        }
    }
    let sum: f64 = numbers.iter().sum();
    let found = match how {
        "sum" => Some(sum),
        "max" => numbers.iter().copied().reduce(f64::max),
        "min" => numbers.iter().copied().reduce(f64::min),
        _ => Some(sum / numbers.len() as f64),
    };
    match found {
        Some(number) if !numbers.is_empty() => Ok(number),
        _ => Err(error.unwrap_or_else(|| scaler_error!("no endpoint answered"))),
    }
}
