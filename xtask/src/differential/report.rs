//! The report of a run, as text and as JSON.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::Instant;

use serde::Serialize;
use testbed::progress::human;

use super::compare::{Field, MASKED, Mask};
use super::env::Setting;
use super::scenario::action::{HpaAction, HpaStep};

/// The result of a run.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HpaOutcome {
    pub(crate) steps: usize,
    pub(crate) scenarios: usize,
    /// Rounds in which a copy took longer to settle.
    pub(crate) late: usize,
    /// Steps whose events were not compared because the recorder dropped some.
    pub(crate) events_left_out: usize,
    /// Writes of the test itself that the API server refused.
    pub(crate) refused: Vec<String>,
    pub(crate) differences: Vec<HpaDifference>,
    /// Conditions and events after the steps, and in how many steps each occurred: they show what was compared.
    pub(crate) seen: BTreeMap<String, usize>,
}

/// A step after which the copies differed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HpaDifference {
    seed: u64,
    setting: &'static str,
    scenario: String,
    step: usize,
    /// All steps up to it.
    done: Vec<DoneStep>,
    fields: Vec<Field>,
}

#[derive(Debug, Serialize)]
struct DoneStep {
    title: String,
    actions: Vec<String>,
}

/// A progress line on a terminal.
pub(crate) struct Progress {
    terminal: bool,
    since: Instant,
    steps: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportDocument<'a> {
    #[serde(flatten)]
    outcome: &'a HpaOutcome,
    seed: u64,
    seconds: f64,
    masked: &'static [Mask],
}

impl HpaDifference {
    pub(crate) fn new(
        seed: u64,
        setting: &Setting,
        scenario: &str,
        done: &[HpaStep],
        fields: Vec<Field>,
    ) -> Self {
        let done: Vec<DoneStep> = done
            .iter()
            .map(|step| DoneStep {
                title: step.title.clone(),
                actions: step.actions.iter().map(HpaAction::to_string).collect(),
            })
            .collect();
        Self { seed, setting: setting.name, scenario: scenario.to_owned(), step: done.len(), done, fields }
    }

    pub(crate) fn text(&self) -> String {
        let Self { seed, setting, scenario, step, done, fields } = self;
        let number = scenario.trim_start_matches('s');
        let mut text = format!("DIFFERENT: scenario {number}, step {step} ({setting})\n");
        text += &format!("  again with: cargo xtask differential --seed {seed} --only {number}\n");
        for (place, done) in done.iter().enumerate() {
            text += &format!("  {}. {}\n", place + 1, done.title);
            done.actions.iter().for_each(|action| text += &format!("       {action}\n"));
        }
        for Field { name, theirs, ours } in fields {
            text += &format!("  {name}\n       theirs  {theirs}\n       ours    {ours}\n");
        }
        text
    }
}

impl HpaOutcome {
    pub(crate) fn text(&self, seed: u64, since: Instant) -> String {
        let mut text = self.differences.iter().map(|difference| difference.text() + "\n").collect::<String>();
        for refused in &self.refused {
            text += &format!("refused by the API server: {refused}\n");
        }
        let differences = match self.differences.len() {
            1 => "1 difference".to_owned(),
            count => format!("{count} differences"),
        };
        text += &format!(
            "{} steps in {} scenarios, {differences}, {} (seed {seed}; {} rounds settled late, events of {} steps beyond the limit)\n",
            self.steps,
            self.scenarios,
            human(since.elapsed()),
            self.late,
            self.events_left_out,
        );
        text += "compared (steps that ended so):\n";
        self.seen.iter().for_each(|(what, count)| text += &format!("  {count:5}  {what}\n"));
        text += "masked:\n";
        for mask in MASKED {
            text += &format!("  {}: {}\n", mask.what, mask.why);
        }
        text
    }

    pub(crate) fn json(&self, seed: u64, since: Instant) -> serde_json::Result<String> {
        let seconds = since.elapsed().as_secs_f64();
        serde_json::to_string_pretty(&ReportDocument { outcome: self, seed, seconds, masked: MASKED })
    }
}

impl Progress {
    pub(crate) fn new(steps: usize) -> Self {
        Self { terminal: std::io::stderr().is_terminal(), since: Instant::now(), steps }
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Prints the current state.
    pub(crate) fn note(&self, text: &str) {
        if self.terminal {
            // Errors of the progress output are ignored.
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }

    pub(crate) fn show(&self, outcome: &HpaOutcome) {
        let (done, all, time) = (outcome.steps, self.steps, human(self.since.elapsed()));
        self.note(&format!("{done}/{all} steps  {time}  {} differences", outcome.differences.len()));
    }

    pub(crate) fn end(&self) {
        self.note("");
    }
}
