//! Values that many share: each is kept once.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// A set of shared values. What nobody else holds any more is dropped now and then, at no more than constant cost for
/// each value that came.
#[derive(Debug)]
pub(crate) struct Pool<T: ?Sized> {
    values: HashSet<Arc<T>>,
    /// How many there may be before the unused ones are looked for.
    sweep_at: usize,
}

/// Below this many values it is not worth while to look for unused ones.
const FEW: usize = 1024;

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), sweep_at: FEW }
    }
}

impl<T: Hash + Eq + ?Sized> Pool<T> {
    /// The shared value that equals this one, if there is one already.
    pub(crate) fn find<Q>(&self, value: &Q) -> Option<Arc<T>>
    where
        Q: Hash + Eq + ?Sized,
        Arc<T>: Borrow<Q>,
    {
        self.values.get(value).cloned()
    }

    /// Shares this value from now on. There must not be an equal one.
    pub(crate) fn add(&mut self, value: Arc<T>) -> Arc<T> {
        if self.values.len() >= self.sweep_at {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.values.shrink_to(self.values.len().saturating_mul(2));
            self.sweep_at = self.values.len().saturating_mul(2).max(FEW);
        }
        self.values.insert(Arc::clone(&value));
        value
    }

    /// How many values there are, used or not.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

impl Pool<str> {
    /// This text, shared.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        self.find(text).unwrap_or_else(|| self.add(text.into()))
    }
}
