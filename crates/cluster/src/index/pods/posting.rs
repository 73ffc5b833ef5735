//! Short lists of ids, and references into them.

use crate::index::pool::{Id, NONE};

/// A list that usually has one entry: a label of one label set, an audience of one autoscaler.
#[derive(Debug)]
pub(super) enum Ids {
    /// One entry, or [`NONE`].
    One(Id),
    /// Several entries, now or earlier.
    Many(Vec<Id>),
}

/// The posting lists of a label or a namespace.
#[derive(Debug, Default)]
pub(super) struct Posting {
    /// Label sets that have it.
    pub(super) sets: Ids,
    /// Autoscalers whose selector requires it.
    pub(super) selectors: Ids,
}

/// A reference to a list and the position in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) to: Id,
    pub(super) at: u32,
}

impl Default for Ids {
    fn default() -> Self {
        Self::One(NONE)
    }
}

impl Ids {
    pub(super) fn all(&self) -> &[Id] {
        match self {
            Self::One(NONE) => &[],
            Self::One(id) => std::slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }

    /// Adds an entry; returns its position for [`Ids::remove_at`].
    pub(super) fn insert(&mut self, id: Id) -> u32 {
        match self {
            Self::One(NONE) => *self = Self::One(id),
            Self::One(first) => *self = Self::Many(vec![*first, id]),
            Self::Many(ids) => ids.push(id),
        }
        (self.all().len() - 1) as u32
    }

    /// Removes an entry. The last entry takes its position and is returned, because its link must be updated.
    pub(super) fn remove_at(&mut self, at: u32) -> Option<Id> {
        let at = at as usize;
        match self {
            Self::One(id) if at == 0 => *id = NONE,
            Self::Many(ids) if at < ids.len() => _ = ids.swap_remove(at),
            _ => {}
        }
        self.all().get(at).copied()
    }

    /// Removes an entry of a list whose entries have no links.
    pub(super) fn remove(&mut self, id: Id) {
        if let Some(at) = self.all().iter().position(|entry| *entry == id) {
            self.remove_at(at as u32);
        }
    }
}

impl Posting {
    pub(super) fn is_empty(&self) -> bool {
        self.sets.all().is_empty() && self.selectors.all().is_empty()
    }
}

impl Link {
    pub(super) const NOWHERE: Self = Self { to: NONE, at: 0 };
}
