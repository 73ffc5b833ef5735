//! Lists of metrics as one list, made again only when one of them changed.

use std::collections::BTreeSet;
use std::sync::Arc;

/// One of the lists.
#[derive(Clone, Debug)]
pub(crate) enum Part<T> {
    /// Of a provider of our own; its order stays.
    Own(Arc<Vec<T>>),
    /// Of an upstream.
    Other(Arc<Vec<T>>),
}

/// The last list, and of which parts it was made.
#[derive(Debug)]
pub(crate) struct Merged<T> {
    parts: Vec<Part<T>>,
    whole: Arc<Vec<T>>,
}

impl<T> Default for Merged<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), whole: Arc::default() }
    }
}

impl<T> Part<T> {
    fn list(&self) -> &Arc<Vec<T>> {
        match self {
            Self::Own(list) | Self::Other(list) => list,
        }
    }
}

impl<T: Clone + Ord> Merged<T> {
    /// The list of these parts: each metric once, where it stands first.
    pub(crate) fn of(&mut self, parts: Vec<Part<T>>) -> Arc<Vec<T>> {
        let same = parts.len() == self.parts.len()
            && parts.iter().zip(&self.parts).all(|(a, b)| Arc::ptr_eq(a.list(), b.list()));
        if !same || parts.is_empty() {
            self.whole = merged(&parts);
            self.parts = parts;
        }
        Arc::clone(&self.whole)
    }
}

fn merged<T: Clone + Ord>(parts: &[Part<T>]) -> Arc<Vec<T>> {
    let mut filled = parts.iter().filter(|part| !part.list().is_empty());
    if let (Some(Part::Own(only)), None) = (filled.next(), filled.next()) {
        // As its owner made it, even if he lists something twice.
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
    fn each_metric_is_listed_once_and_the_list_is_kept() {
        let mut merged = Merged::default();
        let own = Arc::new(vec!["b", "a"]);
        let only = merged.of(vec![Part::Own(Arc::clone(&own)), Part::Other(Arc::default())]);
        assert!(Arc::ptr_eq(&only, &own));
        let other = Arc::new(vec!["a", "c"]);
        let parts = || vec![Part::Own(Arc::clone(&own)), Part::Other(Arc::clone(&other))];
        let both = merged.of(parts());
        assert_eq!(*both, ["b", "a", "c"]);
        assert!(Arc::ptr_eq(&both, &merged.of(parts())));
        assert_eq!(*merged.of(vec![Part::Other(other)]), ["a", "c"]);
        assert!(merged.of(vec![]).is_empty());
    }
}
