//! Reads and writes of the server itself.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::update::is_released;
use super::{ApiCall, delete};
use crate::access::User;
use crate::catalog::ServedResource;
use crate::cluster::Cluster;
use crate::fields;
use crate::object;
use crate::request::Query;
use crate::store::{ObjectKey, ResourceId, StoredObject, WriteError};

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
