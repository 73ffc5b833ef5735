//! Predicts the leaves of a pass from the pass before it.

use std::collections::HashMap;
use std::sync::Arc;

use super::leaf::Leaf;
use super::shape::Shape;

/// How many changed leaves are searched one after the other; later ones are indexed. Most passes change a few.
const MAX_SEARCHED_CHANGES: usize = 64;

/// The last pass, from which the next is predicted.
#[derive(Clone, Debug)]
pub(super) struct LastPass {
    pub(super) shape: Arc<Shape>,
    pub(super) leaves: Vec<Leaf>,
    /// Of each leaf, whether it is a time that moved with the time of the pass.
    moving: Vec<bool>,
    at: i64,
    /// The time since the pass before, in nanoseconds.
    step: i64,
    number: u64,
    number_step: u64,
}

/// The last pass, as if it had the shape of the next.
pub(super) struct Prediction {
    pub(super) leaves: Vec<Leaf>,
    moving: Vec<bool>,
    pub(super) at: i64,
    pub(super) step: i64,
    pub(super) number: u64,
    pub(super) number_step: u64,
    changed: ChangedLeaves,
}

/// What the changed leaves were and became.
#[derive(Default)]
struct ChangedLeaves {
    /// The first ones.
    pairs: Vec<(Leaf, Leaf)>,
    /// The later ones by their old value: searching each leaf among thousands of changes would take too long.
    later: HashMap<Leaf, Leaf>,
    /// A bit for each old value: most leaves are found not to be among them without a search.
    filter: u64,
}

impl ChangedLeaves {
    fn bit(was: Leaf) -> u64 {
        1 << (was.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
    }

    fn add(&mut self, was: Leaf, is: Leaf) {
        self.filter |= Self::bit(was);
        if self.pairs.len() >= MAX_SEARCHED_CHANGES {
            self.later.insert(was, is);
            return;
        }
        if self.pairs.is_empty() {
            self.pairs.reserve(16);
        }
        self.pairs.push((was, is));
    }

    fn may_have(&self, was: Leaf) -> bool {
        self.filter & Self::bit(was) != 0
    }

    /// What the last changed leaf with this value became; none if no leaf with this value has changed.
    fn of(&self, was: Leaf) -> Option<Leaf> {
        if !self.may_have(was) {
            return None;
        }
        let first = || self.pairs.iter().rev().find(|(known, _)| *known == was).map(|(_, is)| *is);
        self.later.get(&was).copied().or_else(first)
    }
}

impl Prediction {
    pub(super) fn new(last: Option<LastPass>, shape: &Arc<Shape>) -> Option<Self> {
        let Some(last) = last else {
            let leaves = shape.holes().map(Leaf::zero).collect::<Option<Vec<_>>>()?;
            let moving = vec![false; leaves.len()];
            return Some(Self {
                leaves,
                moving,
                at: 0,
                step: 0,
                number: 0,
                number_step: 0,
                changed: ChangedLeaves::default(),
            });
        };
        let LastPass { shape: known, leaves, moving, at, step, number, number_step } = last;
        if Arc::ptr_eq(&known, shape) {
            let changed = ChangedLeaves::default();
            return Some(Self { leaves, moving, at, step, number, number_step, changed });
        }
        let before: Vec<KnownLeaf> = known
            .paths()
            .iter()
            .zip(leaves.iter().zip(&moving))
            .map(|(path, (leaf, moves))| (*path, *leaf, *moves))
            .collect();
        let (leaves, moving) = aligned(&before, shape.paths().iter().copied().zip(shape.holes()))?;
        Some(Self { leaves, moving, at, step, number, number_step, changed: ChangedLeaves::default() })
    }

    /// Whether a leaf is what it was and is predicted to be, as most are: then there is nothing to write or to learn.
    pub(super) fn is_same(&self, index: usize, new: Leaf) -> bool {
        self.leaves.get(index) == Some(&new)
            && self.moving.get(index) == Some(&false)
            && !self.changed.may_have(new)
    }

    pub(super) fn predict(&self, index: usize, elapsed: i64) -> Option<Leaf> {
        let last = *self.leaves.get(index)?;
        match last {
            Leaf::Time(time) if *self.moving.get(index)? => Some(Leaf::Time(time.wrapping_add(elapsed))),
            _ => Some(self.changed.of(last).unwrap_or(last)),
        }
    }

