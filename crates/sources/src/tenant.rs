//! The namespace that work is done for, and its parts of what all namespaces share: one of them cannot hold all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use futures::future::Either;
use locks::MutexExt as _;

tokio::task_local! {
    static NAMESPACE: Arc<str>;
}

/// Runs work for an object of a namespace.
pub fn in_namespace<F: Future>(namespace: impl Into<Arc<str>>, work: F) -> impl Future<Output = F::Output> {
    NAMESPACE.scope(namespace.into(), work)
}

/// The namespace that the current task works for; none outside of [`in_namespace`].
pub fn namespace() -> Option<Arc<str>> {
    NAMESPACE.try_with(Arc::clone).ok()
}

/// Runs work for the current namespace on any thread.
pub fn in_current_namespace<F: Future>(work: F) -> impl Future<Output = F::Output> {
    match namespace() {
        Some(namespace) => Either::Left(NAMESPACE.scope(namespace, work)),
        None => Either::Right(work),
    }
}

/// The parts of all namespaces. Each exists as long as it is used.
pub struct NamespaceParts<T> {
    new_part: fn() -> T,
    by_namespace: Mutex<BTreeMap<Arc<str>, Weak<T>>>,
}

impl<T> NamespaceParts<T> {
    /// No parts yet; each is made by this function.
    pub const fn new(new_part: fn() -> T) -> Self {
        Self { new_part, by_namespace: Mutex::new(BTreeMap::new()) }
    }

    /// The part of the current namespace, if there is one. Whoever uses something of the part must hold it meanwhile.
    pub fn current(&self) -> Option<Arc<T>> {
        let namespace = namespace()?;
        let mut parts = self.by_namespace.locked();
        if let Some(part) = parts.get(&namespace).and_then(Weak::upgrade) {
            return Some(part);
        }
        parts.retain(|_, part| part.strong_count() > 0);
        let part = Arc::new((self.new_part)());
        parts.insert(namespace, Arc::downgrade(&part));
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn parts_are_those_of_a_namespace_while_they_are_used() {
        let parts = NamespaceParts::new(|| 0);
        assert!(parts.current().is_none() && namespace().is_none());
        let part = async |namespace: &str| in_namespace(namespace, async { parts.current().unwrap() }).await;
        let (first, other) = (part("shop").await, part("other").await);
        assert!(Arc::ptr_eq(&first, &part("shop").await));
        assert!(!Arc::ptr_eq(&first, &other));
        drop((first, other));
        part("third").await;
        assert_eq!(parts.by_namespace.locked().len(), 1);
    }

    #[tokio::test]
    async fn work_keeps_its_namespace_on_other_tasks() {
        let spawned = in_namespace("shop", async {
            tokio::spawn(in_current_namespace(async { namespace() })).await.unwrap()
        });
        assert_eq!(spawned.await.as_deref(), Some("shop"));
        assert_eq!(in_current_namespace(async { namespace() }).await, None);
    }
}
