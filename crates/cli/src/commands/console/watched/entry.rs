//! A watched autoscaler, and its row as of now.

use std::sync::Arc;

use api::autoscaling::print::TargetsTemplate;
use cluster::AutoscalerKind;
use jiff::Timestamp;
use runtime::{ObjectKey, Versioned};
use web_console::{FeedRow, RowNames};

use crate::commands::console::latest::LatestPass;
use crate::commands::console::rows::{self, RowValues};
use crate::commands::get::Entry;
use crate::commands::top::{AutoscalerLine, AutoscalerProblem, Grade, grade, problems_of};
use crate::live::decisions::silent;
use crate::live::objects::Object;

/// The kind and the name of an object.
pub(super) type WatchedKey = (AutoscalerKind, WatchedName);

/// Namespace, a slash and name of an object of some kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WatchedName(Box<str>);

/// An autoscaler and the latest pass about it.
pub(super) struct WatchedEntry {
    pub(super) entry: Entry,
    names: Arc<RowNames>,
    /// The metrics against targets, without values.
    pub(super) targets: TargetsTemplate,
    /// The latest pass, if it decided the same as the record, which is of the first such pass.
    pub(super) latest: Option<LatestPass>,
    pub(super) problems: Vec<AutoscalerProblem>,
    grade: Grade,
    /// Whether problems and grade are those of the record, which later passes do not change.
    pub(super) is_judged: bool,
    pub(super) is_silent: bool,
    /// Whether it is among those whose row may differ.
    pub(super) is_changed: bool,
}

impl ObjectKey for WatchedName {
    fn new(namespace: &str, name: &str) -> Self {
        Self([namespace, "/", name].concat().into_boxed_str())
    }

    fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(namespace, _)| namespace)
    }
}

impl Versioned for WatchedEntry {
    fn resource_version(&self) -> &str {
        &self.entry.object.hpa.metadata.resource_version
    }
}

impl WatchedEntry {
    pub(super) fn new(object: Object) -> Self {
        let entry = Entry { object, record: None };
        Self {
            names: rows::names(&entry),
            targets: TargetsTemplate::new(&entry.object.hpa.spec.metrics),
            entry,
            latest: None,
            problems: Vec::new(),
            grade: Grade::default(),
            is_judged: false,
            is_silent: false,
            is_changed: false,
        }
    }

    /// Notes that its row may differ.
    pub(super) fn mark(&mut self, key: WatchedKey, changed: &mut Vec<WatchedKey>) {
        if !std::mem::replace(&mut self.is_changed, true) {
            changed.push(key);
        }
    }

    /// Takes over what was decided about the state before.
    pub(super) fn follow(&mut self, before: Self) {
        let Self { entry, latest, problems, grade, is_judged, is_silent, is_changed, .. } = before;
        let is_judged = is_judged && self.entry.is_undecided() == entry.is_undecided();
        self.entry.record = entry.record;
        // The next pass is about the metrics and targets that there are now.
        let has_same_metrics = self.entry.object.hpa.spec.metrics == entry.object.hpa.spec.metrics;
        self.latest = latest.filter(|_| has_same_metrics);
        (self.problems, self.grade) = (problems, grade);
        (self.is_judged, self.is_silent, self.is_changed) = (is_judged, is_silent, is_changed);
    }

    /// The pass whose values the row shows.
    pub(super) fn shown_pass(&self) -> Option<&LatestPass> {
        self.latest.as_ref().filter(|_| !self.entry.shows_status())
    }

    pub(super) fn is_silent_at(&self, now: Timestamp) -> bool {
        self.entry.record.as_ref().is_some_and(|record| silent(record, now))
    }

    /// The present row, and whether the problems are the same as before.
    pub(super) fn update_row(&mut self, now: Timestamp) -> (FeedRow, bool) {
        let is_silent = self.is_silent_at(now);
        let mut has_same_problems = true;
        if !self.is_judged || is_silent != self.is_silent {
            let problems = problems_of(&self.entry, now);
            let group = AutoscalerProblem::group;
            has_same_problems = problems.iter().map(group).eq(self.problems.iter().map(group));
            self.grade = grade(&self.entry, &problems);
            self.problems = problems;
        }
        self.is_silent = is_silent;
        // Without a record, in mode `off` and during a pause, conditions are judged, which may change with every event.
        self.is_judged = self.entry.record.is_some() && !self.entry.is_undecided();
        let row = match self.shown_pass() {
            Some(latest) => {
                let decision = self.entry.sentence_after(Some(&latest.reason));
                let values = RowValues {
                    metrics: &latest.metrics,
                    state: self.grade,
                    pressure: latest.pressure,
                    replicas: latest.replicas.or_else(|| self.entry.replicas()),
                    decision: &decision,
                };
                rows::row(&self.entry, &self.names, &values)
            }
            None => {
                let mut line = AutoscalerLine::of(&self.entry, self.grade);
                if let Some(latest) = &self.latest {
                    line.decision = self.entry.sentence_after(Some(&latest.reason));
                }
                rows::row(&self.entry, &self.names, &RowValues::of(&line))
            }
        };
        (row, has_same_problems)
    }
}
