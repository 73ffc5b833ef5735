//! The clients of all servers: bounded in number, for one namespace and together, because a source may name new servers in each poll.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use sources::http::{Endpoint, HttpClient, HttpError};
use sources::tenant::namespace;
use tokio::time::Instant;

use super::outgoing::ServerPermits;

/// Clients are dropped after this time without requests, and their connections with them.
const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum number of clients that the triggers of one of several namespaces have created.
pub(super) const MAX_NAMESPACE_CLIENTS: usize = 1 << 10;
/// Maximum number of clients.
const MAX_CLIENTS: usize = 1 << 14;
/// Number of clients below which none is looked for that can be dropped.
const MIN_SWEPT_CLIENTS: usize = 64;

/// A server with TLS settings and credentials, and whether its address is our own.
type ClientKey = (Endpoint, bool);

/// Two hashes of a key: a client that was dropped and is created again has the same, and so the pauses and responses of before.
pub(super) type ClientId = [u64; 2];

/// The clients of all servers.
pub(super) struct Clients {
    by_key: HashMap<ClientKey, EndpointClient>,
    /// Number of clients that each namespace has created and that exist.
    of_namespaces: HashMap<Option<Arc<str>>, usize>,
    /// Idle clients are dropped when there are so many.
    sweep_at: usize,
    hashers: [RandomState; 2],
}

/// The client of one server.
struct EndpointClient {
    client: HttpClient,
    id: ClientId,
    permits: Arc<ServerPermits>,
    used: Instant,
    /// The namespace whose trigger used it first.
    namespace: Option<Arc<str>>,
}

impl Default for Clients {
    fn default() -> Self {
        let (by_key, of_namespaces) = (HashMap::new(), HashMap::new());
        Self { by_key, of_namespaces, sweep_at: MIN_SWEPT_CLIENTS, hashers: <[RandomState; 2]>::default() }
    }
}

impl Clients {
    /// The client of a server, its permits and id; created if there is none.
    pub(super) fn client(
        &mut self,
        key: ClientKey,
        create: impl FnOnce(Endpoint) -> Result<HttpClient, HttpError>,
    ) -> Result<(ClientId, Arc<ServerPermits>, HttpClient), HttpError> {
        let now = Instant::now();
        if let Some(known) = self.by_key.get_mut(&key) {
            known.used = now;
            return Ok((known.id, Arc::clone(&known.permits), known.client.clone()));
        }
        let namespace = namespace();
        let client = create(key.0.clone())?;
        self.make_room(namespace.as_ref(), now);
        let id = self.hashers.each_ref().map(|hasher| hasher.hash_one(&key));
        let permits = Arc::<ServerPermits>::default();
        *self.of_namespaces.entry(namespace.clone()).or_default() += 1;
        let own = EndpointClient {
            client: client.clone(),
            id,
            permits: Arc::clone(&permits),
            used: now,
            namespace,
        };
        self.by_key.insert(key, own);
        Ok((id, permits, client))
    }

    /// Drops idle clients from time to time, and the half that was used longest ago where there are too many. A client that is
    /// dropped while it is used ends with its requests.
    fn make_room(&mut self, namespace: Option<&Arc<str>>, now: Instant) {
        if self.by_key.len() >= self.sweep_at {
            self.retain(|known| now.duration_since(known.used) < CLIENT_IDLE_TIMEOUT);
            if self.by_key.len() >= MAX_CLIENTS {
                self.drop_older_half(|_| true);
            }
            self.sweep_at = (2 * self.by_key.len()).clamp(MIN_SWEPT_CLIENTS, MAX_CLIENTS);
        }
        let count = self.of_namespaces.get(&namespace.cloned()).copied().unwrap_or_default();
        // An only namespace has nobody to leave room to.
        if count >= MAX_NAMESPACE_CLIENTS && self.of_namespaces.len() > 1 {
            self.drop_older_half(|known| known.namespace.as_ref() == namespace);
        }
    }

