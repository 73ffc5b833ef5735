//! Housekeeping: garbage collection, namespaces, custom resource definitions and APIServices. (Deployments and other
//! workloads are in `workloads`.)

pub(crate) mod definitions;
mod garbage;
pub(crate) mod namespaces;
mod services;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::MissedTickBehavior;

use crate::access::User;
use crate::catalog::ServedResource;
use crate::cluster::{ChangeNotice, Cluster};
use crate::fields;
use crate::object;
use crate::request::Query;
use crate::store::{ObjectKey, ResourceId, StoredObject, WriteError};
use crate::verbs::update::is_released;
use crate::verbs::{ApiCall, delete};

/// How often the availability of aggregated APIs is checked.
const API_SERVICE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Runs until the cluster is dropped.
pub(crate) async fn run(cluster: Cluster, mut heard: UnboundedReceiver<ChangeNotice>) {
    let mut checks = tokio::time::interval(API_SERVICE_CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            notice = heard.recv() => match notice {
                Some((served, change)) => {
                    garbage::reconcile(&cluster, &served, &change);
                    namespaces::reconcile(&cluster, &served, &change);
                    definitions::reconcile(&cluster, &served, &change);
                    services::changed(&cluster, &served, &change);
                }
                None => return,
            },
            _ = checks.tick() => services::check(&cluster),
        }
    }
}

/// The field manager of a change that the server makes itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InternalWriter {
    manager: &'static str,
    subresource: Option<&'static str>,
}

impl InternalWriter {
    pub(crate) const CONTROLLER: Self = Self { manager: "kube-controller-manager", subresource: None };
    pub(crate) const SERVER: Self = Self { manager: "kube-apiserver", subresource: Some("status") };
}

impl Cluster {
    /// A request of the server itself.
    pub(crate) fn own_call(&self, served: &Arc<ServedResource>, key: &ObjectKey) -> ApiCall {
        ApiCall {
            cluster: self.clone(),
            served: Arc::clone(served),
            version: served.versions.first().cloned().unwrap_or_default(),
            namespace: served.namespaced.then(|| key.namespace.clone()),
            name: Some(key.name.clone()),
            subresource: None,
            query: Query::default(),
            user: User::system(),
            manager: "kube-controller-manager".to_owned(),
            now: self.0.clock.now(),
            by_server: false,
            warnings: Mutex::default(),
        }
    }

    /// Changes an object, and removes it if nothing holds it any more; `change` returns whether it changed.
    pub(crate) fn edit(
        &self,
        served: &Arc<ServedResource>,
        key: &ObjectKey,
        by: InternalWriter,
        change: impl Fn(&mut Value) -> bool,
    ) {
        let mut call = self.own_call(served, key);
        by.manager.clone_into(&mut call.manager);
        call.subresource = by.subresource.map(str::to_owned);
        loop {
            let Some(stored) = self.get(served, key) else { return };
            let mut old = object::unpack(&stored);
            let mut new = old.clone();
            if !change(&mut new) {
                return;
            }
            let done = if is_released(&new) {
                self.remove(served, key, stored.revision, &mut old)
            } else {
                if let Some(schema) = served.schema(&call.version) {
                    call.writing(|who| fields::record_update(&schema, Some(&old), &mut new, who));
                }
                self.put(served, key.clone(), stored.revision, &mut new)
            };
            if done != Err(WriteError::Stale) {
                return;
            }
        }
    }

    /// Deletes an object, in the background or in the foreground.
    pub(crate) fn discard(
        &self,
        served: &Arc<ServedResource>,
        key: &ObjectKey,
        options: &delete::DeleteOptions,
    ) {
        // The object may already be gone.
        let _ = delete::begin(&self.own_call(served, key), key, options);
    }

    /// A resource by its id.
    pub(crate) fn served(&self, id: ResourceId) -> Option<Arc<ServedResource>> {
        self.catalog().all().find(|served| served.id == id).cloned()
    }

    /// The objects of a resource in one namespace or in all.
    pub(crate) fn objects(
        &self,
        served: &ServedResource,
        namespace: Option<&str>,
    ) -> Vec<(ObjectKey, Arc<StoredObject>)> {
        let store = self.store();
        store
            .list(served.id, namespace, None)
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect()
    }
}

/// Removes matching entries from a list of an object; returns whether there were any.
pub(crate) fn take_off(value: &mut Value, pointer: &str, is: impl Fn(&Value) -> bool) -> bool {
    let Some(list) = value.pointer_mut(pointer).and_then(Value::as_array_mut) else { return false };
    let before = list.len();
    list.retain(|entry| !is(entry));
    let changed = list.len() != before;
    let empty = list.is_empty();
    if let Some((parent, field)) = pointer.rsplit_once('/')
        && empty
        && let Some(map) = value.pointer_mut(parent).and_then(Value::as_object_mut)
    {
        map.shift_remove(field);
    }
    changed
}
