//! Tests the comparison: recorded views of Plimsoll are spoiled, one field at a time, which must be detected.

use std::collections::BTreeMap;

use super::deliberate::BURST;
use super::judge::{Known, Seen, judge};
use super::view::KedaView;

/// One way to spoil a view.
struct SpoilRule {
    what: &'static str,
    /// Whether it is about this field.
    is_it: fn(&str) -> bool,
    /// Whether the field is lost, not changed.
    lost: bool,
}

const WAYS: [SpoilRule; 8] = [
    SpoilRule { what: "another number of replicas", is_it: |name| name == "target.replicas", lost: false },
    SpoilRule {
        what: "another bound of an HPA",
        is_it: |name| name.starts_with("hpa/") && name.ends_with(".spec.maxReplicas"),
        lost: false,
    },
    SpoilRule {
        what: "another target in an HPA",
        is_it: |name| {
            name.starts_with("hpa/")
                && name.contains(".spec.metrics[0]")
                && name.ends_with(".target.averageValue")
        },
        lost: false,
    },
    SpoilRule {
        what: "no Ready",
        is_it: |name| name.starts_with("object.status.conditions.Ready."),
        lost: true,
    },
    SpoilRule {
        what: "another Fallback",
        is_it: |name| name == "object.status.conditions.Fallback.status",
        lost: false,
    },
    SpoilRule { what: "no finalizer", is_it: |name| name.starts_with("object.finalizers"), lost: true },
    SpoilRule { what: "another number of Jobs", is_it: |name| name.starts_with("jobs "), lost: false },
    SpoilRule {
        what: "no event of a scale",
        is_it: |name| name.starts_with("event Normal KEDAScaleTarget"),
        lost: true,
    },
];

/// How often each way was tried, and where it was not detected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Spoiled {
    tried: BTreeMap<&'static str, usize>,
    pub(crate) missed: Vec<String>,
}

impl Spoiled {
    /// Spoils one step in all ways.
    pub(crate) fn try_all(&mut self, seen: &Seen, known: &Known) {
        let plain = judge(&seen.views, &seen.facts, known);
        let differs: Vec<&str> = plain
            .excused
            .iter()
            .map(|excused| excused.field.name.as_str())
            .chain(plain.differences.iter().flat_map(|(_, fields)| fields).map(|field| field.name.as_str()))
            .collect();
        for (place, way) in (1..seen.views.len()).flat_map(|place| WAYS.iter().map(move |way| (place, way))) {
            let mut views = seen.views.clone();
            // A deliberate difference cannot be spoiled.
            let many = |kind: &str| {
                seen.views.get(place).is_some_and(|view| view.reported.get(kind) >= Some(&BURST))
            };
            let held_back = |name: &str| name.starts_with("event ") && (many("Normal") || many("Warning"));
            let whole = |name: &str| {
                (way.is_it)(name) && !differs.contains(&name) && !known.has(name) && !held_back(name)
            };
            let Some(spoiled) = views.get_mut(place).and_then(|view| spoil(view, way, whole)) else {
                continue;
            };
            *self.tried.entry(way.what).or_default() += 1;
            let judgement = judge(&views, &seen.facts, known);
            let found = judgement.differences.iter().flat_map(|(_, fields)| fields);
            if !found.into_iter().any(|field| field.name == spoiled) {
                let by = judgement.excused.iter().find(|excused| excused.field.name == spoiled);
                let by = by.map(|excused| excused.entry);
                let (scenario, step) = (&seen.scenario, seen.titles.len());
                self.missed.push(format!("{scenario} step {step}: {}: {spoiled} (entry {by:?})", way.what));
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::from("spoiled:\n");
        self.tried.iter().for_each(|(what, count)| text += &format!("  {count:5}  {what}\n"));
        self.missed.iter().for_each(|missed| text += &format!("NOT FOUND: {missed}\n"));
        let tried: usize = self.tried.values().sum();
        text + &format!("{} of {tried} were found\n", tried - self.missed.len())
    }
}

/// Spoils the first field of a view that may be; its name.
fn spoil(view: &mut KedaView, way: &SpoilRule, whole: impl Fn(&str) -> bool) -> Option<String> {
    let name = view.fields.keys().find(|name| whole(name))?.clone();
    if way.lost {
        view.fields.retain(|name, _| !whole(name));
    } else if let Some(value) = view.fields.get_mut(&name) {
        value.push('1');
    }
    Some(name)
}
