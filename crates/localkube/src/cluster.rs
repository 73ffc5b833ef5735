//! The state of a cluster: store, catalog and change notifications.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use api::autoscaling::{FeatureGates, KubernetesVersion};
use locks::{MutexExt as _, RwLockExt as _};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::access::Access;
use crate::aggregate::Upstream;
use crate::catalog::{Catalog, ServedResource};
use crate::clock::Clock;
use crate::custom::Definition;
use crate::object;
use crate::release::ApiServerBehavior;
use crate::store::{ChangeRecord, ObjectKey, ResourceId, Revision, Store, StoredObject, WriteError};

/// How a cluster is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many changes of each resource the store keeps for watches.
    pub watch_history: usize,
    /// The clock; `None` is the system's.
    pub clock: Option<Clock>,
    /// Whether the controllers of deployments, replica sets, stateful sets and jobs run.
    pub workloads: bool,
    /// The release of Kubernetes whose API is served.
    pub kubernetes: KubernetesVersion,
}

impl Default for Options {
    fn default() -> Self {
        Self { watch_history: 10_000, clock: None, workloads: true, kubernetes: KubernetesVersion::default() }
    }
}

/// The aggregated APIs, by group and version.
type Upstreams = BTreeMap<(String, String), Arc<Upstream>>;

/// A change, as housekeeping receives it.
pub(crate) type ChangeNotice = (Arc<ServedResource>, Arc<ChangeRecord>);

/// A handle to a cluster; clones share it.
#[derive(Clone)]
pub struct Cluster(pub(crate) Arc<ClusterState>);

pub(crate) struct ClusterState {
    pub(crate) store: Mutex<Store>,
    catalog: RwLock<Arc<Catalog>>,
    changed: watch::Sender<Revision>,
    notices: mpsc::UnboundedSender<ChangeNotice>,
    upstreams: RwLock<Arc<Upstreams>>,
    next_resource: AtomicU32,
    kubernetes: RwLock<KubernetesVersion>,
    pub(crate) clock: Clock,
    pub(crate) access: Access,
}

impl Cluster {
    /// Creates an empty cluster; returns the change notices for housekeeping as well.
    pub(crate) fn empty(options: &Options, access: Access) -> (Self, mpsc::UnboundedReceiver<ChangeNotice>) {
        let (notices, notices_received) = mpsc::unbounded_channel();
        let inner = ClusterState {
            store: Mutex::new(Store::new(options.watch_history)),
            catalog: RwLock::new(Arc::new(Catalog::new([]))),
            changed: watch::Sender::new(1),
            notices,
            upstreams: RwLock::default(),
            // Ids of custom resources start far above those of the built-in kinds.
            next_resource: AtomicU32::new(1000),
            kubernetes: RwLock::new(options.kubernetes),
            clock: options.clock.unwrap_or_else(Clock::system),
            access,
        };
        (Self(Arc::new(inner)), notices_received)
    }

    /// The release of Kubernetes whose API is served, with its default feature gates.
    pub(crate) fn gates(&self) -> FeatureGates {
        FeatureGates::of(*self.0.kubernetes.read_locked())
    }

