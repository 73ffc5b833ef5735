//! Sharding of nodes over replicas, and the exchange of samples between replicas.
//!
//! ```text
//! rendezvous  rendezvous hashing: owner of a node
//! members     live replicas, and the current owner of a node
//! newest      deduplication: the newest scrape of a node wins
//! journal     encoded scrapes of this replica, for its peers
//! codec       binary encoding of samples
//! peer        client of another replica
//! route       HTTP handler for the other replicas
//! ```
//!
//! Each replica scrapes its own nodes and fetches the samples of the others, so each can serve all nodes. A replica
//! without a response for two thirds of a period loses its nodes to the next in rank until it responds again.
//! Initially, and while the owner reports no sample of a node, the next in rank scrapes the node too: two replicas
//! may scrape a node, but never none.

mod codec;
mod journal;
mod members;
mod newest;
mod peer;
mod rendezvous;
mod route;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use locks::MutexExt as _;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use members::Replica;

use crate::Clock;
use crate::http::Endpoint;
use crate::inventory::{Inventory, Node};
use crate::kubelet::Scrape;
use crate::kubelet::scraper::{ScrapeSink, Scraper};
use crate::store::Store;
use codec::SamplesPage;
use journal::Journal;
use members::Members;
use newest::{NewestScrapes, ScrapeOrigin};
use peer::{Peer, PeerError};

/// Decodes a page of samples of another replica and encodes it again, for fuzzing; none if it is invalid.
#[doc(hidden)]
pub fn reencoded_page(bytes: &[u8]) -> Option<Vec<u8>> {
    let SamplesPage { incarnation, generation, more, entries } = codec::read(bytes).ok()?;
    let mut page = codec::head(incarnation, generation, more, entries.len());
    for entry in &entries {
        codec::entry(&mut page, &entry.node, entry.age, &codec::scrape(&entry.scrape));
    }
    Some(page)
}

/// Path that replicas fetch samples from.
pub const PATH: &str = "/plimsoll/samples";

/// Pages fetched from one peer without a pause.
const MAX_PAGES_PER_FETCH: usize = 64;

/// Settings of sharding.
#[derive(Clone, Debug)]
pub struct ShardingSettings {
    /// Name of this replica: its pod name.
    pub id: String,
    /// Scrape interval of a node.
    pub resolution: Duration,
    /// TLS and credentials for the other replicas; the URL is not used.
    pub endpoint: Endpoint,
    /// The wall clock.
    pub clock: Clock,
}

/// Sharding of nodes over replicas. Cheap to clone; clones share their data.
#[derive(Clone)]
pub struct Sharding(Arc<ShardingInner>);

struct ShardingInner {
    settings: ShardingSettings,
    inventory: Inventory,
    store: Store,
    state: Mutex<ShardingState>,
    peers: Mutex<Arc<Vec<Arc<Peer>>>>,
    changed: Notify,
}

struct ShardingState {
    members: Members,
    newest: NewestScrapes,
    journal: Journal,
    received: u64,
}

/// Whether a peer has more pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageProgress {
    More,
    Complete,
}

/// Status of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaReport {
    /// Name of the replica.
    pub id: String,
    /// Address; empty for this replica.
    pub address: String,
    /// Whether it responds.
    pub alive: bool,
    /// Duration of the current state.
    pub duration: Duration,
    /// Number of nodes it owns.
    pub nodes: u64,
    /// Error and remedy.
    pub problem: Option<(String, String)>,
}

impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharding").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl Sharding {
    /// Starts without peers: this replica owns all nodes until [`set`](Self::set).
    pub fn new(settings: ShardingSettings, inventory: Inventory, store: Store) -> Self {
        let incarnation = RandomState::new().hash_one(&settings.id);
        let state = ShardingState {
            members: Members::new(settings.id.clone(), settings.resolution * 2 / 3),
            newest: NewestScrapes::default(),
            journal: Journal::new(incarnation),
            received: 0,
        };
        Self(Arc::new(ShardingInner {
            settings,
            inventory,
            store,
            state: Mutex::new(state),
            peers: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// Sets the replicas; this replica may be among them.
    pub fn set(&self, replicas: Vec<Replica>) {
        let mut state = self.state();
        state.members.set(replicas, Instant::now());
        let wanted: Vec<Replica> = state.members.others().iter().map(|other| other.replica.clone()).collect();
        if wanted.is_empty() {
            state.journal.clear();
        }
        drop(state);
        let mut peers = self.0.peers.locked();
        let known = |replica: Replica| match peers.iter().find(|peer| peer.replica == replica) {
            Some(peer) => Arc::clone(peer),
            None => Arc::new(Peer::new(replica, &self.0.settings.endpoint, self.pause())),
        };
        *peers = Arc::new(wanted.into_iter().map(known).collect());
        drop(peers);
        self.0.changed.notify_one();
    }

    /// Whether this replica scrapes a node.
    pub fn owns(&self, node: &str) -> bool {
        let (state, now) = (self.state(), Instant::now());
        match state.members.rank(node, now) {
            0 => true,
            1 => !state.newest.is_reported(node, now, self.0.settings.resolution * 2),
            _ => false,
        }
    }

    /// Restricts a scraper to the nodes that pass `filter` and belong to this replica, and receives its scrapes.
    pub fn shard_scraper(
        &self,
        scraper: Scraper,
        filter: impl Fn(&Node) -> bool + Send + Sync + 'static,
    ) -> Scraper {
        let sharding = self.clone();
        let both = move |node: &Node| filter(node) && sharding.owns(&node.name);
        scraper.only(Arc::new(both)).into_sink(Arc::new(self.clone()))
    }

    /// Stores a scrape of this replica.
    pub fn take(&self, node: &str, scrape: Scrape, time: Timestamp) {
        let now = Instant::now();
        let mut state = self.state();
        if !state.members.others().is_empty() {
            state.journal.record(node, &scrape, now);
        }
        if state.newest.admit(node, &scrape, ScrapeOrigin::Own, now, self.0.settings.resolution * 2) {
            // Under the lock, because scrapes must be stored in the order of admission.
            self.0.store.take(node, scrape, time);
        }
    }

    /// Fetches samples from all peers periodically; never returns.
    pub async fn run(&self) {
        let pruning = async {
            loop {
                tokio::time::sleep(self.0.settings.resolution).await;
                self.prune(self.0.settings.clock.now());
            }
        };
        let polling = async {
            loop {
                let peers = Arc::clone(&self.0.peers.locked());
                let all = join_all(peers.iter().map(|peer| self.poll_peer(peer)));
                tokio::select! {
                    () = self.0.changed.notified() => {}
                    // Without peers the future is ready immediately.
                    () = async { all.await; std::future::pending().await } => {}
                }
            }
        };
        tokio::join!(pruning, polling);
    }

    /// Status of all replicas, this one first.
    pub fn report(&self) -> Vec<ReplicaReport> {
        let (now, nodes) = (Instant::now(), self.0.inventory.nodes());
        let state = self.state();
        let count =
            |id: &str| nodes.iter().filter(|node| state.members.owner(&node.name, now) == id).count() as u64;
        let own = ReplicaReport {
            id: state.members.own().to_owned(),
            address: String::new(),
            alive: true,
            duration: Duration::ZERO,
            nodes: count(state.members.own()),
            problem: None,
        };
        let others = state.members.others().iter().map(|other| {
            let alive = state.members.is_alive(other, now);
            let problem = other.problem.as_ref().map(|(cause, remedy)| (cause.clone(), (*remedy).to_owned()));
            let since = if alive { other.since } else { other.last_response.unwrap_or(other.since) };
            ReplicaReport {
                id: other.replica.id.clone(),
                address: other.replica.address.clone(),
                alive,
                duration: now.saturating_duration_since(since),
                nodes: count(&other.replica.id),
                problem,
            }
        });
        std::iter::once(own).chain(others).collect()
    }

    /// Number of scrapes received from peers.
    pub fn received(&self) -> u64 {
        self.state().received
    }

    /// Interval of fetches from a peer, and their timeout.
    fn pause(&self) -> Duration {
        self.0.settings.resolution / 5
    }

    async fn poll_peer(&self, peer: &Peer) {
        loop {
            self.fetch(peer).await;
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// Fetches all new samples of a peer.
    async fn fetch(&self, peer: &Peer) {
        for _ in 0..MAX_PAGES_PER_FETCH {
            let result = peer.fetch().await;
            let result = result.and_then(|page| self.apply_page(peer, page, self.0.settings.clock.now()));
            match result {
                Ok(PageProgress::More) => {}
                Ok(PageProgress::Complete) => return,
                Err(error) => {
                    tracing::debug!(replica = %peer.replica.id, %error, "cannot fetch samples of a replica");
                    self.state().members.mark_failed(&peer.replica.id, error.to_string(), error.remedy());
                    return;
                }
            }
        }
    }

    /// Stores the entries of a page.
    fn apply_page(&self, peer: &Peer, page: SamplesPage, time: Timestamp) -> Result<PageProgress, PeerError> {
        let (now, period) = (Instant::now(), self.0.settings.resolution);
        if page.incarnation == self.state().journal.incarnation() {
            return Err(PeerError::OwnAddress);
        }
        peer.acknowledge(&page);
        self.state().members.mark_alive(&peer.replica.id, now);
        for entry in page.entries {
            let age = Duration::from_millis(entry.age);
            // Entries of unknown nodes are skipped, and old ones too, because the current owner delivers newer ones.
            if age > period * 4 || self.0.inventory.node(&entry.node).is_none() {
                continue;
            }
            let taken = SignedDuration::try_from(age).ok().and_then(|age| time.checked_sub(age).ok());
            let mut state = self.state();
            if age <= period * 2 {
                state.newest.mark_reported(&entry.node, now);
            }
            if state.newest.admit(&entry.node, &entry.scrape, ScrapeOrigin::Peer, now, period * 2) {
                state.received += 1;
                self.0.store.take(&entry.node, entry.scrape, taken.unwrap_or(time));
            }
        }
        Ok(if page.more { PageProgress::More } else { PageProgress::Complete })
    }

    /// Page for the HTTP handler.
    fn page(&self, since: u64, of: u64) -> Vec<u8> {
        self.state().journal.page(since, of, Instant::now())
    }

    /// Once per period: forgets removed nodes and marks nodes without a recent scrape as failed.
    fn prune(&self, time: Timestamp) {
        let (now, period) = (Instant::now(), self.0.settings.resolution);
        let nodes = self.0.inventory.nodes();
        let names: HashSet<&str> = nodes.iter().map(|node| &*node.name).collect();
        let mut state = self.state();
        state.journal.prune(now, period * 4);
        let removed = if self.0.inventory.is_complete() {
            state.newest.retain(|node| names.contains(node))
        } else {
            Vec::new()
        };
        let is_late = |node: &&Arc<Node>| {
            let taken = state.newest.accepted(&node.name);
            taken.is_some_and(|taken| now.saturating_duration_since(taken) > period * 3 / 2)
        };
        let late: Vec<&Arc<Node>> = nodes.iter().filter(is_late).collect();
        drop(state);
        for node in removed {
            self.0.store.forget_node(&node);
        }
        for node in late {
            self.0.store.scrape_failed(&node.name, time);
        }
    }

    fn state(&self) -> MutexGuard<'_, ShardingState> {
        self.0.state.locked()
    }
}

impl ScrapeSink for Sharding {
    fn take(&self, node: &str, scrape: Scrape, now: Timestamp) {
        Sharding::take(self, node, scrape, now);
    }

    fn scrape_failed(&self, node: &str, now: Timestamp) {
        self.0.store.scrape_failed(node, now);
    }

    fn forget_node(&self, node: &str) {
        self.0.store.forget_node(node);
    }

    /// Strict mode has no sharding, as in metrics-server.
    fn replace_all(&self, tick: Vec<(Arc<str>, Scrape)>) {
        self.0.store.replace_all(tick);
    }
}
