//! The table of set-ups.

mod limits;
mod metrics;
mod pods;
mod target;
mod triggers;

use super::test_facts::TestFacts;

/// One set-up and the cause that has to be found first.
pub(super) struct SetUp {
    /// What is wrong, for the table of the page.
    pub(super) what: &'static str,
    /// Identifier of the first cause.
    pub(super) id: &'static str,
    /// Its sentence.
    pub(super) sentence: &'static str,
    pub(super) facts: TestFacts,
}

pub(super) fn all() -> Vec<SetUp> {
    let mut all = target::set_ups();
    all.extend(pods::set_ups());
    all.extend(metrics::set_ups());
    all.extend(limits::set_ups());
    all.extend(triggers::set_ups());
    all
}

fn set_up(what: &'static str, id: &'static str, sentence: &'static str, facts: TestFacts) -> SetUp {
    SetUp { what, id, sentence, facts }
}
