//! A Redis Cluster: each key belongs to one server, which the others name (`MOVED`, `ASK`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::connect::{RedisAddress, RedisConnection, RedisConnector, RedisFailure, RedisLogin};
use super::query;
use super::resp::RedisReply;
use crate::ScalerError;

/// Maximum number of redirections of one command: two while a slot moves, and some for a client that knows nothing.
const MAX_REDIRECTIONS: usize = 5;
/// Maximum number of open connections; the servers of a larger Cluster are connected to again.
const MAX_SERVERS: usize = 16;
/// Maximum number of keys whose server is remembered.
const MAX_KNOWN_KEYS: usize = 1_000;

/// Connections to servers of a Cluster.
pub(super) struct ClusterConnection {
    /// The server that gets commands for keys whose server is not known.
    first: RedisAddress,
    servers: HashMap<RedisAddress, RedisConnection>,
    /// The server of each key that was queried.
    owners: HashMap<String, RedisAddress>,
}

/// Another server that has the key.
#[derive(Debug, PartialEq, Eq)]
enum Redirection {
    /// The key belongs to it.
    Moved(RedisAddress),
    /// It gets one request, while the key moves.
    Ask(RedisAddress),
}

/// Decodes `MOVED 3999 host:port` or `ASK 3999 host:port`. Without a host it is that of the server that redirects.
fn redirection(error: &str, host: &str) -> Option<Redirection> {
    let mut words = error.split_ascii_whitespace();
    let (kind, _slot, address) = (words.next()?, words.next()?, words.next()?);
    let (named, port) = address.rsplit_once(':')?;
    let host = if named.is_empty() || named == "?" { host } else { named };
    let address = (host.to_owned(), port.parse().ok()?);
    match kind {
        "MOVED" => Some(Redirection::Moved(address)),
        "ASK" => Some(Redirection::Ask(address)),
        _ => None,
    }
}

impl ClusterConnection {
    /// Connects to the first server that answers.
    pub(super) async fn open(
        connector: RedisConnector<'_>,
        login: &RedisLogin<'_>,
        addresses: &[String],
    ) -> Result<Self, ScalerError> {
        let mut failed = scaler_error!("there is no address");
        for address in addresses {
            let first = query::host_and_port(address).map_err(ScalerError::new)?;
            match connector.connect(&first, login).await {
                Ok(connection) => {
                    let servers = HashMap::from([(first.clone(), connection)]);
                    return Ok(Self { first, servers, owners: HashMap::new() });
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Sends a command to the server of its key; without a key to any server.
    pub(super) async fn call(
        &mut self,
        connector: RedisConnector<'_>,
        login: &RedisLogin<'_>,
        key: Option<&str>,
        words: &[&str],
    ) -> Result<RedisReply, RedisFailure> {
        let known = key.and_then(|key| self.owners.get(key));
        let mut address = known.unwrap_or(&self.first).clone();
        let mut once = false;
        for _ in 0..=MAX_REDIRECTIONS {
            let server = self.server(connector, login, &address).await.map_err(RedisFailure::Lost)?;
            if once {
                server.call(&["ASKING"]).await?;
            }
            let refused = match server.call(words).await {
                Err(RedisFailure::Refused(text)) => text,
                other => return other,
            };
            match redirection(&refused, &address.0) {
                Some(Redirection::Moved(owner)) => {
                    if let Some(key) = key {
                        if self.owners.len() >= MAX_KNOWN_KEYS {
                            self.owners.clear();
                        }
                        self.owners.insert(key.to_owned(), owner.clone());
                    }
                    (address, once) = (owner, false);
                }
                Some(Redirection::Ask(other)) => (address, once) = (other, true),
                None => return Err(RedisFailure::Refused(refused)),
            }
        }
        Err(RedisFailure::Unexpected("the servers of the Cluster name each other for this key".to_owned()))
    }

    async fn server(
        &mut self,
        connector: RedisConnector<'_>,
        login: &RedisLogin<'_>,
        address: &RedisAddress,
    ) -> Result<&mut RedisConnection, ScalerError> {
        if self.servers.len() >= MAX_SERVERS && !self.servers.contains_key(address) {
            self.servers.clear();
        }
        match self.servers.entry(address.clone()) {
            Entry::Occupied(server) => Ok(server.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(connector.connect(address, login).await?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_name_a_server() {
        let found = |error: &str| redirection(error, "10.0.0.1");
        let address = |host: &str, port| (host.to_owned(), port);
        assert_eq!(found("MOVED 3999 10.0.0.2:6381"), Some(Redirection::Moved(address("10.0.0.2", 6381))));
        assert_eq!(found("ASK 1 redis-2.shop:6379"), Some(Redirection::Ask(address("redis-2.shop", 6379))));
        assert_eq!(found("MOVED 1 :7000"), Some(Redirection::Moved(address("10.0.0.1", 7000))));
        assert_eq!(found("MOVED 1 ?:7000"), Some(Redirection::Moved(address("10.0.0.1", 7000))));
        assert_eq!(found("MOVED 1 2001:db8::1:7000"), Some(Redirection::Moved(address("2001:db8::1", 7000))));
        for other in ["ERR no such key", "MOVED 1", "MOVED 1 a:x", "CLUSTERDOWN The cluster is down", ""] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