    /// Drops the half of some clients that was used longest ago.
    fn drop_older_half(&mut self, is_counted: impl Fn(&EndpointClient) -> bool) {
        let counted = self.by_key.values().filter(|known| is_counted(known));
        let mut order: Vec<(Instant, ClientId)> = counted.map(|known| (known.used, known.id)).collect();
        let middle = order.len() / 2;
        if middle == 0 {
            return;
        }
        let (_, last, _) = order.select_nth_unstable(middle - 1);
        let last = *last;
        self.retain(|known| !is_counted(known) || (known.used, known.id) > last);
    }

    fn retain(&mut self, keep: impl Fn(&EndpointClient) -> bool) {
        let of_namespaces = &mut self.of_namespaces;
        self.by_key.retain(|_, known| {
            let is_kept = keep(known);
            if !is_kept && let Some(count) = of_namespaces.get_mut(&known.namespace) {
                *count -= 1;
            }
            is_kept
        });
        of_namespaces.retain(|_, count| *count > 0);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use sources::http::{Auth, Secret};
    use sources::tenant::in_namespace;

    use super::*;

    fn endpoint(number: usize) -> Endpoint {
        Endpoint { url: format!("http://10.0.0.1:{number}"), ..Endpoint::default() }
    }

    fn numbered(clients: &mut Clients, number: usize) -> ClientId {
        clients.client((endpoint(number), false), HttpClient::new).unwrap().0
    }

    #[tokio::test(start_paused = true)]
    async fn new_servers_of_one_namespace_replace_its_own_clients_only() {
        let mut clients = Clients::default();
        in_namespace("other", async { numbered(&mut clients, 1) }).await;
        in_namespace("hostile", async {
            for number in 2..=3 * MAX_NAMESPACE_CLIENTS {
                numbered(&mut clients, number);
            }
            // The last one is kept.
            assert!(clients.by_key.contains_key(&(endpoint(3 * MAX_NAMESPACE_CLIENTS), false)));
        })
        .await;
        assert!(clients.len() <= MAX_NAMESPACE_CLIENTS + 1, "{}", clients.len());
        assert!(clients.by_key.contains_key(&(endpoint(1), false)));
        let counted: usize = clients.of_namespaces.values().sum();
        assert_eq!(counted, clients.len());
    }

    #[tokio::test(start_paused = true)]
    async fn only_namespace_keeps_its_clients() {
        let mut clients = Clients::default();
        in_namespace("only", async {
            for number in 1..=2 * MAX_NAMESPACE_CLIENTS {
                numbered(&mut clients, number);
            }
        })
        .await;
        assert_eq!(clients.len(), 2 * MAX_NAMESPACE_CLIENTS);
        in_namespace("other", async { numbered(&mut clients, 9000) }).await;
        in_namespace("only", async { numbered(&mut clients, 9001) }).await;
        assert_eq!(clients.len(), MAX_NAMESPACE_CLIENTS + 2);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_without_requests_are_dropped() {
        let mut clients = Clients::default();
        for number in 1..=MIN_SWEPT_CLIENTS {
            numbered(&mut clients, number);
        }
        tokio::time::advance(CLIENT_IDLE_TIMEOUT).await;
        numbered(&mut clients, MIN_SWEPT_CLIENTS + 1);
        assert_eq!(clients.len(), 1);
    }

    /// Otherwise a source is asked during a pause that it requires.
    #[tokio::test(start_paused = true)]
    async fn client_that_is_created_again_has_the_id_of_before() {
        let mut clients = Clients::default();
        let [one, other] = [1, 2].map(|number| numbered(&mut clients, number));
        clients.retain(|_| false);
        assert_eq!((clients.len(), numbered(&mut clients, 1)), (0, one));
        assert_ne!(one, other);
        let token = Endpoint { auth: Auth::Token(Secret::new("t")), ..endpoint(1) };
        assert_ne!(clients.client((token, false), HttpClient::new).unwrap().0, one);
        assert_ne!(clients.client((endpoint(1), true), HttpClient::new).unwrap().0, one);
    }
}
