//! The watched autoscalers with what was decided about each, and what changed since the last look.

use std::collections::{BTreeMap, HashMap, HashSet};

use api::decisions::DecisionRecord;
use api::decisions::passes::PassItem;
use cluster::AutoscalerKind;
use jiff::Timestamp;
use runtime::{ObjectKey, ObjectStore, StoreChange, Versioned, WatchEvent};
use serde_json::Value;
use web_console::FeedRow;

use super::rows;
use super::status::{HpaDigest, StatusEvent};
use crate::commands::get::Entry;
use crate::commands::top::{AutoscalerLine, AutoscalerProblem, Grade, by_cause, grade, problems_of};
use crate::live::decisions::silent;
use crate::live::objects::Object;

/// Decisions that are kept of autoscalers which the watch has not shown yet.
const MAX_EARLY_RECORDS: usize = 10_000;

/// All watched autoscalers.
#[derive(Default)]
pub(super) struct WatchedStore {
    objects: HashMap<AutoscalerKind, ObjectStore<WatchedName, WatchedEntry>>,
    /// Decisions about autoscalers that the watch has not shown yet.
    early: HashMap<WatchedKey, EarlyRecord>,
    /// Whose row may differ from the one that was taken last.
    changed: HashSet<WatchedKey>,
    /// Whose row was removed.
    removed: Vec<String>,
    /// Whether problems are as they were taken last.
    are_problems_taken: bool,
}

/// What changed since the last look.
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

type WatchedKey = (AutoscalerKind, WatchedName);

/// Namespace and name of an object of some kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WatchedName {
    namespace: String,
    name: String,
}

/// An autoscaler and the latest pass about it.
struct WatchedEntry {
    entry: Entry,
    /// The latest pass, if it decided the same as the record, which is of the first such pass.
    latest: Option<PassItem>,
    problems: Vec<AutoscalerProblem>,
    grade: Grade,
    /// Whether problems and grade are those of the record, which later passes do not change.
    is_judged: bool,
    is_silent: bool,
    /// Of an HPA: what its last event had besides the values of the status.
    digest: Option<HpaDigest>,
}

impl ObjectKey for WatchedName {
    fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl Versioned for WatchedEntry {
    fn resource_version(&self) -> &str {
        &self.entry.object.hpa.metadata.resource_version
    }
}

impl WatchedStore {
    /// Applies an event of the watch of a kind in a namespace, or in all if that is empty.
    pub(super) fn apply(&mut self, kind: AutoscalerKind, scope: &str, event: WatchEvent<Object>) {
        let event = event.map(|object| {
            let name = WatchedName::new(object.namespace(), &object.hpa.metadata.name);
            (name, WatchedEntry::new(object))
        });
        let store = self.objects.entry(kind).or_default();
        match store.apply(scope, event) {
            StoreChange::Unchanged | StoreChange::Unreadable(_, None, _) => {}
            StoreChange::Applied(name, before) => {
                let key = (kind, name);
                if let Some(watched) = store.get_mut(&key.1) {
                    match before {
                        Some(before) => watched.follow(before),
                        None => watched.entry.record = self.early.remove(&key).map(|early| early.record),
                    }
                }
                self.changed.insert(key);
            }
            StoreChange::Deleted(all) => {
                for (name, before) in all {
                    self.remove(&(kind, name), &before);
                }
            }
            StoreChange::Unreadable(name, Some(before), _) => self.remove(&(kind, name), &before),
        }
    }

    /// Applies the text of an event about an HPA. False if more than values of the status may differ, so that it must be decoded.
    pub(super) fn apply_status(&mut self, text: &[u8]) -> bool {
        let Some(event) = StatusEvent::read(text) else { return false };
        let key = (AutoscalerKind::Hpa, WatchedName::new(event.namespace(), event.name()));
        let Some(watched) = self.get_mut(&key) else { return false };
        let is_applied = event.apply(&mut watched.entry.object.hpa, &mut watched.digest);
        if is_applied {
            self.changed.insert(key);
        }
        is_applied
    }

    fn remove(&mut self, key: &WatchedKey, before: &WatchedEntry) {
        self.are_problems_taken &= before.problems.is_empty();
        self.removed.push(rows::id(&before.entry));
        self.changed.remove(key);
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
            if let Some(watched) = self.get_mut(&key) {
                watched.set_record(None);
                self.changed.insert(key);
            }
        }
        for record in records {
            self.decided(record);
        }
    }

    /// Adds a decision that differs from the one before it.
    pub(super) fn decided(&mut self, record: DecisionRecord) {
        let Some(key) = key(&record.metadata.namespace, &record.metadata.name) else { return };
        if let Some(watched) = self.get_mut(&key) {
            watched.set_record(Some(record));
            self.changed.insert(key);
        } else if self.early.len() < MAX_EARLY_RECORDS {
            self.early.insert(key, EarlyRecord { record, is_old: false });
        }
    }

