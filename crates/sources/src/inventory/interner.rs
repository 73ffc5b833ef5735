//! Interner: equal values are stored once.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// A set of interned values. Values without other references are dropped at amortized constant cost per insertion.
#[derive(Debug)]
pub(crate) struct Interner<T: ?Sized> {
    values: HashSet<Arc<T>>,
    /// Size at which unused values are dropped.
    sweep_at: usize,
}

/// Unused values are not dropped below this size.
const MIN_VALUES_BEFORE_SWEEP: usize = 1024;

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), sweep_at: MIN_VALUES_BEFORE_SWEEP }
    }
}

impl<T: Hash + Eq + ?Sized> Interner<T> {
    /// The interned value that equals `value`.
    pub(crate) fn find<Q>(&self, value: &Q) -> Option<Arc<T>>
    where
        Q: Hash + Eq + ?Sized,
        Arc<T>: Borrow<Q>,
    {
        self.values.get(value).cloned()
    }

    /// Interns a value. No equal value may be interned already.
    pub(crate) fn add(&mut self, value: Arc<T>) -> Arc<T> {
        if self.values.len() >= self.sweep_at {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.values.shrink_to(self.values.len().saturating_mul(2));
            self.sweep_at = self.values.len().saturating_mul(2).max(MIN_VALUES_BEFORE_SWEEP);
        }
        self.values.insert(Arc::clone(&value));
        value
    }

    /// Number of values, used or not.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

impl Interner<str> {
    /// Interns a text.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        self.find(text).unwrap_or_else(|| self.add(text.into()))
    }
}
