//! What was found, for people and for programs.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;
use testbed::progress::human;

use super::deed::Step;
use super::deliberate::{DELIBERATE, Deliberate};
use super::ground::Twin;
use super::view::MASKED;
use crate::differential::compare::Field;

/// What a run has found.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    pub(crate) steps: usize,
    pub(crate) scenarios: usize,
    /// Writes of the test itself that the API server refused to one twin and not to another.
    pub(crate) refused: Vec<String>,
    pub(crate) differences: Vec<Difference>,
    /// How often each entry of the list of deliberate differences was needed.
    pub(crate) deliberate: BTreeMap<usize, usize>,
    /// What the steps ended with on their side: conditions and events, and in how many steps.
    pub(crate) seen: BTreeMap<String, usize>,
}

/// A step after which a twin was not as theirs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Difference {
    seed: u64,
    who: String,
    scenario: String,
    step: usize,
    /// What was done up to it.
    titles: Vec<String>,
    /// What was done last.
    deeds: Vec<String>,
    fields: Vec<Field>,
}

impl Difference {
    pub(crate) fn new(seed: u64, twin: Twin, scenario: &str, done: &[Step], fields: Vec<Field>) -> Self {
        Self {
            seed,
            who: format!("{twin:?}").to_lowercase(),
            scenario: scenario.to_owned(),
            step: done.len(),
            titles: done.iter().map(|step| step.title.clone()).collect(),
            deeds: done
                .last()
                .map(|step| step.deeds.iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
            fields,
        }
    }

    fn text(&self) -> String {
        let Self { seed, who, scenario, step, titles, deeds, fields } = self;
        let number = scenario.trim_start_matches('s');
        let mut text = format!("DIFFERENT ({who}): scenario {number}, step {step}\n");
        text += &format!("  again with: cargo xtask differential keda --seed {seed} --only {number}\n");
        for (place, title) in titles.iter().enumerate() {
            text += &format!("  {}. {title}\n", place + 1);
        }
        for deed in deeds {
            text += &format!("       {deed}\n");
        }
        for Field { name, theirs, ours } in fields {
            text += &format!("  {name}\n       theirs  {theirs}\n       ours    {ours}\n");
        }
        text
    }
}

impl Outcome {
    /// Entries of the list that nothing needed.
    pub(crate) fn unused(&self) -> Vec<&'static str> {
        let unused =
            |(place, entry): &(usize, &Deliberate)| entry.often && !self.deliberate.contains_key(place);
        DELIBERATE.iter().enumerate().filter(unused).map(|(_, entry)| entry.why).collect()
    }

    pub(crate) fn text(&self, seed: u64, since: Instant) -> String {
        let mut text: String = self.differences.iter().map(|difference| difference.text() + "\n").collect();
        for refused in &self.refused {
            text += &format!("refused by the API server: {refused}\n");
        }
        text += "compared (steps that ended so):\n";
        self.seen.iter().for_each(|(what, count)| text += &format!("  {count:5}  {what}\n"));
        text += "deliberate (fields):\n";
        for (place, entry) in DELIBERATE.iter().enumerate() {
            let count = self.deliberate.get(&place).copied().unwrap_or_default();
            text += &format!("  {count:5}  {:?}: {}\n", entry.who, entry.why);
        }
        text += "masked:\n";
        for (what, why) in MASKED {
            text += &format!("  {what}: {why}\n");
        }
        let count = |who: &str| self.differences.iter().filter(|difference| difference.who == who).count();
        text += &format!(
            "{} steps in {} scenarios, {} with differences (strict), {} with differences (better), {} (seed {seed})\n",
            self.steps,
            self.scenarios,
            count("strict"),
            count("better"),
            human(since.elapsed()),
        );
        text
    }
}
