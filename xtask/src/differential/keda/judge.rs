//! Judges the views after a step: what differs, and which differences are deliberate.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::deliberate::{Case, explains};
use super::env::Subject;
use super::facts::KedaFacts;
use super::view::KedaView;
use crate::differential::compare::Field;

/// What was seen after a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) scenario: String,
    /// All steps up to it.
    pub(crate) titles: Vec<String>,
    /// What was done last.
    pub(crate) actions: Vec<String>,
    pub(crate) facts: KedaFacts,
    /// In the order of [`Subject::ALL`].
    pub(crate) views: Vec<KedaView>,
}

/// What was judged before in a scenario. An event stays to be seen: it is judged by what was there when it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(BTreeSet<(Subject, String)>);

/// A deliberate difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excused {
    pub(crate) subject: Subject,
    /// Which entry of the list explains it.
    pub(crate) entry: usize,
    pub(crate) field: Field,
}

/// What a judgement comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) excused: Vec<Excused>,
    /// Unexplained differences, by subject.
    pub(crate) differences: Vec<(Subject, Vec<Field>)>,
}

/// Compares ours with theirs.
pub(crate) fn judge(views: &[KedaView], facts: &KedaFacts, known: &Known) -> Judgement {
    let mut judgement = Judgement::default();
    let [theirs, ours @ ..] = views else { return judgement };
    for (subject, ours) in Subject::ALL.into_iter().skip(1).zip(ours) {
        let mut unexplained = Vec::new();
        for field in KedaView::differences(theirs, ours) {
            if known.0.contains(&key(subject, &field)) {
                continue;
            }
            match explains(&Case { subject, field: &field, theirs, ours, facts }) {
                Some(entry) => judgement.excused.push(Excused { subject, entry, field }),
                None => unexplained.push(field),
            }
        }
        if !unexplained.is_empty() {
            judgement.differences.push((subject, unexplained));
        }
    }
    judgement
}

impl Known {
    /// A difference is reported once per scenario; deliberate differences are judged again, except events.
    pub(crate) fn remember(&mut self, judgement: &Judgement) {
        for (subject, fields) in &judgement.differences {
            self.0.extend(fields.iter().map(|field| key(*subject, field)));
        }
        let events = judgement.excused.iter().filter(|excused| excused.field.name.starts_with("event "));
        self.0.extend(events.map(|excused| key(excused.subject, &excused.field)));
    }
}

impl Known {
    /// Whether this field was judged before, of any subject.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(_, field)| field.contains(name))
    }
}

fn key(subject: Subject, field: &Field) -> (Subject, String) {
    (subject, format!("{field:?}"))
}
