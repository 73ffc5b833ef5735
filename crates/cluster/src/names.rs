//! Which objects of a kind there are: their names alone, remembered for a moment, asked for once by all who ask together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use runtime::SingleFlight;
use serde::Deserialize;
use tokio::time::Instant;

use crate::discovery::Resource;
use crate::request::{ApiError, Expected, Request, decode, exchange_as, path, with_query};
use crate::watch::METADATA_LIST;

/// How long one list may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// No more lists are remembered at a time.
const MOST: usize = 4096;

/// What is listed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Which {
    uri: String,
    resource: String,
}

type Listed = Result<Arc<Vec<String>>, ApiError>;

/// Lists, and when they came.
type Memory = HashMap<Which, (Instant, Arc<Vec<String>>)>;

/// Lists names of objects. Cheap to clone.
#[derive(Clone)]
pub struct NameLister(Arc<Inner>);

struct Inner {
    client: Client,
    /// How long a list may be used.
    age: Duration,
    memory: Mutex<Memory>,
    flights: SingleFlight<Which, Listed>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List {
    items: Option<Vec<Item>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

impl NameLister {
    /// Lists are used again for `age`.
    pub fn new(client: Client, age: Duration) -> Self {
        let (memory, flights) = (Mutex::default(), SingleFlight::default());
        Self(Arc::new(Inner { client, age, memory, flights }))
    }

    /// The names of all objects with such labels (a selector as text), in the server's order, in a namespace or everywhere.
    pub async fn list(&self, of: &Resource, namespace: Option<&str>, labels: &str) -> Listed {
        let which = Which { uri: uri(of, namespace, labels), resource: of.group_resource() };
        if let Some(known) = self.0.known(&which) {
            return Ok(known);
        }
        let inner = Arc::clone(&self.0);
        let asked = which.clone();
        let ask = || async move { inner.ask(asked).await }.boxed();
        self.0.flights.run_within(&which, Duration::MAX, ask).await.0
    }
}

impl Inner {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, which: &Which) -> Option<Arc<Vec<String>>> {
        let memory = self.memory();
        memory.get(which).filter(|(came, _)| came.elapsed() <= self.age).map(|(_, names)| Arc::clone(names))
    }

    async fn ask(&self, which: Which) -> Listed {
        let request = Request::get(&which.uri, &which.resource, DEADLINE);
        let answer = exchange_as(&self.client, &request, METADATA_LIST).await?;
        let list: List = decode(&answer, &Expected::anything())?;
        let items = list.items.unwrap_or_default();
        let names = Arc::new(items.into_iter().map(|item| item.metadata.name).collect::<Vec<_>>());
        let mut memory = self.memory();
        if memory.len() >= MOST {
            memory.retain(|_, (came, _)| came.elapsed() <= self.age);
        }
        if memory.len() < MOST {
            memory.insert(which, (Instant::now(), Arc::clone(&names)));
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
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::request::tests::fake::{Asked, Fake, JSON, Reply};

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
    async fn many_who_ask_together_ask_once_and_a_list_is_used_again_for_a_while() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let client = Fake::new(move |asked: &Asked| {
            count.fetch_add(1, Ordering::Relaxed);
            assert!(asked.headers["accept"].to_str().unwrap().contains("as=PartialObjectMetadataList"));
            Reply::new(
                200,
                JSON,
                r#"{"kind":"PartialObjectMetadataList","items":[{"metadata":{"name":"b"}},{"metadata":{"name":"a"}}]}"#,
            )
        });
        let names = NameLister::new(client.client(), Duration::from_secs(5));
        let of = pods();
        let ask = || names.list(&of, Some("shop"), "app=web");
        let (one, two) = futures::join!(ask(), ask());
        assert_eq!(*one.unwrap(), ["b", "a"]);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!(two.unwrap().len(), 2);
        ask().await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        tokio::time::advance(Duration::from_secs(6)).await;
        ask().await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_refusal_is_told_and_not_remembered() {
        let client = Fake::new(|_: &Asked| {
            Reply::new(403, JSON, r#"{"kind":"Status","status":"Failure","message":"no","code":403}"#)
        });
        let names = NameLister::new(client.client(), Duration::from_secs(5));
        let error = names.list(&pods(), None, "").await.unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (403, "no"));
        assert!(names.0.memory().is_empty());
    }
}
