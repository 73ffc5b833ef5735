//! The cluster: what is stored, what is served, and who is told of changes.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::access::Access;
use crate::aggregate::Upstream;
use crate::catalog::{Catalog, Served};
use crate::clock::Clock;
use crate::custom::Definition;
use crate::object;
use crate::store::{Change, Key, Object, Refusal, Resource, Revision, Store};

/// How a cluster is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many changes of each resource are remembered for watches.
    pub memory: usize,
    /// What time it is; none is the system's.
    pub clock: Option<Clock>,
    /// Whether deployments, replica sets, stateful sets and jobs are acted on.
    pub workloads: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { memory: 10_000, clock: None, workloads: true }
    }
}

/// The APIs behind this one, by group and version.
type Upstreams = BTreeMap<(String, String), Arc<Upstream>>;

/// What housekeeping is told of.
pub(crate) type Notice = (Arc<Served>, Arc<Change>);

/// A cluster. Clones are the same one.
#[derive(Clone)]
pub struct Cluster(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Mutex<Store>,
    catalog: RwLock<Arc<Catalog>>,
    changed: watch::Sender<Revision>,
    notices: mpsc::UnboundedSender<Notice>,
    upstreams: RwLock<Arc<Upstreams>>,
    next_resource: AtomicU32,
    pub(crate) clock: Clock,
    pub(crate) access: Access,
}

impl Cluster {
    /// An empty cluster, and the notices its housekeeping needs.
    pub(crate) fn empty(options: &Options, access: Access) -> (Self, mpsc::UnboundedReceiver<Notice>) {
        let (notices, heard) = mpsc::unbounded_channel();
        let inner = Inner {
            store: Mutex::new(Store::new(options.memory)),
            catalog: RwLock::new(Arc::new(Catalog::new([]))),
            changed: watch::Sender::new(1),
            notices,
            upstreams: RwLock::default(),
            // Far behind the numbers of the built-in kinds.
            next_resource: AtomicU32::new(1000),
            clock: options.clock.unwrap_or_else(Clock::system),
            access,
        };
        (Self(Arc::new(inner)), heard)
    }

    /// All that is served.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells of each new revision.
    pub(crate) fn revisions(&self) -> watch::Receiver<Revision> {
        self.0.changed.subscribe()
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        // A store is left whole by whoever panics: each of its methods changes it in one go.
        self.0.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, served: &Served, key: &Key) -> Option<Arc<Object>> {
        self.store().get(served.id, key)
    }

    /// Stores a new object; `value` gets its revision.
    pub(crate) fn put_new(
        &self,
        served: &Arc<Served>,
        key: Key,
        value: &mut Value,
    ) -> Result<Arc<Object>, Refusal> {
        let mut store = self.store();
        let made = store.create(served.id, key, |revision| object::pack(served, value, revision))?;
        self.announce(&mut store, served);
        Ok(made)
    }

    /// Stores an object as it is, past everything that would refuse it: for tests of what an older version may have left
    /// behind. What was there is replaced; false if there is no such resource.
    pub fn store_raw(&self, group: &str, plural: &str, key: &Key, mut value: Value) -> bool {
        let catalog = self.catalog();
        let Some(served) = catalog.resource(group, plural) else { return false };
        let stored = match self.get(served, key) {
            Some(there) => self.put(served, key.clone(), there.revision, &mut value),
            None => self.put_new(served, key.clone(), &mut value),
        };
        stored.is_ok()
    }

    /// Stores a changed object in the place of that with the revision `expected`.
    pub(crate) fn put(
        &self,
        served: &Arc<Served>,
        key: Key,
        expected: Revision,
        value: &mut Value,
    ) -> Result<Arc<Object>, Refusal> {
        let mut store = self.store();
        let made =
            store.update(served.id, key, expected, |revision| object::pack(served, value, revision))?;
        self.announce(&mut store, served);
        Ok(made)
    }

