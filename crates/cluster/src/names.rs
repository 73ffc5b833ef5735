//! The names of the objects of a kind, cached for a short time. Concurrent callers share one list request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use locks::MutexExt as _;
use runtime::SingleFlight;
use serde::Deserialize;
use tokio::time::Instant;

use crate::discovery::Resource;
use crate::request::{ApiError, Expected, Request, decode, exchange_as, path, with_query};
use crate::watch::METADATA_LIST;

/// The deadline of one list request.
const LIST_DEADLINE: Duration = Duration::from_secs(10);
/// How many lists are cached at most.
const MAX_CACHED_LISTS: usize = 4096;

/// The key of a list: the URI, and the resource as messages name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ListKey {
    uri: String,
    resource: String,
}

type NamesResult = Result<Arc<Vec<String>>, ApiError>;

/// Lists, and when each was received.
type CachedLists = HashMap<ListKey, (Instant, Arc<Vec<String>>)>;

/// Lists names of objects. Cheap to clone.
#[derive(Clone)]
pub struct NameLister(Arc<NameListerState>);

struct NameListerState {
    client: Client,
    /// How long a cached list is used.
    age: Duration,
    cache: Mutex<CachedLists>,
    flights: SingleFlight<ListKey, NamesResult>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NameList {
    items: Option<Vec<NamedItem>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedItem {
    metadata: NameMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NameMetadata {
    name: String,
}

impl NameLister {
    /// Caches lists for `age`.
    pub fn new(client: Client, age: Duration) -> Self {
        let (cache, flights) = (Mutex::default(), SingleFlight::default());
        Self(Arc::new(NameListerState { client, age, cache, flights }))
    }

    /// The names of all objects that match the label selector `labels`, in the server's order, in a namespace or in all.
    pub async fn list(&self, of: &Resource, namespace: Option<&str>, labels: &str) -> NamesResult {
        let key = ListKey { uri: uri(of, namespace, labels), resource: of.group_resource() };
        if let Some(known) = self.0.known(&key) {
            return Ok(known);
        }
        let inner = Arc::clone(&self.0);
        let list_key = key.clone();
        let fetch = || async move { inner.fetch(list_key).await }.boxed();
        self.0.flights.run_within(&key, Duration::MAX, fetch).await.0
    }
}

impl NameListerState {
    fn cache(&self) -> MutexGuard<'_, CachedLists> {
        self.cache.locked()
    }

    fn known(&self, key: &ListKey) -> Option<Arc<Vec<String>>> {
        let cache = self.cache();
        cache.get(key).filter(|(came, _)| came.elapsed() <= self.age).map(|(_, names)| Arc::clone(names))
    }

    async fn fetch(&self, key: ListKey) -> NamesResult {
        let request = Request::get(&key.uri, &key.resource, LIST_DEADLINE);
        let answer = exchange_as(&self.client, &request, METADATA_LIST).await?;
        let list: NameList = decode(&answer, &Expected::anything())?;
        let items = list.items.unwrap_or_default();
        let names = Arc::new(items.into_iter().map(|item| item.metadata.name).collect::<Vec<_>>());
        let mut cache = self.cache();
        if cache.len() >= MAX_CACHED_LISTS {
            cache.retain(|_, (came, _)| came.elapsed() <= self.age);
        }
        if cache.len() < MAX_CACHED_LISTS {
            cache.insert(key, (Instant::now(), Arc::clone(&names)));
        }
        Ok(names)
    }
}

fn uri(of: &Resource, namespace: Option<&str>, labels: &str) -> String {
    let base: &[&str] = if of.group.is_empty() { &["api"] } else { &["apis", &of.group] };
    let scope = namespace.filter(|_| of.namespaced).map(|namespace| ["namespaces", namespace]);
    let segments = base.iter().copied().chain([of.version.as_str()]);
    let segments = segments.chain(scope.into_iter().flatten()).chain([of.plural.as_str()]);
    with_query(&path(segments), [("labelSelector", labels), ("resourceVersion", "0")])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::request::tests::fake::{Fake, JSON, ReceivedRequest, Reply};

    fn pods() -> Resource {
        Resource {
            group: String::new(),
            version: "v1".into(),
            plural: "pods".into(),
            singular: "pod".into(),
            kind: "Pod".into(),
            namespaced: true,
        }
    }

    #[test]
    fn paths_are_those_of_the_resource() {
        let widgets = Resource { group: "example.com".into(), plural: "widgets".into(), ..pods() };
        for (of, namespace, expected) in [
            (pods(), Some("a"), "/api/v1/namespaces/a/pods?labelSelector=x%3Dy&resourceVersion=0"),
            (pods(), None, "/api/v1/pods?labelSelector=x%3Dy&resourceVersion=0"),
            (
                widgets.clone(),
                Some("a"),
                "/apis/example.com/v1/namespaces/a/widgets?labelSelector=x%3Dy&resourceVersion=0",
            ),
            (
                Resource { namespaced: false, ..widgets },
                Some("a"),
                "/apis/example.com/v1/widgets?labelSelector=x%3Dy&resourceVersion=0",
            ),
        ] {
            assert_eq!(uri(&of, namespace, "x=y"), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_one_list_which_is_cached_for_its_age() {
        let requests = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&requests);
        let client = Fake::new(move |request: &ReceivedRequest| {
            count.fetch_add(1, Ordering::Relaxed);
            assert!(request.headers["accept"].to_str().unwrap().contains("as=PartialObjectMetadataList"));
            Reply::new(
                200,
                JSON,
                r#"{"kind":"PartialObjectMetadataList","items":[{"metadata":{"name":"b"}},{"metadata":{"name":"a"}}]}"#,
            )
        });
        let names = NameLister::new(client.client(), Duration::from_secs(5));
        let of = pods();
        let list = || names.list(&of, Some("shop"), "app=web");
        let (one, two) = futures::join!(list(), list());
        assert_eq!(*one.unwrap(), ["b", "a"]);
        assert_eq!(requests.load(Ordering::Relaxed), 1);
        assert_eq!(two.unwrap().len(), 2);
        list().await.unwrap();
        assert_eq!(requests.load(Ordering::Relaxed), 1);
        tokio::time::advance(Duration::from_secs(6)).await;
        list().await.unwrap();
        assert_eq!(requests.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn an_error_is_returned_and_not_cached() {
        let client = Fake::new(|_: &ReceivedRequest| {
            Reply::new(403, JSON, r#"{"kind":"Status","status":"Failure","message":"no","code":403}"#)
        });
        let names = NameLister::new(client.client(), Duration::from_secs(5));
        let error = names.list(&pods(), None, "").await.unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (Some(403), "no"));
        assert!(names.0.cache().is_empty());
    }
}