    /// Puts the new value in the place of the old one.
    pub(super) fn learn(&mut self, index: usize, new: Leaf, elapsed: i64) {
        let (Some(last), Some(moving)) = (self.leaves.get_mut(index), self.moving.get_mut(index)) else {
            return;
        };
        if let (Leaf::Time(was), Leaf::Time(is)) = (*last, new) {
            *moving = is != was && is.wrapping_sub(was) == elapsed;
        }
        if *last != new {
            self.changed.add(*last, new);
        }
        *last = new;
    }

    pub(super) fn done(self, shape: Arc<Shape>, at: i64, number: u64, first: bool) -> LastPass {
        let step = if first { 0 } else { at.wrapping_sub(self.at) };
        let number_step = if first { 0 } else { number.wrapping_sub(self.number) };
        LastPass { shape, leaves: self.leaves, moving: self.moving, at, step, number, number_step }
    }
}

/// The path of a leaf, the leaf, and whether it moves with the time of the pass.
type KnownLeaf = (u32, Leaf, bool);

/// The known leaf for each path and hole of another shape: the next one behind the leaf before, otherwise the first, otherwise zero.
fn aligned(before: &[KnownLeaf], holes: impl Iterator<Item = (u32, u8)>) -> Option<(Vec<Leaf>, Vec<bool>)> {
    let (mut leaves, mut moving) = (Vec::new(), Vec::new());
    // Paths, holes and indexes of the known leaves. Most leaves follow each other in both shapes; others are looked up in this order,
    // because a search of each among all takes minutes for the shapes of a crafted recording.
    let mut sorted: Vec<(u32, u8, usize)> = Vec::new();
    let mut next = 0;
    for (path, hole) in holes {
        let follows = before.get(next).is_some_and(|(known, leaf, _)| *known == path && leaf.hole() == hole);
        let found = if follows {
            Some(next)
        } else {
            if sorted.is_empty() {
                let known = before.iter().enumerate();
                sorted.extend(known.map(|(index, (path, leaf, _))| (*path, leaf.hole(), index)));
                sorted.sort_unstable();
            }
            first_from(&sorted, (path, hole, next)).or_else(|| first_from(&sorted, (path, hole, 0)))
        };
        let (leaf, moves) = match found {
            Some(found) => {
                next = found + 1;
                let (_, leaf, moves) = before.get(found)?;
                (*leaf, *moves)
            }
            None => (Leaf::zero(hole)?, false),
        };
        leaves.push(leaf);
        moving.push(moves);
    }
    Some((leaves, moving))
}

/// The smallest index from `start` on with its path and hole.
fn first_from(sorted: &[(u32, u8, usize)], start: (u32, u8, usize)) -> Option<usize> {
    let (path, hole, index) = *sorted.get(sorted.partition_point(|entry| *entry < start))?;
    ((path, hole) == (start.0, start.1)).then_some(index)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Aligns by searching each hole among all leaves, which defines the format.
    fn searched(before: &[KnownLeaf], holes: &[(u32, u8)]) -> (Vec<Leaf>, Vec<bool>) {
        let mut next = 0;
        let each = holes.iter().map(|(path, hole)| {
            let same = |entry: &KnownLeaf| entry.0 == *path && entry.1.hole() == *hole;
            let ahead = before.iter().skip(next).position(same).map(|found| next + found);
            match ahead.or_else(|| before.iter().position(same)) {
                Some(found) => {
                    next = found + 1;
                    (before[found].1, before[found].2)
                }
                None => (Leaf::zero(*hole).unwrap(), false),
            }
        });
        each.unzip()
    }

    proptest! {
        #[test]
        fn leaves_are_aligned_as_by_a_search(
            before in prop::collection::vec((0_u32..4, any::<bool>(), any::<bool>()), 0..40),
            holes in prop::collection::vec((0_u32..5, 1_u8..3), 0..40),
        ) {
            let known: Vec<KnownLeaf> = before
                .iter()
                .zip(1..)
                .map(|((path, is_int, moves), n)| {
                    let leaf = if *is_int { Leaf::Int(n) } else { Leaf::Float(n as u64) };
                    (*path, leaf, *moves)
                })
                .collect();
            prop_assert_eq!(aligned(&known, holes.iter().copied()), Some(searched(&known, &holes)));
        }

        #[test]
        fn changed_leaves_become_what_the_last_of_them_became(
            changes in prop::collection::vec((0_i64..150, any::<i64>()), 0..300),
        ) {
            let mut changed = ChangedLeaves::default();
            for (was, is) in &changes {
                changed.add(Leaf::Int(*was), Leaf::Int(*is));
            }
            for value in 0..150 {
                let last = changes.iter().rev().find(|(was, _)| *was == value).map(|(_, is)| Leaf::Int(*is));
                prop_assert_eq!(changed.of(Leaf::Int(value)), last);
            }
        }
    }
}
