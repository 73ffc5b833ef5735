//! Sends recorded requests to a server in this process, and compares its responses with the recorded ones.

use anyhow::Context as _;
use api::provider::Compat;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::ServersByName;
use crate::conformance::{Difference, Outcome};

/// Fields of what is expected that are not headers.
const NOT_HEADERS: [&str; 6] = ["status", "contentType", "body", "text", "bodyBase64", "pathIndex"];

/// Sends every record's request to the servers with and without `--compat=strict`.
pub(crate) fn replay(
    records: &[Value],
    servers: impl Fn(Compat) -> ServersByName,
) -> anyhow::Result<Vec<Outcome>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (strict, better) = (servers(Compat::Strict), servers(Compat::Better));
    let replayed = |record| {
        Outcome::of(record, |compat| {
            let servers = if compat.is_strict() { &strict } else { &better };
            runtime.block_on(exchange(servers, record))
        })
    };
    Ok(records.iter().map(replayed).collect())
}

async fn exchange(servers: &ServersByName, record: &Value) -> anyhow::Result<Vec<Difference>> {
    let name = record["server"].as_str().unwrap_or_default();
    let server = servers.get(name).with_context(|| format!("unknown server {name:?}"))?;
    let asked = &record["request"];
    let text = |key: &str| asked[key].as_str().unwrap_or_default();
    let mut request = Request::builder().method(text("method")).uri(text("path"));
    for (name, value) in asked["headers"].as_object().into_iter().flatten() {
        request = request.header(name, value.as_str().unwrap_or_default());
    }
    let answer = server.respond(request.body(serve::response::full(""))?).await;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
    let expected = &record["expect"];
    let mut differences = Vec::new();
    let mut compare = |at: &str, expected: &Value, got: Value| {
        if *expected != got {
            differences.push(Difference::json(at, expected, &got));
        }
    };
    let header = |name: &str| json!(parts.headers.get(name).and_then(|value| value.to_str().ok()));
    compare("status", &expected["status"], json!(parts.status.as_u16()));
    compare("contentType", &expected["contentType"], header("content-type"));
    let headers =
        expected.as_object().into_iter().flatten().filter(|(key, _)| !NOT_HEADERS.contains(&key.as_str()));
    for (name, value) in headers {
        compare(name, value, header(name));
    }
    if let Some(body_json) = expected.get("body") {
        compare("body", body_json, serde_json::from_slice(&body).unwrap_or_else(|_| json!(lossy(&body))));
    }
    if let Some(text) = expected.get("text") {
        compare("text", text, json!(lossy(&body)));
    } else if expected.get("body").is_some() {
        // A response without a recorded text has no lines to compare.
        compare("one line", &json!(1), json!(lossy(&body).matches('\n').count()));
    }
    if let Some(bytes) = expected.get("bodyBase64") {
        compare("bodyBase64", bytes, json!(STANDARD.encode(&body)));
    }
    if expected.get("pathIndex").is_some() {
        let index: Value = serde_json::from_slice(&body).unwrap_or_default();
        let paths = index
            .get("paths")
            .and_then(Value::as_array)
            .is_some_and(|paths| paths.iter().all(Value::is_string));
        compare("pathIndex", &json!(true), json!(paths && index.as_object().is_some_and(|o| o.len() == 1)));
    }
    Ok(differences)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