    /// Drops decisions about autoscalers that no watch has shown since the last call: these are deleted.
    pub(super) fn drop_early(&mut self) {
        self.early.retain(|_, early| !std::mem::replace(&mut early.is_old, true));
    }

    /// Adds a pass. False if it does not follow from the decision that is known, so that one is missing.
    pub(super) fn add(&mut self, mut pass: PassItem) -> bool {
        if let Some(record) = pass.record.take() {
            self.decided(*record);
            return true;
        }
        let Some(key) = key(&pass.namespace, &pass.name) else { return true };
        let Some(watched) = self.get_mut(&key) else { return true };
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
        watched.latest = Some(pass);
        self.changed.insert(key);
        true
    }

    /// The decisions about all autoscalers.
    pub(super) fn records(&self) -> impl Iterator<Item = &DecisionRecord> {
        let all = self.objects.values().flat_map(ObjectStore::iter);
        all.filter_map(|(_, watched)| watched.entry.record.as_ref())
    }

    fn get_mut(&mut self, (kind, name): &WatchedKey) -> Option<&mut WatchedEntry> {
        self.objects.get_mut(kind)?.get_mut(name)
    }

    /// Finds autoscalers about which nothing is decided any more.
    pub(super) fn find_silent(&mut self, now: Timestamp) {
        for (kind, objects) in &self.objects {
            let other = objects.iter().filter(|(_, watched)| watched.is_silent_at(now) != watched.is_silent);
            self.changed.extend(other.map(|(name, _)| (*kind, name.clone())));
        }
    }

    /// Takes what changed; `show` sees each changed autoscaler.
    pub(super) fn take(&mut self, now: Timestamp, mut show: impl FnMut(&Entry)) -> WatchedChange {
        let mut rows = Vec::new();
        for key in std::mem::take(&mut self.changed) {
            let Some(watched) = self.get_mut(&key) else { continue };
            show(&watched.entry);
            let (row, has_same_problems) = watched.look(now);
            rows.push(row);
            self.are_problems_taken &= has_same_problems;
        }
        let problems = (!self.are_problems_taken).then(|| self.problems());
        self.are_problems_taken = true;
        let mut removed = std::mem::take(&mut self.removed);
        // An autoscaler that was deleted and created again is there.
        let here: HashSet<&str> = rows.iter().map(|row: &FeedRow| row.id.as_str()).collect();
        removed.retain(|id| !here.contains(id.as_str()));
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

impl WatchedEntry {
    fn new(object: Object) -> Self {
        let entry = Entry { object, record: None };
        let (latest, problems) = (None, Vec::new());
        let (grade, digest) = (Grade::default(), None);
        Self { entry, latest, problems, grade, is_judged: false, is_silent: false, digest }
    }

    /// Takes over what was decided about the state before.
    fn follow(&mut self, before: Self) {
        let Self { entry, latest, problems, grade, is_judged, is_silent, digest } = before;
        self.entry.record = entry.record;
        (self.latest, self.problems, self.grade) = (latest, problems, grade);
        (self.is_judged, self.is_silent, self.digest) = (is_judged, is_silent, digest);
    }

    /// Replaces what was decided.
    fn set_record(&mut self, record: Option<DecisionRecord>) {
        (self.entry.record, self.latest, self.is_judged) = (record, None, false);
    }

    fn is_silent_at(&self, now: Timestamp) -> bool {
        self.entry.record.as_ref().is_some_and(|record| silent(record, now))
    }

    /// The present row, and whether the problems are the same as before.
    fn look(&mut self, now: Timestamp) -> (FeedRow, bool) {
        let is_silent = self.is_silent_at(now);
        let mut has_same_problems = true;
        if !self.is_judged || is_silent != self.is_silent {
            let problems = problems_of(&self.entry, now);
            has_same_problems = problems.iter().map(group).eq(self.problems.iter().map(group));
            self.grade = grade(&self.entry, &problems);
            self.problems = problems;
        }
        self.is_silent = is_silent;
        // Without a record, conditions are judged, which may change with every event.
        self.is_judged = self.entry.record.is_some();
        let line = match &self.latest {
            Some(latest) => AutoscalerLine::after(&self.entry, self.grade, latest),
            None => AutoscalerLine::of(&self.entry, self.grade),
        };
        (rows::row(&self.entry, &line), has_same_problems)
    }
}

/// What makes two problems one.
fn group(problem: &AutoscalerProblem) -> (Grade, &str, &str) {
    (problem.grade, &problem.cause, &problem.remedy)
}

/// The autoscaler of a record: `hpa.web`.
fn key(namespace: &str, record: &str) -> Option<WatchedKey> {
    let (short, name) = record.split_once('.')?;
    let kind = AutoscalerKind::ALL.into_iter().find(|kind| kind.short() == short)?;
    Some((kind, WatchedName::new(namespace, name)))
}

#[cfg(test)]
mod tests;
