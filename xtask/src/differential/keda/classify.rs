//! Classifies the differences of the views after a step: deliberate or unexplained.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::deliberate::{Case, explains};
use super::env::ComparedOperator;
use super::facts::KedaFacts;
use super::view::KedaView;
use crate::differential::compare::Field;

/// The views after a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StepViews {
    pub(crate) scenario: String,
    /// All steps up to it.
    pub(crate) titles: Vec<String>,
    /// The actions of the last step.
    pub(crate) actions: Vec<String>,
    pub(crate) facts: KedaFacts,
    /// In the order of [`ComparedOperator::ALL`].
    pub(crate) views: Vec<KedaView>,
}

/// The differences of earlier steps in a scenario. An event remains visible, so it is classified only at the step after which it occurred.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportedDifferences(BTreeSet<(ComparedOperator, String)>);

/// A deliberate difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeliberateDifference {
    pub(crate) operator: ComparedOperator,
    /// The entry of the list that explains the difference.
    pub(crate) entry: usize,
    pub(crate) field: Field,
}

/// The differences after a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassifiedDifferences {
    pub(crate) deliberate: Vec<DeliberateDifference>,
    /// Unexplained differences, by operator.
    pub(crate) differences: Vec<(ComparedOperator, Vec<Field>)>,
}

/// Compares the views of Plimsoll with KEDA's.
pub(crate) fn classify_differences(
    views: &[KedaView],
    facts: &KedaFacts,
    reported: &ReportedDifferences,
) -> ClassifiedDifferences {
    let mut classified = ClassifiedDifferences::default();
    let [theirs, ours @ ..] = views else { return classified };
    for (operator, ours) in ComparedOperator::ALL.into_iter().skip(1).zip(ours) {
        let mut unexplained = Vec::new();
        for field in KedaView::differences(theirs, ours) {
            if reported.0.contains(&key(operator, &field)) {
                continue;
            }
            match explains(&Case { operator, field: &field, theirs, ours, facts }) {
                Some(entry) => classified.deliberate.push(DeliberateDifference { operator, entry, field }),
                None => unexplained.push(field),
            }
        }
        if !unexplained.is_empty() {
            classified.differences.push((operator, unexplained));
        }
    }
    classified
}

impl ReportedDifferences {
    /// A difference is reported once per scenario; deliberate differences are classified again, except events.
    pub(crate) fn remember(&mut self, classified: &ClassifiedDifferences) {
        for (operator, fields) in &classified.differences {
            self.0.extend(fields.iter().map(|field| key(*operator, field)));
        }
        let deliberate = classified.deliberate.iter();
        let events = deliberate.filter(|difference| difference.field.name.starts_with("event "));
        self.0.extend(events.map(|difference| key(difference.operator, &difference.field)));
    }

    /// Whether a difference of this field was reported before, for any operator.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(_, field)| field.contains(name))
    }
}

fn key(operator: ComparedOperator, field: &Field) -> (ComparedOperator, String) {
    (operator, format!("{field:?}"))
}
