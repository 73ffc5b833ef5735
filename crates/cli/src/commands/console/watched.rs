//! The watched autoscalers with what was decided about each, and what changed since the last publication.

mod entry;

use std::collections::{BTreeMap, HashMap, HashSet};

use api::decisions::DecisionRecord;
use cluster::AutoscalerKind;
use jiff::Timestamp;
use runtime::{ObjectKey, ObjectStore, StoreChange, Versioned, WatchEvent};
use serde_json::Value;
use web_console::FeedRow;

use self::entry::{WatchedEntry, WatchedKey, WatchedName};
use super::latest::{LatestPass, NewPass};
use super::rows;
use super::status::{LastStatus, StatusEvent};
use crate::commands::get::Entry;
use crate::commands::top::by_cause;
use crate::live::objects::Object;

/// Decisions that are kept of autoscalers which the watch has not shown yet.
const MAX_EARLY_RECORDS: usize = 10_000;

/// All watched autoscalers.
#[derive(Default)]
pub(super) struct WatchedStore {
    objects: WatchedObjects,
    /// The last events about HPAs. They are apart from the objects, which are large, so that most events touch little memory.
    statuses: HashMap<WatchedName, LastStatus>,
    /// Decisions about autoscalers that the watch has not shown yet.
    early: HashMap<WatchedKey, EarlyRecord>,
    /// Whose row may differ from the one that was taken last. What was removed since may be among them.
    changed: Vec<WatchedKey>,
    /// Whose row was removed.
    removed: Vec<String>,
    /// Whether problems are as they were taken last.
    are_problems_taken: bool,
}

/// What changed since the last publication.
pub(super) struct WatchedChange {
    pub(super) rows: Vec<FeedRow>,
    pub(super) removed: Vec<String>,
    /// All problems, if they may have changed.
    pub(super) problems: Option<Value>,
}

/// A decision about an autoscaler that the watch has not shown yet.
struct EarlyRecord {
    record: DecisionRecord,
    /// Whether it was there when early decisions were last dropped.
    is_old: bool,
}

type WatchedObjects = BTreeMap<AutoscalerKind, ObjectStore<WatchedName, WatchedEntry>>;

impl WatchedStore {
    /// Applies an event of the watch of a kind in a namespace, or in all if that is empty.
    pub(super) fn apply(&mut self, kind: AutoscalerKind, scope: &str, event: WatchEvent<Object>) {
        let event = event.map(|object| {
            let name = WatchedName::new(object.namespace(), &object.hpa.metadata.name);
            (name, WatchedEntry::new(object))
        });
        if let WatchEvent::Applied((name, _)) = &event {
            // The store compares the version of the object that it has.
            self.write_status(kind, name);
        }
        let store = self.objects.entry(kind).or_default();
        match store.apply(scope, event) {
            StoreChange::Unchanged => {}
            StoreChange::Unreadable(name, None, _) => {
                // No later deletion of an object that is not stored would remove its status.
                if kind == AutoscalerKind::Hpa {
                    self.statuses.remove(&name);
                }
            }
            StoreChange::Applied(name, before) => {
                let key = (kind, name);
                let Some(watched) = store.get_mut(&key.1) else { return };
                match before {
                    Some(before) => watched.follow(before),
                    None => watched.entry.record = self.early.remove(&key).map(|early| early.record),
                }
                if kind == AutoscalerKind::Hpa
                    && let Some(status) = self.statuses.get_mut(&key.1)
                {
                    status.decoded(watched.resource_version());
                    status.has_passes = watched.shown_pass().is_some();
                }
                watched.mark(key, &mut self.changed);
            }
            StoreChange::Deleted(all) => {
                for (name, before) in all {
                    self.remove(&(kind, name), &before);
                }
            }
            StoreChange::Unreadable(name, Some(before), _) => self.remove(&(kind, name), &before),
        }
    }

    /// Applies the text of an event about an HPA and returns its version. None if more than values of the status may differ, so that
    /// it must be decoded.
    pub(super) fn apply_status(&mut self, text: &[u8]) -> Option<String> {
        let event = StatusEvent::read(text).ok()?;
        let name = WatchedName::new(event.namespace, event.name);
        if let Some(status) = self.statuses.get_mut(&name)
            && status.keep(&event)
        {
            if !status.has_passes {
                let key = (AutoscalerKind::Hpa, name);
                if let Some(watched) = find(&mut self.objects, &key) {
                    watched.mark(key, &mut self.changed);
                }
            }
            return Some(event.version.to_owned());
        }
        self.write_status(AutoscalerKind::Hpa, &name);
        self.statuses.insert(name, LastStatus::undecoded(&event));
        None
    }

