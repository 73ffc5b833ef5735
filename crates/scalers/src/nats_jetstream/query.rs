//! Requests to the monitoring endpoint of NATS, and its responses.

use serde_json::Value;

use crate::ScalerError;
use crate::responses::{json, kind};
use crate::web::escaped;

/// Maximum number of servers that are searched for the leader.
const MAX_SERVERS: usize = 64;

/// The state of a consumer at one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Consumer {
    /// Messages not delivered yet plus messages not acknowledged yet.
    pub(super) lag: u64,
    /// Name of its leader; empty without a cluster.
    pub(super) leader: String,
}

/// The JetStream state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JetStreamState {
    /// The consumer, if the server has it.
    pub(super) consumer: Option<Consumer>,
    /// Number of servers in the cluster.
    pub(super) servers: u64,
}

/// A server's view of itself and the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NatsServer {
    /// Its name.
    pub(super) name: String,
    /// Hosts for client connections.
    pub(super) hosts: Vec<String>,
    /// Names of the servers in the cluster: the first labels of their route host names.
    pub(super) labels: Vec<String>,
}

/// The URL path of all consumers of an account.
pub(super) fn jsz(account: &str) -> String {
    format!("/jsz?acc={}&config=true&consumers=true", escaped(account))
}

/// Decodes the JetStream state. Errors are in the body, not in the HTTP status.
pub(super) fn jetstream(
    body: &[u8],
    account: &str,
    stream: &str,
    consumer: &str,
) -> Result<JetStreamState, ScalerError> {
    let answer = json(body)?;
    if !answer.is_object() {
        bail!("the monitoring endpoint answered {}", kind(Some(&answer)));
    }
    let servers = answer.pointer("/meta_cluster/cluster_size").and_then(Value::as_u64).unwrap_or(0);
    let named = |entry: &&Value, name: &str| entry.get("name").and_then(Value::as_str) == Some(name);
    let found = each(&answer, "account_details")
        .filter(|entry| named(entry, account) || entry.get("id").and_then(Value::as_str) == Some(account))
        .flat_map(|account| each(account, "stream_detail"))
        .filter(|entry| named(entry, stream))
        .flat_map(|stream| each(stream, "consumer_detail"))
        .find(|entry| named(entry, consumer));
    let consumer = found.map(read).transpose()?;
    Ok(JetStreamState { consumer, servers })
}

fn read(consumer: &Value) -> Result<Consumer, ScalerError> {
    let count = |key: &str| {
        let found = consumer.get(key);
        found
            .and_then(Value::as_u64)
            .ok_or_else(|| scaler_error!("the consumer has {} as {key}", kind(found)))
    };
    let leader = consumer.pointer("/cluster/leader").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Consumer { lag: count("num_pending")?.saturating_add(count("num_ack_pending")?), leader })
}

/// Decodes a server's view of the cluster.
pub(super) fn server(body: &[u8]) -> Result<NatsServer, ScalerError> {
    let answer = json(body)?;
    let Some(name) = answer.get("server_name").and_then(Value::as_str) else {
        bail!("the server has {} as server_name", kind(answer.get("server_name")));
    };
    let texts = |list: Option<&Value>| -> Vec<String> {
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).take(MAX_SERVERS).map(str::to_owned).collect()
    };
    let hosts = texts(answer.get("connect_urls")).iter().map(|url| host(url).to_owned()).collect();
    let urls = texts(answer.pointer("/cluster/urls"));
    let labels = urls.iter().filter_map(|url| host(url).split('.').next()).map(str::to_owned).collect();
    Ok(NatsServer { name: name.to_owned(), hosts, labels })
}

/// The host of `host:port`, with the brackets of IPv6.
fn host(address: &str) -> &str {
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => address,
    }
}

/// The monitoring address of another server: its host and the port of the configured endpoint.
pub(super) fn at_host(endpoint: &str, other: &str) -> String {
    match endpoint.strip_prefix(host(endpoint)) {
        Some(port) => format!("{other}{port}"),
        None => other.to_owned(),
    }
}

fn each<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of.get(key).and_then(Value::as_array).into_iter().flatten()
}
