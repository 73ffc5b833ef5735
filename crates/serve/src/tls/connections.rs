//! The connections of a listener: how many there may be, and which of them makes room for a new one.
//!
//! A new connection is always accepted unless every other one has a running request of an authorized user. A client
//! that has reached the limit of its address only displaces its own connections.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use locks::MutexExt as _;
use tokio::time::Instant;

use super::activity::{Activity, ActivitySnapshot, ConnectionRank};
use crate::peer_address::PeerAddress;

/// How often it is logged that connections are closed.
const LOG_PERIOD: Duration = Duration::from_mins(1);

/// All connections of a listener. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct ConnectionTable(Arc<TableState>);

#[derive(Debug)]
struct TableState {
    total: usize,
    per_peer: usize,
    held: Mutex<HeldConnections>,
}

#[derive(Debug, Default)]
struct HeldConnections {
    next: u64,
    connections: HashMap<u64, HeldConnection>,
    logged: Option<Instant>,
}

#[derive(Debug)]
struct HeldConnection {
    peer: PeerAddress,
    activity: Activity,
}

/// The place of a connection, given back when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    table: ConnectionTable,
    id: u64,
    pub(super) activity: Activity,
}

impl ConnectionTable {
    /// At most `total` connections, and `per_peer` of one address.
    pub(super) fn new(total: usize, per_peer: usize) -> Self {
        Self(Arc::new(TableState { total, per_peer, held: Mutex::default() }))
    }

    /// A place for a new connection; another one may be closed for it. None if all are in use.
    pub(super) fn admit(&self, peer: PeerAddress) -> Option<ConnectionPlace> {
        let TableState { total, per_peer, .. } = *self.0;
        let mut held = self.held();
        let of_peer = held.connections.values().filter(|held| held.peer == peer).count();
        let among = if of_peer >= per_peer { Some(Some(peer)) } else { None };
        let among = among.or_else(|| (held.connections.len() >= total).then_some(None));
        if let Some(among) = among {
            let chosen = held.to_close(among, total);
            held.log(peer, chosen.is_some());
            if let Some(closed) = held.connections.remove(&chosen?) {
                closed.activity.close();
            }
        }
        let (id, activity) = (held.next, Activity::new());
        held.next += 1;
        held.connections.insert(id, HeldConnection { peer, activity: activity.clone() });
        Some(ConnectionPlace { table: self.clone(), id, activity })
    }

    /// Logs from time to time that new connections of an address are closed, because it has begun too many TLS handshakes.
    pub(super) fn log_refused_handshake(&self, peer: PeerAddress) {
        if self.held().is_log_due() {
            tracing::warn!(address = %peer, "too many TLS handshakes: new connections are closed");
        }
    }

    fn held(&self) -> MutexGuard<'_, HeldConnections> {
        self.0.held.locked()
    }
}

impl HeldConnections {
    /// The connection that makes room, among those of one peer or all.
    fn to_close(&self, among: Option<PeerAddress>, total: usize) -> Option<u64> {
        let mut per_peer: HashMap<PeerAddress, usize> = HashMap::new();
        let mut proxies = 0;
        let all: Vec<(u64, PeerAddress, ActivitySnapshot)> =
            self.connections.iter().map(|(id, held)| (*id, held.peer, held.activity.snapshot())).collect();
        for (_, peer, snapshot) in &all {
            *per_peer.entry(*peer).or_default() += 1;
            proxies += usize::from(snapshot.rank == ConnectionRank::FrontProxy);
        }
        let candidates = all.iter().filter(|(_, peer, _)| among.is_none_or(|among| among == *peer));
        let candidates = candidates.filter(|(_, _, snapshot)| match snapshot.rank {
            // Requests of unknown clients are cancelled before a new connection is refused.
            ConnectionRank::Unknown => true,
            ConnectionRank::Authorized => !snapshot.is_busy,
            ConnectionRank::FrontProxy => !snapshot.is_busy && proxies > total / 2,
        });
        let order = |(id, peer, snapshot): &&(u64, PeerAddress, ActivitySnapshot)| {
            let count = per_peer.get(peer).copied().unwrap_or_default();
            (snapshot.rank, snapshot.is_busy, Reverse(count), snapshot.since, *id)
        };
        candidates.min_by_key(order).map(|(id, ..)| *id)
    }