    /// Brings the status of a stored HPA up to date.
    fn write_status(&mut self, kind: AutoscalerKind, name: &WatchedName) {
        if kind == AutoscalerKind::Hpa
            && let Some(status) = self.statuses.get_mut(name)
            && let Some(watched) = self.objects.get_mut(&kind).and_then(|objects| objects.get_mut(name))
        {
            status.write_to(&mut watched.entry.object.hpa);
        }
    }

    fn remove(&mut self, (kind, name): &WatchedKey, before: &WatchedEntry) {
        self.are_problems_taken &= before.problems.is_empty();
        self.removed.push(rows::id(&before.entry));
        if *kind == AutoscalerKind::Hpa {
            self.statuses.remove(name);
        }
    }

    /// Whether there are objects whose decisions a group serves, and whether there are any objects at all.
    pub(super) fn has_objects(&self, by: &str) -> (bool, bool) {
        let filled = || self.objects.iter().filter(|(_, objects)| !objects.is_empty());
        (filled().any(|(kind, _)| kind.decisions() == by), filled().next().is_some())
    }

    /// Replaces what the process behind a group has decided.
    pub(super) fn replace_records(&mut self, by: &str, records: Vec<DecisionRecord>) {
        self.early.retain(|(kind, _), _| kind.decisions() != by);
        let known: HashSet<WatchedKey> = records
            .iter()
            .filter_map(|record| key(&record.metadata.namespace, &record.metadata.name))
            .collect();
        let kinds = AutoscalerKind::ALL.into_iter().filter(|kind| kind.decisions() == by);
        let without: Vec<WatchedKey> = kinds
            .flat_map(|kind| {
                let objects = self.objects.get(&kind).into_iter().flat_map(ObjectStore::iter);
                objects
                    .filter(|(_, watched)| watched.entry.record.is_some())
                    .map(move |(name, _)| (kind, name.clone()))
            })
            .filter(|key| !known.contains(key))
            .collect();
        for key in without {
            self.set_record(key, None);
        }
        for record in records {
            self.decided(record);
        }
    }

    /// Adds a decision that differs from the one before it.
    pub(super) fn decided(&mut self, record: DecisionRecord) {
        let Some(key) = key(&record.metadata.namespace, &record.metadata.name) else { return };
        if let Some((key, record)) = self.set_record(key, Some(record))
            && self.early.len() < MAX_EARLY_RECORDS
        {
            self.early.insert(key, EarlyRecord { record, is_old: false });
        }
    }

    /// Replaces what was decided about an autoscaler. Gives back a record about one that the watch has not shown.
    fn set_record(
        &mut self,
        key: WatchedKey,
        record: Option<DecisionRecord>,
    ) -> Option<(WatchedKey, DecisionRecord)> {
        let Some(watched) = find(&mut self.objects, &key) else { return Some((key, record?)) };
        if watched.latest.take().is_some() {
            shows_passes(&mut self.statuses, &key, false);
        }
        (watched.entry.record, watched.is_judged) = (record, false);
        watched.mark(key, &mut self.changed);
        None
    }

    /// Drops decisions about autoscalers that no watch has shown since the last call: these are deleted.
    pub(super) fn drop_early(&mut self) {
        self.early.retain(|_, early| !std::mem::replace(&mut early.is_old, true));
    }

    /// Adds a pass. False if it does not follow from the decision that is known, so that one is missing.
    pub(super) fn add(&mut self, mut pass: NewPass<'_>) -> bool {
        if let Some(record) = pass.record.take() {
            self.decided(*record);
            return true;
        }
        let Some(key) = key(&pass.namespace, &pass.name) else { return true };
        let Some(watched) = find(&mut self.objects, &key) else { return true };
        let Some(record) = &mut watched.entry.record else { return true };
        // The decisions were read after the cursor, and may have this pass already.
        if pass.at <= record.last {
            return true;
        }
        if pass.desired != record.decision.desired.get() {
            return false;
        }
        record.last = pass.at;
        record.times += 1;
        let latest = LatestPass::new(pass, &watched.targets);
        if watched.latest.replace(latest).is_none() {
            shows_passes(&mut self.statuses, &key, watched.shown_pass().is_some());
        }
        watched.mark(key, &mut self.changed);
        true
    }

