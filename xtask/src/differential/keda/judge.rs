//! Judges the views after a step: the differences, and which of them are deliberate.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::deliberate::{Case, explains};
use super::env::ComparedOperator;
use super::facts::KedaFacts;
use super::view::KedaView;
use crate::differential::compare::Field;

/// The views after a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) scenario: String,
    /// All steps up to it.
    pub(crate) titles: Vec<String>,
    /// The actions of the last step.
    pub(crate) actions: Vec<String>,
    pub(crate) facts: KedaFacts,
    /// In the order of [`ComparedOperator::ALL`].
    pub(crate) views: Vec<KedaView>,
}

/// The differences of earlier steps in a scenario. An event remains visible, so it is judged only at the step after which it occurred.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(BTreeSet<(ComparedOperator, String)>);

/// A deliberate difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excused {
    pub(crate) operator: ComparedOperator,
    /// The entry of the list that explains the difference.
    pub(crate) entry: usize,
    pub(crate) field: Field,
}

/// The result of a judgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) excused: Vec<Excused>,
    /// Unexplained differences, by operator.
    pub(crate) differences: Vec<(ComparedOperator, Vec<Field>)>,
}

/// Compares our views with KEDA's.
pub(crate) fn judge(views: &[KedaView], facts: &KedaFacts, known: &Known) -> Judgement {
    let mut judgement = Judgement::default();
    let [theirs, ours @ ..] = views else { return judgement };
    for (operator, ours) in ComparedOperator::ALL.into_iter().skip(1).zip(ours) {
        let mut unexplained = Vec::new();
        for field in KedaView::differences(theirs, ours) {
            if known.0.contains(&key(operator, &field)) {
                continue;
            }
            match explains(&Case { operator, field: &field, theirs, ours, facts }) {
                Some(entry) => judgement.excused.push(Excused { operator, entry, field }),
                None => unexplained.push(field),
            }
        }
        if !unexplained.is_empty() {
            judgement.differences.push((operator, unexplained));
        }
    }
    judgement
}

impl Known {
    /// A difference is reported once per scenario; deliberate differences are judged again, except events.
    pub(crate) fn remember(&mut self, judgement: &Judgement) {
        for (operator, fields) in &judgement.differences {
            self.0.extend(fields.iter().map(|field| key(*operator, field)));
        }
        let events = judgement.excused.iter().filter(|excused| excused.field.name.starts_with("event "));
        self.0.extend(events.map(|excused| key(excused.operator, &excused.field)));
    }
}

impl Known {
    /// Whether a difference of this field was judged before, for any operator.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(_, field)| field.contains(name))
    }
}

fn key(operator: ComparedOperator, field: &Field) -> (ComparedOperator, String) {
    (operator, format!("{field:?}"))
}