    /// Whether nothing was logged for [`LOG_PERIOD`], which begins again then.
    fn is_log_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.logged.is_none_or(|logged| now >= logged + LOG_PERIOD);
        if is_due {
            self.logged = Some(now);
        }
        is_due
    }

    fn log(&mut self, peer: PeerAddress, has_room: bool) {
        if !self.is_log_due() {
            return;
        }
        let connections = self.connections.len();
        if has_room {
            tracing::warn!(address = %peer, connections, "too many connections: idle ones are closed for new ones");
        } else {
            tracing::warn!(address = %peer, connections, "too many connections: new ones are closed");
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.table.held().connections.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use futures::FutureExt as _;

    use super::*;

    fn peer(last: u8) -> PeerAddress {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into()
    }

    fn is_closed(place: &ConnectionPlace) -> bool {
        place.activity.closed().now_or_never().is_some()
    }

    async fn later() {
        tokio::time::advance(Duration::from_secs(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_is_idle_longest_makes_room() {
        let table = ConnectionTable::new(3, 3);
        let first = table.admit(peer(1)).unwrap();
        later().await;
        let second = table.admit(peer(2)).unwrap();
        later().await;
        let third = table.admit(peer(3)).unwrap();
        later().await;
        drop(first.activity.begin());
        let busy = second.activity.begin();
        let fourth = table.admit(peer(4)).unwrap();
        assert!(is_closed(&third) && !is_closed(&first) && !is_closed(&second));
        drop((third, busy));
        assert_eq!(table.held().connections.len(), 3);
        drop((first, second, fourth));
        assert!(table.held().connections.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn closed_connections_are_logged_once_per_period() {
        let table = ConnectionTable::new(1, 1);
        assert!(table.held().is_log_due());
        later().await;
        assert!(!table.held().is_log_due());
        tokio::time::advance(LOG_PERIOD).await;
        assert!(table.held().is_log_due());
    }

    #[tokio::test(start_paused = true)]
    async fn client_with_the_most_connections_loses_one_first() {
        let table = ConnectionTable::new(4, 3);
        let single = table.admit(peer(1)).unwrap();
        later().await;
        let many: Vec<_> = (0..3).map(|_| table.admit(peer(2)).unwrap()).collect();
        let other = table.admit(peer(3)).unwrap();
        assert!(is_closed(&many[0]) && !is_closed(&single));
        // At the limit of its address, a client displaces only its own.
        let table = ConnectionTable::new(100, 2);
        let strangers: Vec<_> = (1..50).map(|last| table.admit(peer(last)).unwrap()).collect();
        let own: Vec<_> = (0..5).map(|_| table.admit(peer(99)).unwrap()).collect();
        assert!(strangers.iter().all(|place| !is_closed(place)));
        assert_eq!(own.iter().filter(|place| is_closed(place)).count(), 3);
        drop(other);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_of_the_api_server_stay() {
        let table = ConnectionTable::new(8, 8);
        let proxy = table.admit(peer(1)).unwrap();
        proxy.activity.rise(ConnectionRank::FrontProxy);
        let user = table.admit(peer(1)).unwrap();
        user.activity.rise(ConnectionRank::Authorized);
        later().await;
        let mut flood = Vec::new();
        for _ in 0..100 {
            let place = table.admit(peer(2)).unwrap();
            // Even those that have a request.
            let busy = place.activity.begin();
            flood.push((place, busy));
        }
        assert!(!is_closed(&proxy) && !is_closed(&user));
        // Users who are idle make room when nobody else can; the API server does not.
        let table = ConnectionTable::new(2, 2);
        let proxy = table.admit(peer(1)).unwrap();
        proxy.activity.rise(ConnectionRank::FrontProxy);
        let user = table.admit(peer(1)).unwrap();
        user.activity.rise(ConnectionRank::Authorized);
        let request = user.activity.begin();
        assert!(table.admit(peer(2)).is_none());
        drop(request);
        assert!(table.admit(peer(2)).is_some() && is_closed(&user) && !is_closed(&proxy));
    }
}
