//! Merged list of metrics, rebuilt only when one of its parts changed.

use std::collections::BTreeSet;
use std::sync::Arc;

/// One part of the list.
#[derive(Clone, Debug)]
pub(crate) enum MetricList<T> {
    /// Metrics of a local provider, in its order.
    Own(Arc<Vec<T>>),
    /// Metrics of an upstream.
    Other(Arc<Vec<T>>),
}

/// Last merged list, and its parts.
#[derive(Debug)]
pub(crate) struct Merged<T> {
    parts: Vec<MetricList<T>>,
    whole: Arc<Vec<T>>,
}

impl<T> Default for Merged<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), whole: Arc::default() }
    }
}

impl<T> MetricList<T> {
    fn list(&self) -> &Arc<Vec<T>> {
        match self {
            Self::Own(list) | Self::Other(list) => list,
        }
    }
}

impl<T: Clone + Ord> Merged<T> {
    /// Merged list of these parts; each metric at its first position.
    pub(crate) fn of(&mut self, parts: Vec<MetricList<T>>) -> Arc<Vec<T>> {
        let same = parts.len() == self.parts.len()
            && parts.iter().zip(&self.parts).all(|(a, b)| Arc::ptr_eq(a.list(), b.list()));
        if !same || parts.is_empty() {
            self.whole = merged(&parts);
            self.parts = parts;
        }
        Arc::clone(&self.whole)
    }
}

fn merged<T: Clone + Ord>(parts: &[MetricList<T>]) -> Arc<Vec<T>> {
    let mut filled = parts.iter().filter(|part| !part.list().is_empty());
    if let (Some(MetricList::Own(only)), None) = (filled.next(), filled.next()) {
        // A single local list is returned unchanged, duplicates included.
        return Arc::clone(only);
    }
    let mut seen = BTreeSet::new();
    let all = parts.iter().flat_map(|part| part.list().iter());
    Arc::new(all.filter(|one| seen.insert(*one)).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_list_is_deduplicated_and_cached() {
        let mut merged = Merged::default();
        let own = Arc::new(vec!["b", "a"]);
        let only = merged.of(vec![MetricList::Own(Arc::clone(&own)), MetricList::Other(Arc::default())]);
        assert!(Arc::ptr_eq(&only, &own));
        let other = Arc::new(vec!["a", "c"]);
        let parts = || vec![MetricList::Own(Arc::clone(&own)), MetricList::Other(Arc::clone(&other))];
        let both = merged.of(parts());
        assert_eq!(*both, ["b", "a", "c"]);
        assert!(Arc::ptr_eq(&both, &merged.of(parts())));
        assert_eq!(*merged.of(vec![MetricList::Other(other)]), ["a", "c"]);
        assert!(merged.of(vec![]).is_empty());
    }
}
