//! Resource lists of metrics. They change at run time and are requested often, so each version is encoded once.

use std::sync::{Arc, Mutex};

use locks::MutexExt as _;

use crate::api_group::ResourceList;
use crate::api_group::{ApiResource, ResourceListing};

/// The last known metrics and their encoded list.
type Last<T> = Mutex<Option<(Arc<Vec<T>>, Arc<ResourceList>)>>;

/// A list that is encoded when `known` changes.
pub(super) fn listing<T: PartialEq + Send + Sync + 'static>(
    group_version: String,
    known: impl Fn() -> Arc<Vec<T>> + Send + Sync + 'static,
    resources: impl Fn(&[T]) -> Vec<ApiResource> + Send + Sync + 'static,
) -> ResourceListing {
    let last: Last<T> = Mutex::default();
    Arc::new(move |_| {
        let now = known();
        let mut last = last.locked();
        if let Some((before, list)) = last.as_ref()
            && (Arc::ptr_eq(before, &now) || before == &now)
        {
            return Arc::clone(list);
        }
        let list = Arc::new(ResourceList::new(&group_version, &resources(&now)));
        *last = Some((now, Arc::clone(&list)));
        list
    })
}

/// A metric as a resource.
pub(super) fn metric(name: String, namespaced: bool, kind: &str) -> ApiResource {
    let verbs = vec!["get".to_owned()];
    ApiResource { name, namespaced, kind: kind.to_owned(), verbs, ..ApiResource::default() }
}
