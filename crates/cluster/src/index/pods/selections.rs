//! Autoscalers, and the label sets that they select.

use api::selector::Selector;

use super::labels::{Labels, SelectorPosting};
use super::posting::{Ids, Link};
use crate::index::pool::{Id, NONE, Pool};
use crate::key::AutoscalerKey;

/// All autoscalers, and the label sets that each of them selects.
///
/// Label sets that exactly the same autoscalers select have one audience between them and these autoscalers. Commonly
/// that is one autoscaler and the one to three label sets of its target's revisions; where many autoscalers select the
/// same pods, memory grows with their number and not with its square.
#[derive(Debug, Default)]
pub(super) struct Selections {
    autoscalers: Pool<Autoscaler>,
    audiences: Pool<Audience>,
    /// Incremented by every change of a selected label set.
    changes: u64,
}

/// A registered autoscaler.
#[derive(Debug)]
pub(super) struct Autoscaler {
    pub(super) key: AutoscalerKey,
    pub(super) namespace: Id,
    selector: Selector,
    posting: SelectorPosting,
    audiences: Ids,
    /// When its pods last changed.
    pub(super) changed: u64,
}

/// Autoscalers that select the same label sets.
#[derive(Debug)]
struct Audience {
    /// Sorted, never empty.
    members: Box<[Id]>,
    /// Empty only while it is created or dropped.
    sets: Ids,
}

impl Selections {
    pub(super) fn find(&self, key: &AutoscalerKey) -> Option<Id> {
        self.autoscalers.find(self.autoscalers.hash(key), |known| known.key == *key)
    }

    pub(super) fn get(&self, id: Id) -> Option<&Autoscaler> {
        self.autoscalers.get(id)
    }

    pub(super) fn register(&mut self, key: &AutoscalerKey, namespace: Id) {
        self.changes += 1;
        let autoscaler = Autoscaler {
            key: key.clone(),
            namespace,
            selector: Selector::nothing(),
            posting: SelectorPosting::NotPosted,
            audiences: Ids::default(),
            changed: self.changes,
        };
        self.autoscalers.insert(self.autoscalers.hash(key), autoscaler);
    }

    /// Replaces the selector of an autoscaler.
    pub(super) fn select(&mut self, labels: &mut Labels, id: Id, selector: &Selector) {
        let Some(known) = self.autoscalers.get_mut(id).filter(|known| known.selector != *selector) else {
            return;
        };
        known.selector.clone_from(selector);
        let namespace = known.namespace;
        labels.unpost(std::mem::take(&mut known.posting), id);
        known.posting = labels.post(namespace, id, selector);
        let mut after = labels.matching(namespace, selector);
        after.sort_unstable();
        let mut before: Vec<Id> = self.sets(id).collect();
        before.sort_unstable();
        let left: Vec<Id> = before.iter().copied().filter(|set| after.binary_search(set).is_err()).collect();
        after.retain(|set| before.binary_search(set).is_err());
        if left.is_empty() && after.is_empty() {
            return;
        }
        self.regroup(labels, left, |members| members.retain(|member| *member != id));
        self.regroup(labels, after, |members| members.push(id));
        self.changes += 1;
        if let Some(known) = self.autoscalers.get_mut(id) {
            known.changed = self.changes;
        }
    }

    pub(super) fn forget(&mut self, labels: &mut Labels, id: Id) {
        self.select(labels, id, &Selector::nothing());
        if let Some(gone) = self.autoscalers.remove(id) {
            labels.remove_autoscaler(gone.namespace);
        }
    }

    /// The label sets that an autoscaler selects.
    pub(super) fn sets(&self, id: Id) -> impl Iterator<Item = Id> {
        let audiences = self.autoscalers.get(id).into_iter().flat_map(|known| known.audiences.all().iter());
        audiences
            .filter_map(|id| self.audiences.get(*id))
            .flat_map(|audience| audience.sets.all().iter().copied())
    }

    /// All autoscalers that share a label set with this one, itself included, each once; empty if it shares none.
    /// `all` is the maximum number.
    pub(super) fn sharing(&self, id: Id, all: usize) -> Vec<Id> {
        let Some(known) = self.autoscalers.get(id) else { return Vec::new() };
        let audiences = known.audiences.all().iter().filter_map(|id| self.audiences.get(*id));
        let mut found: Vec<Id> = Vec::new();
        let mut tidy_at = 64;
        for Audience { members, .. } in audiences.filter(|audience| audience.members.len() > 1) {
            found.extend_from_slice(members);
            if found.len() >= tidy_at {
                tidy(&mut found);
                if found.len() == all {
                    return found;
                }
                tidy_at = 2 * found.len();
            }
        }
        tidy(&mut found);
        found
    }

