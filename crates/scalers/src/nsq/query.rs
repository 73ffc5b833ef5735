//! Requests to nsqlookupd and nsqd, and their responses.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::ScalerError;
use crate::responses::{error_field, json, kind};
use crate::web::escaped;

/// The nsqlookupd URL that lists the producers of a topic.
pub(super) fn lookup_url(scheme: &str, lookupd: &str, topic: &str) -> String {
    format!("{scheme}://{lookupd}/lookup?topic={}", escaped(topic))
}

/// The nsqd URL with the statistics of a topic. It does not name the channel, because nsqd would leave out a topic that lacks it.
pub(super) fn stats_url(scheme: &str, nsqd: &str, topic: &str) -> String {
    let topic = escaped(topic);
    format!("{scheme}://{nsqd}/stats?format=json&include_clients=false&include_mem=false&topic={topic}")
}

/// `host:port` of all nsqd that have the topic; none if nsqlookupd does not know the topic.
pub(super) fn producers(status: u16, body: &[u8]) -> Result<BTreeSet<String>, ScalerError> {
    let answer = json(body);
    if status == 404 && answer.as_ref().is_ok_and(|answer| text(answer, "message") == Some("TOPIC_NOT_FOUND"))
    {
        return Ok(BTreeSet::new());
    }
    if status != 200 {
        bail!("nsqlookupd returned {status}: {}", error_field(body, "/message"));
    }
    let answer = answer?;
    let found = data(&answer).get("producers");
    let producers = found
        .and_then(Value::as_array)
        .ok_or_else(|| scaler_error!("nsqlookupd answered {} at producers instead of a list", kind(found)))?;
    producers.iter().map(host_and_port).collect()
}

fn host_and_port(producer: &Value) -> Result<String, ScalerError> {
    let host = text(producer, "broadcast_address").filter(|host| !host.is_empty());
    let port = producer.get("http_port").and_then(Value::as_u64).filter(|port| (1..=65_535).contains(port));
    match (host, port) {
        (Some(host), Some(port)) if host.contains(':') && !host.starts_with('[') => {
            Ok(format!("[{host}]:{port}"))
        }
        (Some(host), Some(port)) => Ok(format!("{host}:{port}")),
        _ => Err(scaler_error!("nsqlookupd named a producer without broadcast_address or http_port")),
    }
}

/// The depth of the channel at one nsqd: that of the topic until the channel exists, 0 while it is paused.
pub(super) fn depth(status: u16, body: &[u8], topic: &str, channel: &str) -> Result<u64, ScalerError> {
    if status != 200 {
        bail!("nsqd returned {status}: {}", error_field(body, "/message"));
    }
    let answer = json(body)?;
    let topics = list(data(&answer), "topics")?;
    // The topic was deleted between the two requests.
    let Some(topic) = topics.iter().find(|entry| text(entry, "topic_name") == Some(topic)) else {
        return Ok(0);
    };
    match list(topic, "channels")?.iter().find(|entry| text(entry, "channel_name") == Some(channel)) {
        None => count(topic),
        Some(channel) if channel.get("paused") == Some(&Value::Bool(true)) => Ok(0),
        Some(channel) => count(channel),
    }
}

fn count(of: &Value) -> Result<u64, ScalerError> {
    let found = of.get("depth");
    found.and_then(Value::as_u64).ok_or_else(|| scaler_error!("nsqd answered {} as depth", kind(found)))
}

fn list<'a>(of: &'a Value, key: &str) -> Result<&'a [Value], ScalerError> {
    let found = of.get(key);
    let list = found.and_then(Value::as_array);
    list.map(Vec::as_slice)
        .ok_or_else(|| scaler_error!("nsqd answered {} at {key} instead of a list", kind(found)))
}

fn text<'a>(of: &'a Value, key: &str) -> Option<&'a str> {
    of.get(key).and_then(Value::as_str)
}

/// Unwraps the envelope that responses had before version 1.0.
fn data(answer: &Value) -> &Value {
    answer.get("data").filter(|data| data.is_object()).unwrap_or(answer)
}
