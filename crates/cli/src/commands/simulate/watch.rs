//! The table that `kubectl get hpa --watch` would print, as virtual time passes.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use engine::explain::{clock, sentence};
use engine::{Decision, Observation, ScaleOutcome};
use jiff::Timestamp;
use sim::report::ReportRecorder;
use sim::{DueDecision, Millis, Observer, Scenario, WorkloadSample};

use super::progress::Progress;
use crate::failure::Failure;
use crate::output::Format;
use crate::scenario::row;

/// Watches a run: records it, prints it, and keeps to the speed the user chose.
pub(crate) struct Watch<'a> {
    scenario: &'a Scenario,
    recorder: ReportRecorder,
    table: Option<SimulationColumns>,
    progress: Progress,
    pace: Option<Pace>,
    load: Vec<WorkloadSample>,
    /// What was last printed for each autoscaler, without the age.
    shown: Vec<Vec<String>>,
    failed: Option<Failure>,
}

/// Virtual seconds per second.
struct Pace {
    factor: f64,
    began: Instant,
}

/// Columns that only ever grow, so that a table can be printed row by row.
struct SimulationColumns {
    wide: bool,
    widths: Vec<usize>,
}

impl Pace {
    /// How long after the start a moment of virtual time is; the longest duration if a tiny factor makes it longer.
    fn due(&self, elapsed: Millis) -> Duration {
        Duration::try_from_secs_f64(elapsed.as_secs_f64() / self.factor).unwrap_or(Duration::MAX)
    }
}

impl<'a> Watch<'a> {
    pub(crate) fn new(scenario: &'a Scenario, table: Option<Format>, speed: Option<f64>) -> Self {
        let printed_to_terminal = table.is_some() && std::io::stdout().is_terminal();
        let mut watch = Self {
            scenario,
            recorder: ReportRecorder::new(scenario),
            table: table.map(|format| SimulationColumns { wide: format == Format::Wide, widths: Vec::new() }),
            progress: Progress::new(scenario.duration, !printed_to_terminal),
            pace: speed.map(|factor| Pace { factor, began: Instant::now() }),
            load: Vec::new(),
            shown: vec![Vec::new(); scenario.autoscalers.len()],
            failed: None,
        };
        watch.header();
        watch
    }

    /// What was seen, unless printing failed.
    pub(crate) fn finish(self) -> Result<ReportRecorder, Failure> {
        self.progress.finish();
        match self.failed {
            Some(failure) => Err(failure),
            None => Ok(self.recorder),
        }
    }

    fn header(&mut self) {
        let Some(table) = &mut self.table else { return };
        let mut titles: Vec<String> =
            api::autoscaling::print::COLUMNS.iter().map(|c| c.to_uppercase()).collect();
        // Names and targets vary in length; room for the longest avoids a ragged table.
        table.widths = titles.iter().map(String::len).collect();
        for plan in &self.scenario.autoscalers {
            for (width, cell) in
                table.widths.iter_mut().zip(row(plan, None, self.scenario.start, self.scenario.start))
            {
                *width = (*width).max(cell.chars().count());
            }
        }
        if table.wide {
            // With these columns AGE is no longer last; their widths are fixed because no row has been printed.
            let extra = [("AGE", 6), ("TIME", 8), ("DESIRED", 7), ("READY", 5), ("LOAD", 8), ("WHY", 3)];
            table.widths.truncate(titles.len() - 1);
            table.widths.extend(extra.map(|(_, width)| width));
            titles.extend(extra.iter().skip(1).map(|(title, _)| (*title).to_owned()));
        }
        let line = table.line(&titles);
        self.print(&line);
    }

    fn print(&mut self, line: &str) {
        let result = writeln!(std::io::stdout().lock(), "{line}");
        if let Err(error) = result {
            self.failed.get_or_insert(error.into());
        }
    }

    /// Waits until it is time for a moment of virtual time.
    fn keep_pace(&self, elapsed: Millis) {
        if let Some(pace) = &self.pace {
            std::thread::sleep(pace.due(elapsed).saturating_sub(pace.began.elapsed()));
        }
    }

    fn wide_cells(&self, due: &DueDecision, decision: &Decision, workload: usize) -> Vec<String> {
        let sample = self.load.get(workload);
        let plan = self.scenario.autoscalers.get(due.autoscaler);
        vec![
            clock(due.at),
            decision.desired.to_string(),
            sample.map(|s| s.ready.to_string()).unwrap_or_default(),
            sample.map(|s| format!("{:.1}/s", s.offered)).unwrap_or_default(),
            plan.map(|plan| sentence(&plan.spec, decision)).unwrap_or_default(),
        ]
    }
}

/// Whether a decision changes the count, or would without a dry run.
fn changes(decision: &Decision) -> bool {
    matches!(decision.outcome, ScaleOutcome::Scaled | ScaleOutcome::DryRun)
}

impl Observer for Watch<'_> {
    fn step(&mut self, due: &DueDecision, seen: &Observation, decision: &Decision) {
        self.recorder.step(due, seen, decision);
        self.progress.at(due.elapsed);
        self.keep_pace(due.elapsed);
        let Some(plan) = self.scenario.autoscalers.get(due.autoscaler).filter(|_| self.table.is_some())
        else {
            return;
        };
        let mut cells = row(plan, Some(&decision.status), self.scenario.start, due.at);
        let age = cells.pop().unwrap_or_default();
        let mut key = cells.clone();
        if self.table.as_ref().is_some_and(|table| table.wide) {
            // The status has the count before the decision, so that a change would first be seen in a row that keeps it.
            key.push(decision.desired.to_string());
            key.push(changes(decision).to_string());
        }
        let Some(shown) = self.shown.get_mut(due.autoscaler) else { return };
        if *shown == key {
            return;
        }
        *shown = key;
        cells.push(age);
        if self.table.as_ref().is_some_and(|table| table.wide) {
            cells.extend(self.wide_cells(due, decision, plan.workload));
        }
        if let Some(line) = self.table.as_mut().map(|table| table.line(&cells)) {
            self.print(&line);
        }
    }

    fn sample(&mut self, at: Timestamp, workload: usize, sample: &WorkloadSample) {
        self.recorder.sample(at, workload, sample);
        if self.load.len() <= workload {
            self.load.resize(workload + 1, *sample);
        }
        if let Some(slot) = self.load.get_mut(workload) {
            *slot = *sample;
        }
    }

    fn keep_going(&self) -> bool {
        self.failed.is_none()
    }

    fn end(&mut self, elapsed: Millis) {
        self.recorder.end(elapsed);
        self.keep_pace(elapsed);
    }
}

impl SimulationColumns {
    /// A line with every cell padded to its column, and columns grown to fit.
    fn line(&mut self, cells: &[String]) -> String {
        let mut text = String::new();
        for (index, cell) in cells.iter().enumerate() {
            if self.widths.len() <= index {
                self.widths.push(0);
            }
            let length = cell.chars().count();
            let Some(width) = self.widths.get_mut(index) else { continue };
            *width = (*width).max(length);
            text += cell;
            if index + 1 < cells.len() {
                text.extend(std::iter::repeat_n(' ', *width - length + 3));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_that_is_almost_zero_waits_and_does_not_overflow() {
        let due = |factor| Pace { factor, began: Instant::now() }.due(Millis::from_secs(15));
        assert_eq!(due(60.0), Duration::from_millis(250));
        assert_eq!(due(1e-300), Duration::MAX);
    }
}
