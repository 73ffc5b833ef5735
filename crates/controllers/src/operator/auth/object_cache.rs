//! The Secrets and ConfigMaps of one resolution: each is read once, however many parameters come from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use locks::MutexExt as _;

use super::{AuthObjects, Fetch, FetchError};

/// Bytes of the objects of each kind that are kept. Beyond that they are read again.
const MAX_KEPT_BYTES: usize = 8 << 20;

/// Keys and values of an object, or why it was not read.
pub(super) type ReadObject<T> = Result<Arc<BTreeMap<String, T>>, FetchError>;

/// Reads objects of the cluster, and keeps them until the resolution ends.
pub(super) struct ObjectCache<'a> {
    objects: &'a dyn AuthObjects,
    secrets: Mutex<KeptObjects<Vec<u8>>>,
    config_maps: Mutex<KeptObjects<String>>,
}

struct KeptObjects<T> {
    /// By namespace and name.
    by_name: BTreeMap<(String, String), ReadObject<T>>,
    bytes: usize,
}

impl<T> Default for KeptObjects<T> {
    fn default() -> Self {
        Self { by_name: BTreeMap::new(), bytes: 0 }
    }
}

impl<'a> ObjectCache<'a> {
    pub(super) fn new(objects: &'a dyn AuthObjects) -> Self {
        Self { objects, secrets: Mutex::default(), config_maps: Mutex::default() }
    }

    pub(super) async fn secret(&self, namespace: &str, name: &str) -> ReadObject<Vec<u8>> {
        read_once(&self.secrets, namespace, name, || self.objects.secret(namespace, name)).await
    }

    pub(super) async fn config_map(&self, namespace: &str, name: &str) -> ReadObject<String> {
        read_once(&self.config_maps, namespace, name, || self.objects.config_map(namespace, name)).await
    }
}

async fn read_once<'f, T: AsRef<[u8]>>(
    kept: &Mutex<KeptObjects<T>>,
    namespace: &str,
    name: &str,
    fetch: impl FnOnce() -> Fetch<'f, BTreeMap<String, T>>,
) -> ReadObject<T> {
    let key = (namespace.to_owned(), name.to_owned());
    let known = kept.locked().by_name.get(&key).cloned();
    if let Some(known) = known {
        return known;
    }
    let object = fetch().await.map(Arc::new);
    kept.locked().insert(key, &object);
    object
}

impl<T: AsRef<[u8]>> KeptObjects<T> {
    fn insert(&mut self, key: (String, String), object: &ReadObject<T>) {
        let entries = object.iter().flat_map(|data| data.iter());
        let bytes: usize = entries.map(|(key, value)| key.len() + value.as_ref().len()).sum();
        if self.bytes + bytes > MAX_KEPT_BYTES {
            self.by_name.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.by_name.insert(key, object.clone());
    }
}
