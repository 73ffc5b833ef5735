//! What a cluster does by itself: it removes what has lost its owner, empties namespaces, establishes definitions and
//! looks after aggregated APIs. (Deployments and the like are in `workloads`.)

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
use crate::catalog::Served;
use crate::cluster::{Cluster, Notice};
use crate::fields;
use crate::object;
use crate::request::Query;
use crate::store::{Key, Object, Refusal, Resource};
use crate::verbs::update::is_released;
use crate::verbs::{Call, delete};

/// How often aggregated APIs are looked at.
const CHECK: Duration = Duration::from_secs(5);

/// Runs until the cluster is gone.
pub(crate) async fn run(cluster: Cluster, mut heard: UnboundedReceiver<Notice>) {
    let mut checks = tokio::time::interval(CHECK);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            notice = heard.recv() => match notice {
                Some((served, change)) => {
                    garbage::tidy(&cluster, &served, &change);
                    namespaces::tidy(&cluster, &served, &change);
                    definitions::tidy(&cluster, &served, &change);
                    services::changed(&cluster, &served, &change);
                }
                None => return,
            },
            _ = checks.tick() => services::check(&cluster),
        }
    }
}

/// On whose behalf the cluster changes an object, as managed fields show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Editor {
    manager: &'static str,
    subresource: Option<&'static str>,
}

impl Editor {
    pub(crate) const CONTROLLER: Self = Self { manager: "kube-controller-manager", subresource: None };
    pub(crate) const SERVER: Self = Self { manager: "kube-apiserver", subresource: Some("status") };
}

impl Cluster {
    /// A request of the cluster itself.
    pub(crate) fn own_call(&self, served: &Arc<Served>, key: &Key) -> Call {
        Call {
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

    /// Changes an object in place, and removes it if nothing holds it any more; `change` says whether it changed.
    pub(crate) fn edit(
        &self,
        served: &Arc<Served>,
        key: &Key,
        by: Editor,
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
            if done != Err(Refusal::Stale) {
                return;
            }
        }
    }

    /// Deletes an object, in the background or waiting for what it owns.
    pub(crate) fn discard(&self, served: &Arc<Served>, key: &Key, options: &delete::Options) {
        // An object that is already gone is what was wanted.
        let _ = delete::begin(&self.own_call(served, key), key, options);
    }

    /// A resource by its number.
    pub(crate) fn served(&self, id: Resource) -> Option<Arc<Served>> {
        self.catalog().all().find(|served| served.id == id).cloned()
    }

    /// The objects of a resource, in a namespace or in all of them.
    pub(crate) fn objects(&self, served: &Served, namespace: Option<&str>) -> Vec<(Key, Arc<Object>)> {
        let store = self.store();
        store
            .list(served.id, namespace, None)
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect()
    }
}

/// Takes an entry off a list of an object; whether it was there.
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
