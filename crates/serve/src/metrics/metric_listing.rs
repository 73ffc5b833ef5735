//! The lists of metrics that can be asked for. They change, and are asked for all the time: each is written once.

use std::sync::{Arc, Mutex, PoisonError};

use crate::app::{ApiResource, ResourceListing};
use crate::discovery::ResourceList;

/// What was known last, and its list.
type Last<T> = Mutex<Option<(Arc<Vec<T>>, Arc<ResourceList>)>>;

/// A list that is written when `known` says something new.
pub(super) fn listing<T: PartialEq + Send + Sync + 'static>(
    group_version: String,
    known: impl Fn() -> Arc<Vec<T>> + Send + Sync + 'static,
    resources: impl Fn(&[T]) -> Vec<ApiResource> + Send + Sync + 'static,
) -> ResourceListing {
    let last: Last<T> = Mutex::default();
    Arc::new(move |_| {
        let now = known();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
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