    /// The behaviour of the API server that depends on the served release.
    pub(crate) fn behavior(&self) -> &'static ApiServerBehavior {
        ApiServerBehavior::of(self.gates().kubernetes)
    }

    /// Serves the API of another release from now on. Objects stay as they are stored, as after an upgrade of a real cluster.
    pub fn change_release(&self, kubernetes: KubernetesVersion) {
        *self.0.kubernetes.write_locked() = kubernetes;
    }

    /// All resources that are served.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.catalog.read_locked())
    }

    /// A receiver of new revisions.
    pub(crate) fn revisions(&self) -> watch::Receiver<Revision> {
        self.0.changed.subscribe()
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        // Every method of the store changes it completely or not at all, so a panic leaves it consistent.
        self.0.store.locked()
    }

    pub(crate) fn get(&self, served: &ServedResource, key: &ObjectKey) -> Option<Arc<StoredObject>> {
        self.store().get(served.id, key)
    }

    /// Stores a new object; sets the revision in `value`.
    pub(crate) fn put_new(
        &self,
        served: &Arc<ServedResource>,
        key: ObjectKey,
        value: &mut Value,
    ) -> Result<Arc<StoredObject>, WriteError> {
        let mut store = self.store();
        let made = store.create(served.id, key, |revision| object::pack(served, value, revision))?;
        self.announce(&mut store, served);
        Ok(made)
    }

    /// Stores an object without defaulting or validation, for tests of objects that an older version left behind. It
    /// replaces an existing object; returns false if there is no such resource.
    pub fn store_raw(&self, group: &str, plural: &str, key: &ObjectKey, mut value: Value) -> bool {
        let catalog = self.catalog();
        let Some(served) = catalog.resource(group, plural) else { return false };
        let stored = match self.get(served, key) {
            Some(there) => self.put(served, key.clone(), there.revision, &mut value),
            None => self.put_new(served, key.clone(), &mut value),
        };
        stored.is_ok()
    }

    /// Replaces the object that has the revision `expected`.
    pub(crate) fn put(
        &self,
        served: &Arc<ServedResource>,
        key: ObjectKey,
        expected: Revision,
        value: &mut Value,
    ) -> Result<Arc<StoredObject>, WriteError> {
        let mut store = self.store();
        let made =
            store.update(served.id, key, expected, |revision| object::pack(served, value, revision))?;
        self.announce(&mut store, served);
        Ok(made)
    }

    /// Removes the object that has the revision `expected`; `value` is its last state.
    pub(crate) fn remove(
        &self,
        served: &Arc<ServedResource>,
        key: &ObjectKey,
        expected: Revision,
        value: &mut Value,
    ) -> Result<Arc<StoredObject>, WriteError> {
        let mut store = self.store();
        let gone =
            store.delete(served.id, key, expected, |revision| object::pack(served, value, revision))?;
        self.announce(&mut store, served);
        Ok(gone)
    }

    /// Notifies housekeeping and watches of the last change while the store is locked, so that notifications are in
    /// order. The catalog and the aggregated APIs are updated before the change becomes visible.
    fn announce(&self, store: &mut Store, served: &Arc<ServedResource>) {
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

    /// The aggregated API that serves a version of a group.
    pub(crate) fn upstream(&self, group: &str, version: &str) -> Option<Arc<Upstream>> {
        let all = self.0.upstreams.read_locked();
        if all.is_empty() {
            return None;
        }
        all.get(&(group.to_owned(), version.to_owned())).cloned()
    }

    /// Rebuilds the table of aggregated APIs.
    fn connect(&self, store: &Store) {
        let catalog = self.catalog();
        let Some(services) = catalog.resource("apiregistration.k8s.io", "apiservices") else { return };
        let stored: Vec<Arc<StoredObject>> =
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
        *self.0.upstreams.write_locked() = new;
    }

    /// The address of a port of a service; only `ExternalName` services on this machine have one.
    pub(crate) fn resolve(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr> {
        let catalog = self.catalog();
        let stored = self.get(catalog.resource("", "services")?, &ObjectKey::new(namespace, name))?;
        let service = object::unpack(&stored);
        let host = object::string(&service, &["spec", "externalName"]);
        match host {
            "localhost" => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            other => Some(SocketAddr::new(other.parse().ok()?, port)),
        }
    }

    /// Rebuilds the catalog from the stored definitions.
    fn reload(&self, store: &mut Store) {
        let old = self.catalog();
        let Some(crds) = old.resource("apiextensions.k8s.io", "customresourcedefinitions") else { return };
        let stored: Vec<Arc<StoredObject>> =
            store.list(crds.id, None, None).map(|(_, o)| Arc::clone(o)).collect();
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
        *self.0.catalog.write_locked() = new;
        self.0.changed.send_modify(|_| {});
    }

    fn next_resource(&self, store: &mut Store) -> ResourceId {
        let new = ResourceId(self.0.next_resource.fetch_add(1, Ordering::Relaxed));
        store.begin_resource(new);
        new
    }
}
