//! Fifty broken set-ups: the first cause that is found, its sentence, and the page that lists it.

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
        let _ = writeln!(table, "| {anchor}`{id}` | {what} | {} | {} |", cell(sentence), cell(&remedy));
    }
    assert!(DOCUMENT.contains(&table), "docs/diagnosis.md needs this table:\n{table}");
}

#[test]
fn unknown_facts_are_never_reported() {
    for SetUp { what, mut facts, .. } in all() {
        facts.cluster = None;
        for one in facts.diagnose(diagnose) {
            let claims_cluster = ["kubelet-down", "selector-too-wide", "two-autoscalers", "paused"];
            assert!(!claims_cluster.contains(&one.id), "{what}: {one:?}");
        }
    }
}
