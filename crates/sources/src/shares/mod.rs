//! Which replica scrapes which node, and what replicas tell each other.
//!
//! ```text
//! rendezvous  to whom a node belongs
//! members     who lives, and whose a node is at this moment
//! newest      of what several say, the newest counts
//! journal     what we scraped, ready to be told
//! code        how it travels
//! peer        another replica, asked
//! route       what answers the others
//! ```
//!
//! Each replica scrapes its own nodes and gets the samples of the others from them, so each answers for all. A replica that
//! is not heard of for two thirds of a period loses its nodes to the next in line until it is back. At first, and while its
//! owner tells nothing about a node, the next in line scrapes it too: then two do it, never nobody.

mod code;
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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

pub use members::Replica;

use crate::http::Endpoint;
use crate::inventory::{Inventory, Node};
use crate::kubelet::Scrape;
use crate::kubelet::scraper::{Scraper, Sink};
use crate::store::Store;
use code::Page;
use journal::Journal;
use members::Members;
use newest::Newest;
use peer::{Peer, Silence};

/// Where replicas are asked what they scraped.
pub const PATH: &str = "/plimsoll/samples";

/// Pages that are fetched from one replica without a pause.
const PAGES: usize = 64;

/// What the division is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What this replica calls itself: the name of its pod.
    pub id: String,
    /// Time between two scrapes of a node.
    pub resolution: Duration,
    /// How the other replicas are asked: whom we trust, the name in their certificates, our token. Its URL is not used.
    pub endpoint: Endpoint,
}

/// The division of nodes between replicas. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Shares(Arc<Inner>);

struct Inner {
    settings: Settings,
    inventory: Inventory,
    store: Store,
    state: Mutex<State>,
    peers: Mutex<Arc<Vec<Arc<Peer>>>>,
    changed: Notify,
}

struct State {
    members: Members,
    newest: Newest,
    journal: Journal,
    received: u64,
}

/// How a replica fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaReport {
    /// Which.
    pub id: String,
    /// Where; empty for ourselves.
    pub address: String,
    /// Whether it is heard of.
    pub alive: bool,
    /// For how long it is, or is not.
    pub lasting: Duration,
    /// Nodes that it scrapes.
    pub nodes: u64,
    /// What is wrong with it, and what to do about it.
    pub problem: Option<(String, String)>,
}