    /// Finds the autoscalers that select a new label set.
    pub(super) fn enter(&mut self, labels: &mut Labels, set: Id) {
        let selects = |id: &Id| self.get(*id).is_some_and(|known| labels.matches(set, &known.selector));
        let mut members: Vec<Id> = labels.candidates(set).filter(selects).collect();
        members.sort_unstable();
        let audience = self.audience(members);
        self.attach(labels, set, audience);
    }

    /// Forgets a label set that is about to be dropped.
    pub(super) fn leave(&mut self, labels: &mut Labels, set: Id) {
        self.detach(labels, set);
    }

    /// A pod of a label set was added, removed or changed.
    pub(super) fn touch(&mut self, labels: &Labels, set: Id) {
        let audience = labels.set(set).and_then(|set| self.audiences.get(set.audience.to));
        let Some(audience) = audience else { return };
        self.changes += 1;
        for member in &audience.members {
            if let Some(known) = self.autoscalers.get_mut(*member) {
                known.changed = self.changes;
            }
        }
    }
}

impl Selections {
    /// Changes the autoscalers of these label sets, audience by audience.
    fn regroup(&mut self, labels: &mut Labels, mut sets: Vec<Id>, change: impl Fn(&mut Vec<Id>)) {
        let audience_of = |labels: &Labels, set: Id| labels.set(set).map_or(NONE, |set| set.audience.to);
        sets.sort_by_key(|set| audience_of(labels, *set));
        let mut rest = sets.as_slice();
        while let Some(first) = rest.first() {
            let from = audience_of(labels, *first);
            let count = rest.iter().take_while(|set| audience_of(labels, **set) == from).count();
            let (group, others) = rest.split_at(count);
            rest = others;
            let mut members = self.audiences.get(from).map_or_else(Vec::new, |known| known.members.to_vec());
            change(&mut members);
            members.sort_unstable();
            let to = self.audience(members);
            for set in group {
                self.detach(labels, *set);
                self.attach(labels, *set, to);
            }
        }
    }

    /// The audience of these autoscalers; a new one must be given a label set.
    fn audience(&mut self, members: Vec<Id>) -> Id {
        if members.is_empty() {
            return NONE;
        }
        let hash = self.audiences.hash(&members);
        if let Some(known) = self.audiences.find(hash, |known| *known.members == *members) {
            return known;
        }
        let id = self.audiences.insert(hash, Audience { members: members.into(), sets: Ids::default() });
        let members = self.audiences.get(id).into_iter().flat_map(|audience| audience.members.iter());
        for member in members {
            if let Some(known) = self.autoscalers.get_mut(*member) {
                known.audiences.insert(id);
            }
        }
        id
    }

    fn attach(&mut self, labels: &mut Labels, id: Id, audience: Id) {
        if let Some(known) = self.audiences.get_mut(audience)
            && let Some(set) = labels.set_mut(id)
        {
            set.audience = Link { to: audience, at: known.sets.insert(id) };
        }
    }

    fn detach(&mut self, labels: &mut Labels, id: Id) {
        let Some(set) = labels.set_mut(id) else { return };
        let Link { to, at } = std::mem::replace(&mut set.audience, Link::NOWHERE);
        let Some(audience) = self.audiences.get_mut(to) else { return };
        if let Some(moved) = audience.sets.remove_at(at).and_then(|moved| labels.set_mut(moved)) {
            moved.audience.at = at;
        }
        if audience.sets.all().is_empty()
            && let Some(audience) = self.audiences.remove(to)
        {
            for member in audience.members {
                if let Some(known) = self.autoscalers.get_mut(member) {
                    known.audiences.remove(to);
                }
            }
        }
    }
}

fn tidy(ids: &mut Vec<Id>) {
    ids.sort_unstable();
    ids.dedup();
}

#[cfg(test)]
impl Selections {
    /// The numbers of autoscalers and audiences.
    pub(super) fn counts(&self) -> [usize; 2] {
        [self.autoscalers.len(), self.audiences.len()]
    }
}
