//! The namespace that work is done for, and its parts of what all namespaces share: one of them cannot hold all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use locks::MutexExt as _;

tokio::task_local! {
    static NAMESPACE: Option<Arc<str>>;
}

/// Runs work for an object of a namespace.
pub fn in_namespace<F: Future>(namespace: impl Into<Arc<str>>, work: F) -> impl Future<Output = F::Output> {
    NAMESPACE.scope(Some(namespace.into()), work)
}

/// Runs work that is done for no namespace, also within work for one.
pub fn in_no_namespace<F: Future>(work: F) -> impl Future<Output = F::Output> {
    NAMESPACE.scope(None, work)
}

/// The namespace that the current task works for; none outside of [`in_namespace`].
pub fn namespace() -> Option<Arc<str>> {
    NAMESPACE.try_with(Option::clone).ok().flatten()
}

/// Runs work for the current namespace on any thread.
pub fn in_current_namespace<F: Future>(work: F) -> impl Future<Output = F::Output> {
    NAMESPACE.scope(namespace(), work)
}

/// Number of parts of namespaces below which none is removed.
const MIN_SWEPT_PARTS: usize = 64;

/// The parts of all namespaces. Each exists at least as long as it is used.
pub struct NamespaceParts<T> {
    new_part: fn() -> T,
    table: Mutex<PartTable<T>>,
}

struct PartTable<T> {
    by_namespace: BTreeMap<Arc<str>, Arc<T>>,
    /// Unused parts are removed when there are so many.
    sweep_at: usize,
}

impl<T> NamespaceParts<T> {
    /// No parts yet; each is made by this function.
    pub const fn new(new_part: fn() -> T) -> Self {
        let table = PartTable { by_namespace: BTreeMap::new(), sweep_at: MIN_SWEPT_PARTS };
        Self { new_part, table: Mutex::new(table) }
    }

    /// The part of the current namespace, if there is one. Whoever uses something of the part must hold it meanwhile.
    pub fn current(&self) -> Option<Arc<T>> {
        namespace().map(|namespace| self.of(&namespace))
    }

    /// The part of a namespace, like [`NamespaceParts::current`].
    pub fn of(&self, namespace: &Arc<str>) -> Arc<T> {
        self.part_and_count(namespace).0
    }

    /// The part of the current namespace, like [`NamespaceParts::of_several`].
    pub fn current_of_several(&self) -> Option<Arc<T>> {
        self.of_several(&namespace()?)
    }

    /// The part of a namespace; none while there is no other namespace, so that an only one may have all. For what is held for
    /// seconds at most: a second namespace may wait so long, once.
    pub fn of_several(&self, namespace: &Arc<str>) -> Option<Arc<T>> {
        let (part, count) = self.part_and_count(namespace);
        (count > 1).then_some(part)
    }

    /// The part of a namespace, and how many namespaces have parts.
    fn part_and_count(&self, namespace: &Arc<str>) -> (Arc<T>, usize) {
        let mut table = self.table.locked();
        if let Some(part) = table.by_namespace.get(namespace) {
            return (Arc::clone(part), table.by_namespace.len());
        }
        if table.by_namespace.len() >= table.sweep_at {
            // A part that only the table holds is unused, and like a new one.
            table.by_namespace.retain(|_, part| Arc::strong_count(part) > 1);
            table.sweep_at = (2 * table.by_namespace.len()).max(MIN_SWEPT_PARTS);
        }
        let part = Arc::new((self.new_part)());
        table.by_namespace.insert(Arc::clone(namespace), Arc::clone(&part));
        (part, table.by_namespace.len())
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
        drop(other);
        for number in 0..10 * MIN_SWEPT_PARTS {
            part(&format!("ns{number}")).await;
        }
        let kept = parts.table.locked().by_namespace.len();
        assert!(kept <= MIN_SWEPT_PARTS, "{kept}");
        assert!(Arc::ptr_eq(&first, &part("shop").await), "it is still used");
    }

    #[test]
    fn only_namespace_has_no_part() {
        let parts = NamespaceParts::new(|| 0);
        let (only, other) = (Arc::<str>::from("only"), Arc::<str>::from("other"));
        assert!(parts.of_several(&only).is_none() && parts.of_several(&only).is_none());
        assert!(parts.of_several(&other).is_some() && parts.of_several(&only).is_some());
    }

    #[tokio::test]
    async fn work_keeps_its_namespace_on_other_tasks() {
        let spawned = in_namespace("shop", async {
            tokio::spawn(in_current_namespace(async { namespace() })).await.unwrap()
        });
        assert_eq!(spawned.await.as_deref(), Some("shop"));
        assert_eq!(in_current_namespace(async { namespace() }).await, None);
        assert_eq!(in_namespace("shop", in_no_namespace(async { namespace() })).await, None);
    }
}