impl fmt::Debug for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shares").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl Shares {
    /// Alone at first: all nodes are ours until [`set`](Self::set) tells of others.
    pub fn new(settings: Settings, inventory: Inventory, store: Store) -> Self {
        let incarnation = RandomState::new().hash_one(&settings.id);
        let state = State {
            members: Members::new(settings.id.clone(), settings.resolution * 2 / 3),
            newest: Newest::default(),
            journal: Journal::new(incarnation),
            received: 0,
        };
        Self(Arc::new(Inner {
            settings,
            inventory,
            store,
            state: Mutex::new(state),
            peers: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// The replicas are these now; whether we are among them does not matter.
    pub fn set(&self, replicas: Vec<Replica>) {
        let mut state = self.state();
        state.members.set(replicas, Instant::now());
        let wanted: Vec<Replica> = state.members.others().iter().map(|other| other.replica.clone()).collect();
        if wanted.is_empty() {
            state.journal.clear();
        }
        drop(state);
        let mut peers = locked(&self.0.peers);
        let known = |replica: Replica| match peers.iter().find(|peer| peer.replica == replica) {
            Some(peer) => Arc::clone(peer),
            None => Arc::new(Peer::new(replica, &self.0.settings.endpoint, self.pause())),
        };
        *peers = Arc::new(wanted.into_iter().map(known).collect());
        drop(peers);
        self.0.changed.notify_one();
    }

    /// Whether we scrape this node.
    pub fn is_ours(&self, node: &str) -> bool {
        let (state, now) = (self.state(), Instant::now());
        match state.members.rank(node, now) {
            0 => true,
            1 => !state.newest.is_told(node, now, self.0.settings.resolution * 2),
            _ => false,
        }
    }

    /// Lets a scraper ask only those nodes that pass and are ours, and tell us what they say.
    pub fn divide(
        &self,
        scraper: Scraper,
        filter: impl Fn(&Node) -> bool + Send + Sync + 'static,
    ) -> Scraper {
        let shares = self.clone();
        let both = move |node: &Node| filter(node) && shares.is_ours(&node.name);
        scraper.only(Arc::new(both)).into_sink(Arc::new(self.clone()))
    }

    /// We scraped a node.
    pub fn take(&self, node: &str, scrape: Scrape, time: Timestamp) {
        let now = Instant::now();
        let mut state = self.state();
        if !state.members.others().is_empty() {
            state.journal.record(node, &scrape, now);
        }
        if state.newest.admit(node, &scrape, true, now, self.0.settings.resolution * 2) {
            // Under the lock: what was admitted first must be stored first.
            self.0.store.take(node, scrape, time);
        }
    }

    /// Asks the others what they scraped, again and again; never ends.
    pub async fn run(&self) {
        let tidying = async {
            loop {
                tokio::time::sleep(self.0.settings.resolution).await;
                self.tidy(Timestamp::now());
            }
        };
        let asking = async {
            loop {
                let peers = Arc::clone(&locked(&self.0.peers));
                let all = join_all(peers.iter().map(|peer| self.keep_asking(peer)));
                tokio::select! {
                    () = self.0.changed.notified() => {}
                    // Without others this ends at once.
                    () = async { all.await; std::future::pending().await } => {}
                }
            }
        };
        tokio::join!(tidying, asking);
    }

    /// How all replicas fare, ourselves first.
    pub fn report(&self) -> Vec<ReplicaReport> {
        let (now, nodes) = (Instant::now(), self.0.inventory.nodes());
        let state = self.state();
        let count =
            |id: &str| nodes.iter().filter(|node| state.members.owner(&node.name, now) == id).count() as u64;
        let own = ReplicaReport {
            id: state.members.own().to_owned(),
            address: String::new(),
            alive: true,
            lasting: Duration::ZERO,
            nodes: count(state.members.own()),
            problem: None,
        };
        let others = state.members.others().iter().map(|other| {
            let alive = state.members.lives(other, now);
            let problem = other.problem.as_ref().map(|(cause, remedy)| (cause.clone(), (*remedy).to_owned()));
            let since = if alive { other.since } else { other.heard.unwrap_or(other.since) };
            ReplicaReport {
                id: other.replica.id.clone(),
                address: other.replica.address.clone(),
                alive,
                lasting: now.saturating_duration_since(since),
                nodes: count(&other.replica.id),
                problem,
            }
        });
        std::iter::once(own).chain(others).collect()
    }

    /// How many scrapes of others were taken.
    pub fn received(&self) -> u64 {
        self.state().received
    }

    /// Time between two questions to a replica, and how long it may take to answer.
    fn pause(&self) -> Duration {
        self.0.settings.resolution / 5
    }

    async fn keep_asking(&self, peer: &Peer) {
        loop {
            self.ask(peer).await;
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// Asks a replica for all that is new.
    async fn ask(&self, peer: &Peer) {
        for _ in 0..PAGES {
            let result = peer.ask().await.and_then(|page| self.hear(peer, page, Timestamp::now()));
            match result {
                Ok(true) => {}
                Ok(false) => return,
                Err(Silence { cause, remedy }) => {
                    tracing::debug!(replica = %peer.replica.id, %cause, "replica tells nothing");
                    self.state().members.failed(&peer.replica.id, cause, remedy);
                    return;
                }
            }
        }
    }

    /// Takes what a replica told; whether it has more to tell.
    fn hear(&self, peer: &Peer, page: Page, time: Timestamp) -> Result<bool, Silence> {
        let (now, period) = (Instant::now(), self.0.settings.resolution);
        if page.incarnation == self.state().journal.incarnation() {
            let remedy = "check the addresses of the replicas: they must be those of pods";
            return Err(Silence { cause: "its address leads to ourselves".into(), remedy });
        }
        peer.known(&page);
        self.state().members.heard(&peer.replica.id, now);
        for entry in page.entries {
            let age = Duration::from_millis(entry.age);
            // What is not known here is not kept, and what is old is told again by whoever scrapes the node now.
            if age > period * 4 || self.0.inventory.node(&entry.node).is_none() {
                continue;
            }
            let taken = SignedDuration::try_from(age).ok().and_then(|age| time.checked_sub(age).ok());
            let mut state = self.state();
            if age <= period * 2 {
                state.newest.tell(&entry.node, now);
            }
            if state.newest.admit(&entry.node, &entry.scrape, false, now, period * 2) {
                state.received += 1;
                self.0.store.take(&entry.node, entry.scrape, taken.unwrap_or(time));
            }
        }
        Ok(page.more)
    }

    /// What the route answers.
    fn page(&self, since: u64, of: u64) -> Vec<u8> {
        self.state().journal.page(since, of, Instant::now())
    }

    /// Once per period: forgets what is gone, and lets the store know of whom nothing was told.
    fn tidy(&self, time: Timestamp) {
        let (now, period) = (Instant::now(), self.0.settings.resolution);
        let nodes = self.0.inventory.nodes();
        let names: HashSet<&str> = nodes.iter().map(|node| &*node.name).collect();
        let mut state = self.state();
        state.journal.prune(now, period * 4);
        let gone = if self.0.inventory.is_complete() {
            state.newest.retain(|node| names.contains(node))
        } else {
            Vec::new()
        };
        let is_late = |node: &&Arc<Node>| {
            let taken = state.newest.taken(&node.name);
            taken.is_some_and(|taken| now.saturating_duration_since(taken) > period * 3 / 2)
        };
        let late: Vec<&Arc<Node>> = nodes.iter().filter(is_late).collect();
        drop(state);
        for node in gone {
            self.0.store.forget(&node);
        }
        for node in late {
            self.0.store.missed(&node.name, time);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.0.state)
    }
}

impl Sink for Shares {
    fn take(&self, node: &str, scrape: Scrape, now: Timestamp) {
        Shares::take(self, node, scrape, now);
    }

    fn missed(&self, node: &str, now: Timestamp) {
        self.0.store.missed(node, now);
    }

    fn forget(&self, node: &str) {
        self.0.store.forget(node);
    }

    /// As metrics-server has it, which divides nothing.
    fn replace(&self, tick: Vec<(Arc<str>, Scrape)>) {
        self.0.store.replace(tick);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