    /// Removes the object with the revision `expected`, whose last form is `value`.
    pub(crate) fn remove(
        &self,
        served: &Arc<Served>,
        key: &Key,
        expected: Revision,
        value: &mut Value,
    ) -> Result<Arc<Object>, Refusal> {
        let mut store = self.store();
        let gone =
            store.delete(served.id, key, expected, |revision| object::pack(served, value, revision))?;
        self.announce(&mut store, served);
        Ok(gone)
    }

    /// Tells housekeeping and watches of the change just made, while the store is still locked: in order. Definitions are
    /// served, and aggregated APIs known, before anybody can see that they are.
    fn announce(&self, store: &mut Store, served: &Arc<Served>) {
        match served.row().map_or("", |row| row.kind) {
            "CustomResourceDefinition" => self.reload(store),
            "APIService" => self.connect(store),
            _ => {}
        }
        let revision = store.revision();
        let last =
            store.changes(served.id, revision.saturating_sub(1)).ok().and_then(|mut c| c.next().cloned());
        if let Some(change) = last {
            let _ = self.0.notices.send((Arc::clone(served), change));
        }
        self.0.changed.send_replace(revision);
    }

    /// The API behind this one that serves a version of a group.
    pub(crate) fn upstream(&self, group: &str, version: &str) -> Option<Arc<Upstream>> {
        let all = self.0.upstreams.read().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return None;
        }
        all.get(&(group.to_owned(), version.to_owned())).cloned()
    }

    /// Makes the list of aggregated APIs anew.
    fn connect(&self, store: &Store) {
        let catalog = self.catalog();
        let Some(services) = catalog.resource("apiregistration.k8s.io", "apiservices") else { return };
        let stored: Vec<Arc<Object>> =
            store.list(services.id, None, None).map(|(_, o)| Arc::clone(o)).collect();
        let upstreams = stored.iter().filter_map(|stored| {
            let value = object::unpack(stored);
            let text = |field: &str| object::string(&value, &["spec", field]).to_owned();
            let cluster = Arc::downgrade(&self.0);
            let upstream =
                Upstream::of(&value, &self.0.access.pki)?.resolved_by(move |namespace, name, port| {
                    Self(cluster.upgrade()?).resolve(namespace, name, port)
                });
            Some(((text("group"), text("version")), Arc::new(upstream)))
        });
        let new = Arc::new(upstreams.collect());
        *self.0.upstreams.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// Where a port of a service is: on this machine, for services that say so.
    pub(crate) fn resolve(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr> {
        let catalog = self.catalog();
        let stored = self.get(catalog.resource("", "services")?, &Key::new(namespace, name))?;
        let service = object::unpack(&stored);
        let host = object::string(&service, &["spec", "externalName"]);
        match host {
            "localhost" => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            other => Some(SocketAddr::new(other.parse().ok()?, port)),
        }
    }

    /// Makes the catalog anew from the definitions that are stored.
    fn reload(&self, store: &mut Store) {
        let old = self.catalog();
        let Some(crds) = old.resource("apiextensions.k8s.io", "customresourcedefinitions") else { return };
        let stored: Vec<Arc<Object>> = store.list(crds.id, None, None).map(|(_, o)| Arc::clone(o)).collect();
        let definitions = stored.iter().filter_map(|object| Definition::read(&object::unpack(object)));
        let numbered = definitions.map(|definition| {
            let before = old.resource(&definition.group, &definition.plural);
            let id = before.map_or_else(|| self.next_resource(store), |served| served.id);
            (id, Arc::new(definition))
        });
        let new = Arc::new(Catalog::new(numbered));
        let gone = old.all().filter(|served| new.resource(&served.group, &served.plural).is_none());
        for served in gone {
            store.drop_resource(served.id);
        }
        *self.0.catalog.write().unwrap_or_else(PoisonError::into_inner) = new;
        self.0.changed.send_modify(|_| {});
    }

    fn next_resource(&self, store: &mut Store) -> Resource {
        let new = Resource(self.0.next_resource.fetch_add(1, Ordering::Relaxed));
        store.begin_resource(new);
        new
    }
}
