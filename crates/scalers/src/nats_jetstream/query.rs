//! What the monitoring endpoint of NATS is asked, and what it answers.

use serde_json::Value;

use crate::Error;
use crate::answers::{json, kind};
use crate::web::escaped;

/// More servers than this are not looked for a leader.
const SERVERS: usize = 64;

/// A consumer, as one server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Consumer {
    /// Messages that it did not get yet, and messages that it did not acknowledge yet.
    pub(super) lag: u64,
    /// The server that decides about it; empty without a cluster.
    pub(super) leader: String,
}

/// What a server says of JetStream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Jetstream {
    /// The consumer, if this server knows it.
    pub(super) consumer: Option<Consumer>,
    /// How many servers there are.
    pub(super) servers: u64,
}

/// What a server says of itself and of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Server {
    /// Its name.
    pub(super) name: String,
    /// Hosts where clients may connect.
    pub(super) hosts: Vec<String>,
    /// Names of the servers of the cluster: first labels of the names under which they know each other.
    pub(super) labels: Vec<String>,
}

/// The path of all consumers of an account.
pub(super) fn jsz(account: &str) -> String {
    format!("/jsz?acc={}&config=true&consumers=true", escaped(account))
}

/// What JetStream is about. The status says nothing here; the body does.
pub(super) fn jetstream(
    body: &[u8],
    account: &str,
    stream: &str,
    consumer: &str,
) -> Result<Jetstream, Error> {
    let answer = json(body)?;
    if !answer.is_object() {
        return Err(Error::new(format!("the monitoring endpoint answered {}", kind(Some(&answer)))));
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
    Ok(Jetstream { consumer, servers })
}

fn read(consumer: &Value) -> Result<Consumer, Error> {
    let count = |key: &str| {
        let found = consumer.get(key);
        found
            .and_then(Value::as_u64)
            .ok_or_else(|| Error::new(format!("the consumer has {} as {key}", kind(found))))
    };
    let leader = consumer.pointer("/cluster/leader").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Consumer { lag: count("num_pending")?.saturating_add(count("num_ack_pending")?), leader })
}

/// What a server says of itself.
pub(super) fn server(body: &[u8]) -> Result<Server, Error> {
    let answer = json(body)?;
    let Some(name) = answer.get("server_name").and_then(Value::as_str) else {
        return Err(Error::new(format!("the server has {} as server_name", kind(answer.get("server_name")))));
    };
    let texts = |list: Option<&Value>| -> Vec<String> {
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).take(SERVERS).map(str::to_owned).collect()
    };
    let hosts = texts(answer.get("connect_urls")).iter().map(|url| host(url).to_owned()).collect();
    let urls = texts(answer.pointer("/cluster/urls"));
    let labels = urls.iter().filter_map(|url| host(url).split('.').next()).map(str::to_owned).collect();
    Ok(Server { name: name.to_owned(), hosts, labels })
}

/// The host of `host:port`, with the brackets of IPv6.
fn host(address: &str) -> &str {
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => address,
    }
}

/// Where another server is monitored: at its host, and the port of the endpoint.
pub(super) fn at_host(endpoint: &str, other: &str) -> String {
    match endpoint.strip_prefix(host(endpoint)) {
        Some(port) => format!("{other}{port}"),
        None => other.to_owned(),
    }
}

fn each<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of.get(key).and_then(Value::as_array).into_iter().flatten()
}
