//! Broken set-ups: the first cause that is found, its sentence, and the page that lists it.

mod clusters;
mod set_ups;
mod test_facts;

use std::fmt::Write as _;

use super::{Concern, diagnose};
use set_ups::{SetUp, all};

/// The page of causes.
const DOCUMENT: &str = include_str!("../../../../docs/diagnosis.md");

#[test]
fn first_cause_of_every_set_up_is_named() {
    let mut wrong = String::new();
    for SetUp { what, id, sentence, facts } in all() {
        let found = facts.diagnose(diagnose);
        let first = found.first().map(|one| (one.id, one.sentence.as_str()));
        if first != Some((id, sentence)) {
            let _ = writeln!(wrong, "{what}\n  expected {id}: {sentence}\n  found    {found:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(all().len() >= 50);
}

#[test]
fn first_line_of_why_names_the_cause() {
    for SetUp { what, sentence, facts, .. } in all() {
        let text = facts.why();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.ends_with(sentence), "{what}: {first}");
    }
}

#[test]
fn problems_have_a_remedy_with_a_link() {
    for SetUp { what, facts, id, .. } in all() {
        let found = facts.diagnose(diagnose);
        let Some(first) = found.first().filter(|one| one.concern == Concern::Problem) else { continue };
        let expected = format!("{} (docs/diagnosis.md#{id})", first.remedy);
        assert!(facts.why().contains(&expected), "{what}: {}", facts.why());
    }
}

/// The table of the page is the table of the set-ups.
#[test]
fn page_lists_every_set_up() {
    let mut table = String::new();
    let mut anchored: Vec<&str> = Vec::new();
    for SetUp { what, id, sentence, facts } in all() {
        let remedy = facts.diagnose(diagnose).first().map(|one| one.remedy.clone()).unwrap_or_default();
        let anchor = if anchored.contains(&id) { String::new() } else { format!("<a id=\"{id}\"></a>") };
        anchored.push(id);
        let cell = |text: &str| text.replace('|', "\\|");
        let clusters = clusters::names_of(id);
        let (sentence, remedy) = (cell(sentence), cell(&remedy));
        let _ = writeln!(table, "| {anchor}`{id}` | {what} | {sentence} | {remedy} | {clusters} |");
    }
    assert!(DOCUMENT.contains(&table), "docs/diagnosis.md needs this table:\n{table}");
}

#[test]
fn unknown_facts_are_never_reported() {
    for SetUp { what, mut facts, .. } in all() {
        facts.cluster = None;
        for one in facts.diagnose(diagnose) {
            let claims_cluster =
                ["kubelet-down", "selector-too-wide", "two-autoscalers", "paused", "autoscaler-off"];
            assert!(!claims_cluster.contains(&one.id), "{what}: {one:?}");
        }
    }
}

/// The sources of the catalogue: each has one function that returns the identifiers of its causes.
const CATALOGUE: [&str; 6] = [
    include_str!("access.rs"),
    include_str!("limits.rs"),
    include_str!("metrics.rs"),
    include_str!("pods.rs"),
    include_str!("target.rs"),
    include_str!("triggers.rs"),
];

/// The string literals of the functions `id`.
fn identifiers() -> Vec<&'static str> {
    let mut found = Vec::new();
    for source in CATALOGUE {
        let (_, after) = source.split_once("fn id(&self)").unwrap();
        let (body, _) = after.split_once("fn concern").unwrap();
        found.extend(body.split('"').skip(1).step_by(2));
    }
    found
}

#[test]
fn every_cause_has_a_set_up_and_an_entry_of_the_page() {
    let found: Vec<&str> =
        all().iter().flat_map(|set_up| set_up.facts.diagnose(diagnose)).map(|one| one.id).collect();
    let all = identifiers();
    assert!(all.len() >= 60, "{all:?}");
    for id in all {
        assert!(found.contains(&id), "{id} has no set-up");
        assert!(DOCUMENT.contains(&format!("<a id=\"{id}\"></a>")), "{id} is not on the page");
    }
}
