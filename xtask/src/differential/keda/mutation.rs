//! Tests the comparison: recorded views of Plimsoll are mutated, one field at a time, which must be detected.

use std::collections::BTreeMap;

use super::classify::{ReportedDifferences, StepViews, classify_differences};
use super::deliberate::EVENT_BURST;
use super::view::KedaView;

/// A mutation of a view.
struct ViewMutation {
    what: &'static str,
    /// Whether the mutation applies to this field.
    is_it: fn(&str) -> bool,
    /// Whether the field is removed instead of changed.
    lost: bool,
}

const MUTATIONS: [ViewMutation; 8] = [
    ViewMutation { what: "another number of replicas", is_it: |name| name == "target.replicas", lost: false },
    ViewMutation {
        what: "another bound of an HPA",
        is_it: |name| name.starts_with("hpa/") && name.ends_with(".spec.maxReplicas"),
        lost: false,
    },
    ViewMutation {
        what: "another target in an HPA",
        is_it: |name| {
            name.starts_with("hpa/")
                && name.contains(".spec.metrics[0]")
                && name.ends_with(".target.averageValue")
        },
        lost: false,
    },
    ViewMutation {
        what: "no Ready",
        is_it: |name| name.starts_with("object.status.conditions.Ready."),
        lost: true,
    },
    ViewMutation {
        what: "another Fallback",
        is_it: |name| name == "object.status.conditions.Fallback.status",
        lost: false,
    },
    ViewMutation { what: "no finalizer", is_it: |name| name.starts_with("object.finalizers"), lost: true },
    ViewMutation { what: "another number of Jobs", is_it: |name| name.starts_with("jobs "), lost: false },
    ViewMutation {
        what: "no event of a scale",
        is_it: |name| name.starts_with("event Normal KEDAScaleTarget"),
        lost: true,
    },
];

/// The number of tries of each mutation, and where it was not detected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MutationResult {
    tried: BTreeMap<&'static str, usize>,
    pub(crate) missed: Vec<String>,
}

impl MutationResult {
    /// Applies all mutations to one step.
    pub(crate) fn try_all(&mut self, seen: &StepViews, reported: &ReportedDifferences) {
        let plain = classify_differences(&seen.views, &seen.facts, reported);
        let differs: Vec<&str> = plain
            .deliberate
            .iter()
            .map(|difference| difference.field.name.as_str())
            .chain(plain.differences.iter().flat_map(|(_, fields)| fields).map(|field| field.name.as_str()))
            .collect();
        for (index, mutation) in
            (1..seen.views.len()).flat_map(|index| MUTATIONS.iter().map(move |mutation| (index, mutation)))
        {
            let mut views = seen.views.clone();
            // A field with a deliberate difference cannot be mutated.
            let many = |kind: &str| {
                seen.views.get(index).is_some_and(|view| view.reported.get(kind) >= Some(&EVENT_BURST))
            };
            let held_back = |name: &str| name.starts_with("event ") && (many("Normal") || many("Warning"));
            let whole = |name: &str| {
                (mutation.is_it)(name) && !differs.contains(&name) && !reported.has(name) && !held_back(name)
            };
            let Some(mutated) = views.get_mut(index).and_then(|view| mutate(view, mutation, whole)) else {
                continue;
            };
            *self.tried.entry(mutation.what).or_default() += 1;
            let classified = classify_differences(&views, &seen.facts, reported);
            let found = classified.differences.iter().flat_map(|(_, fields)| fields);
            if !found.into_iter().any(|field| field.name == mutated) {
                let by = classified.deliberate.iter().find(|difference| difference.field.name == mutated);
                let by = by.map(|difference| difference.entry);
                let (scenario, step) = (&seen.scenario, seen.titles.len());
                self.missed
                    .push(format!("{scenario} step {step}: {}: {mutated} (entry {by:?})", mutation.what));
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::from("mutations:\n");
        self.tried.iter().for_each(|(what, count)| text += &format!("  {count:5}  {what}\n"));
        self.missed.iter().for_each(|missed| text += &format!("NOT FOUND: {missed}\n"));
        let tried: usize = self.tried.values().sum();
        text + &format!("{} of {tried} were found\n", tried - self.missed.len())
    }
}

/// Mutates the first field of a view to which the mutation applies, and returns its name.
fn mutate(view: &mut KedaView, mutation: &ViewMutation, whole: impl Fn(&str) -> bool) -> Option<String> {
    let name = view.fields.keys().find(|name| whole(name))?.clone();
    if mutation.lost {
        view.fields.retain(|name, _| !whole(name));
    } else if let Some(value) = view.fields.get_mut(&name) {
        value.push('1');
    }
    Some(name)
}
