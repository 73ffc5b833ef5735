//! The report of a run, as text and as JSON.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;
use testbed::progress::human;

use super::classify::{ReportedDifferences, StepViews, classify_differences};
use super::deliberate::{self, Deliberate};
use super::env::ComparedOperator;
use super::view::MASKED;
use crate::differential::compare::Field;

/// The result of a run.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KedaOutcome {
    pub(crate) steps: usize,
    pub(crate) scenarios: usize,
    /// Writes of the test itself that the API server rejected for one operator and not for another.
    pub(crate) refused: Vec<String>,
    pub(crate) differences: Vec<KedaDifference>,
    /// The differences that each entry of the list of deliberate differences explains.
    pub(crate) excused: BTreeMap<usize, Vec<String>>,
    /// Conditions and events of KEDA after the steps, and in how many steps each occurred.
    pub(crate) seen: BTreeMap<String, usize>,
    /// All recorded views, which can be compared again.
    #[serde(skip)]
    pub(crate) record: Vec<StepViews>,
}

/// A step after which an operator's objects differ from KEDA's.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KedaDifference {
    seed: u64,
    who: String,
    scenario: String,
    step: usize,
    /// All steps up to it.
    titles: Vec<String>,
    /// The actions of the last step.
    actions: Vec<String>,
    fields: Vec<Field>,
}

impl KedaDifference {
    fn new(seed: u64, operator: ComparedOperator, seen: &StepViews, fields: Vec<Field>) -> Self {
        Self {
            seed,
            who: format!("{operator:?}").to_lowercase(),
            scenario: seen.scenario.clone(),
            step: seen.titles.len(),
            titles: seen.titles.clone(),
            actions: seen.actions.clone(),
            fields,
        }
    }

    fn text(&self) -> String {
        let Self { seed, who, scenario, step, titles, actions, fields } = self;
        let number = scenario.trim_start_matches('s');
        let mut text = format!("DIFFERENT ({who}): scenario {number}, step {step}\n");
        text += &format!("  again with: cargo xtask differential keda --seed {seed} --only {number}\n");
        for (place, title) in titles.iter().enumerate() {
            text += &format!("  {}. {title}\n", place + 1);
        }
        for action in actions {
            text += &format!("       {action}\n");
        }
        for Field { name, theirs, ours } in fields {
            text += &format!("  {name}\n       theirs  {theirs}\n       ours    {ours}\n");
        }
        text
    }
}

impl KedaOutcome {
    /// Adds the views after a step, and their differences.
    pub(crate) fn take(&mut self, seed: u64, seen: StepViews, reported: &mut ReportedDifferences) {
        self.steps += 1;
        let classified = classify_differences(&seen.views, &seen.facts, reported);
        reported.remember(&classified);
        let kinds = seen.views.first().map(super::view::KedaView::kinds).unwrap_or_default();
        for kind in kinds {
            *self.seen.entry(kind).or_default() += 1;
        }
        for difference in classified.deliberate {
            let Field { name, theirs, ours } = difference.field;
            let step = seen.titles.len();
            let line =
                format!("{} step {step} {:?}: {name}: {theirs} / {ours}", seen.scenario, difference.operator);
            self.excused.entry(difference.entry).or_default().push(line);
        }
        for (operator, fields) in classified.differences {
            self.differences.push(KedaDifference::new(seed, operator, &seen, fields));
        }
        self.record.push(seen);
    }

    /// Entries of the list that explained no difference.
    pub(crate) fn unused(&self) -> Vec<&'static str> {
        let unused = |(place, entry): &(usize, &Deliberate)| entry.often && !self.excused.contains_key(place);
        deliberate::all().enumerate().filter(unused).map(|(_, entry)| entry.why).collect()
    }

    pub(crate) fn text(&self, seed: u64, since: Instant, explain: bool) -> String {
        let mut text: String = self.differences.iter().map(|difference| difference.text() + "\n").collect();
        for refused in &self.refused {
            text += &format!("refused by the API server: {refused}\n");
        }
        text += "compared (steps that ended so):\n";
        self.seen.iter().for_each(|(what, count)| text += &format!("  {count:5}  {what}\n"));
        text += "deliberate (fields):\n";
        for (place, entry) in deliberate::all().enumerate() {
            let excused = self.excused.get(&place).map(Vec::as_slice).unwrap_or_default();
            text += &format!("  {:5}  {:?}: {}\n", excused.len(), entry.who, entry.why);
            let shown = excused.iter().filter(|_| explain);
            shown.for_each(|line| text += &format!("           {line}\n"));
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