    /// The decisions about autoscalers with triggers.
    pub(super) fn records_with_triggers(&self) -> impl Iterator<Item = &DecisionRecord> {
        let kinds = self.objects.iter().filter(|(kind, _)| kind.has_triggers());
        let all = kinds.flat_map(|(_, objects)| objects.iter());
        all.filter_map(|(_, watched)| watched.entry.record.as_ref())
    }

    /// Finds autoscalers about which nothing is decided any more.
    pub(super) fn find_silent(&mut self, now: Timestamp) {
        let is_other = |watched: &WatchedEntry| watched.is_silent_at(now) != watched.is_silent;
        let mut others = Vec::new();
        for (kind, objects) in &self.objects {
            let other = objects.iter().filter(|(_, watched)| is_other(watched));
            others.extend(other.map(|(name, _)| (*kind, name.clone())));
        }
        for key in others {
            if let Some(watched) = find(&mut self.objects, &key) {
                watched.mark(key, &mut self.changed);
            }
        }
    }

    /// Takes what changed; `show` sees each changed autoscaler.
    pub(super) fn take(&mut self, now: Timestamp, mut show: impl FnMut(&Entry)) -> WatchedChange {
        let mut rows = Vec::new();
        for key in std::mem::take(&mut self.changed) {
            let Some(watched) = find(&mut self.objects, &key) else { continue };
            if !std::mem::take(&mut watched.is_changed) {
                continue;
            }
            // Old values are not shown together with a status that may be new.
            if watched.is_silent_at(now) && watched.latest.take().is_some() {
                shows_passes(&mut self.statuses, &key, false);
            }
            // A pass that could not read the count leaves that of the status in the row.
            if watched.shown_pass().is_none_or(|latest| latest.replicas.is_none())
                && key.0 == AutoscalerKind::Hpa
                && let Some(status) = self.statuses.get_mut(&key.1)
            {
                status.write_to(&mut watched.entry.object.hpa);
            }
            show(&watched.entry);
            let (row, has_same_problems) = watched.update_row(now);
            rows.push(row);
            self.are_problems_taken &= has_same_problems;
        }
        let problems = (!self.are_problems_taken).then(|| self.problems());
        self.are_problems_taken = true;
        let mut removed = std::mem::take(&mut self.removed);
        if !removed.is_empty() {
            // An autoscaler that was deleted and created again is there.
            let here: HashSet<&str> = rows.iter().map(|row: &FeedRow| &*row.names.id).collect();
            removed.retain(|id| !here.contains(id.as_str()));
        }
        WatchedChange { rows, removed, problems }
    }

    fn problems(&self) -> Value {
        let all = self.objects.values().flat_map(ObjectStore::iter).map(|(_, watched)| watched);
        let by_id: BTreeMap<String, &WatchedEntry> = all
            .filter(|watched| !watched.problems.is_empty())
            .map(|watched| (rows::id(&watched.entry), watched))
            .collect();
        let problems = by_id
            .iter()
            .flat_map(|(id, watched)| watched.problems.iter().map(move |problem| (id.as_str(), problem)));
        let since = |id: &String| rows::began(&by_id.get(id)?.entry);
        by_cause(problems)
            .iter()
            .map(|problem| rows::problem(problem, problem.autoscalers.iter().filter_map(since).min()))
            .collect()
    }
}

fn find<'a>(objects: &'a mut WatchedObjects, (kind, name): &WatchedKey) -> Option<&'a mut WatchedEntry> {
    objects.get_mut(kind)?.get_mut(name)
}

/// Notes whether the row of an autoscaler shows the values of passes.
fn shows_passes(
    statuses: &mut HashMap<WatchedName, LastStatus>,
    (kind, name): &WatchedKey,
    has_passes: bool,
) {
    if *kind == AutoscalerKind::Hpa
        && let Some(status) = statuses.get_mut(name)
    {
        status.has_passes = has_passes;
    }
}

/// The autoscaler of a record: `hpa.web`.
fn key(namespace: &str, record: &str) -> Option<WatchedKey> {
    let (short, name) = record.split_once('.')?;
    let kind = AutoscalerKind::ALL.into_iter().find(|kind| kind.short() == short)?;
    Some((kind, WatchedName::new(namespace, name)))
}

#[cfg(test)]
mod tests;
