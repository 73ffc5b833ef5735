//! Autoscalers as rows.

use std::collections::HashMap;

use api::autoscaling::print::{self, Row};
use api::autoscaling::v2::HorizontalPodAutoscalerCondition;
use api::decisions::{DecisionMode, DecisionRecord, MODE_ANNOTATION};
use api::diagnosis::{PausedFact, diagnose};
use api::table::Table;
use cluster::AutoscalerKind;
use engine::explain;
use engine::normalize::{ScalingLimit, StabilizationHold};
use engine::{Decision, Replicas, ScaleOutcome};
use jiff::Timestamp;

use crate::live::cluster_facts::{is_off, paused};
use crate::live::objects::{self, Object};
use crate::live::page::length;

/// An autoscaler and what was last decided about it.
pub(crate) struct Entry {
    pub(crate) object: Object,
    pub(crate) record: Option<DecisionRecord>,
}

/// Which columns there are in addition to those of `kubectl get hpa`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GetColumns {
    pub(crate) namespace: bool,
    pub(crate) wide: bool,
    /// Whether bounds and replicas share a column, to save width.
    pub(crate) compact: bool,
}

/// A table printed row by row, whose columns only ever grow.
#[derive(Default)]
pub(crate) struct StreamedTable {
    widths: Vec<usize>,
    /// What was last seen of each object: its revision and its sentence.
    seen: HashMap<(String, String), (String, String)>,
}

impl Entry {
    /// As kubectl names it, and a line break.
    pub(crate) fn resource_name(&self) -> String {
        let resource = match self.object.kind {
            AutoscalerKind::Hpa => "horizontalpodautoscaler.autoscaling",
            AutoscalerKind::Autoscaler => "autoscaler.plimsoll.dev",
            AutoscalerKind::ScaledObject => "scaledobject.keda.sh",
            AutoscalerKind::ScaledJob => "scaledjob.keda.sh",
        };
        format!("{resource}/{}\n", self.object.hpa.metadata.name)
    }

    /// The last decision in one sentence, after what keeps the object from being scaled; without a record, the conditions.
    pub(crate) fn sentence(&self) -> String {
        self.sentence_after(None)
    }

    /// The same with the explanation of a later pass that decided what the record says.
    pub(crate) fn sentence_after(&self, later: Option<&str>) -> String {
        match (self.mark(), self.decided(later)) {
            (None, decided) => decided,
            // Nothing is decided about it any more.
            (Some(mark), _) if self.is_off() => mark,
            (Some(mark), decided) if decided.starts_with(&mark) => decided,
            (Some(mark), decided) => format!("{mark}; {decided}"),
        }
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.object.hpa.metadata.annotations.get(name).map(String::as_str)
    }

    /// Whether the annotation says that nothing is decided about it, whatever was decided before.
    pub(crate) fn is_off(&self) -> bool {
        is_off(self.object.kind, &self.object.hpa.metadata.annotations)
    }

    /// Whether annotations pause a ScaledObject or ScaledJob.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused().is_some()
    }

    fn paused(&self) -> Option<PausedFact> {
        paused(self.object.kind, &self.object.hpa.metadata.annotations)
    }

    /// Whether nothing is decided about it because its annotations say so.
    pub(crate) fn is_undecided(&self) -> bool {
        self.is_off() || self.is_paused()
    }

    /// Whether rows show the status instead of what was decided: in mode `off` that is outdated, and in shadow mode another
    /// controller scales the HPA and writes its status.
    pub(crate) fn shows_status(&self) -> bool {
        let is_shadow = |record: &DecisionRecord| record.mode == DecisionMode::Shadow;
        // The counts of a status without conditions are missing, not zero: no controller has written it yet.
        let is_written = !self.object.hpa.status.conditions.is_empty();
        let is_hpa = self.object.kind == AutoscalerKind::Hpa;
        self.is_off() || (is_hpa && is_written && self.record.as_ref().is_some_and(is_shadow))
    }

    /// What keeps the object from being scaled: a mode, a dry run, a pause.
    fn mark(&self) -> Option<String> {
        if self.object.kind.has_triggers() {
            let PausedFact { replicas } = self.paused()?;
            return Some(replicas.map_or_else(|| "paused".to_owned(), |count| format!("paused at {count}")));
        }
        if self.is_off() {
            return Some(format!("off: nothing is decided (annotation {MODE_ANNOTATION})"));
        }
        match (self.record.as_ref().map(|record| record.mode), self.annotation(MODE_ANNOTATION)) {
            (Some(DecisionMode::Shadow), _) | (None, Some("shadow")) => Some("shadow".to_owned()),
            (Some(DecisionMode::DryRun), _) | (None, Some("dry-run")) => Some("dry run".to_owned()),
            _ => self.object.dry_run.then(|| "dry run".to_owned()),
        }
    }

    fn decided(&self, later: Option<&str>) -> String {
        match &self.record {
            Some(record) => {
                let decision = &record.decision;
                let why = later.map_or_else(|| record.sentence(), str::to_owned);
                match decision.outcome {
                    ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_) => {
                        let cause = diagnose(&record.facts(None)).into_iter().next();
                        cause.map_or(why, |cause| format!("held: {}", cause.sentence))
                    }
                    ScaleOutcome::Scaled => format!("{} → {}: {why}", decision.current(), decision.desired),
                    ScaleOutcome::DryRun => {
                        format!("would go {} → {}: {why}", decision.current(), decision.desired)
                    }
                    _ => why,
                }
            }
            None if self.object.kind.has_triggers() => {
                by_conditions_of_events(&self.object.hpa.status.conditions)
            }
            None => by_conditions(&self.object.hpa.status.conditions),
        }
    }

    /// What `kubectl get hpa` shows under TARGETS; for a ScaledObject or ScaledJob, the values of its triggers.
    pub(crate) fn targets(&self) -> String {
        let hpa = &self.object.hpa;
        match self.record.as_ref().and_then(|record| record.round.as_ref()) {
            Some(round) => explain::targets(round, self.replicas().map(Replicas::new)),
            None if self.object.kind.has_triggers() => "<unknown>".to_owned(),
            None => {
                let current = hpa.status.current_metrics.as_deref().unwrap_or_default();
                explain::plain(&print::targets(&hpa.spec.metrics, current))
            }
        }
    }

    /// Current and desired replicas of the status. Objects with triggers have no such fields.
    pub(crate) fn status_counts(&self) -> Option<(i32, i32)> {
        if self.object.kind.has_triggers() {
            return None;
        }
        objects::status_counts(&self.object.hpa.status)
    }

    /// The number of replicas or of jobs that have not finished, if it is known: from the status, or else from the last decision,
    /// which is outdated in mode `off`.
    pub(crate) fn replicas(&self) -> Option<i32> {
        let of_status = self.status_counts().map(|(current, _)| current);
        of_status.or_else(|| self.decided_replicas().filter(|_| !self.is_off()))
    }

    fn decided_replicas(&self) -> Option<i32> {
        let decision = &self.record.as_ref()?.decision;
        let scale = decision.scale.as_ref()?;
        Some(
            if decision.outcome == ScaleOutcome::Scaled { decision.desired } else { scale.spec_replicas }
                .get(),
        )
    }

    /// The replicas that metrics proposed.
    fn wanted(&self) -> String {
        let wanted = self.record.as_ref().and_then(|r| r.decision.recommendation.as_ref());
        wanted.map_or_else(|| "-".to_owned(), |r| r.replicas.to_string())
    }

    /// How long the decision has been the same.
    fn since(&self, now: Timestamp) -> String {
        self.record.as_ref().map_or_else(|| "-".to_owned(), |r| api::age::since(Some(r.first), now))
    }
}

/// The limits between the proposal and the result.
pub(crate) fn limited_by(decision: &Decision) -> &'static str {
    let Some(normalized) = &decision.normalized else { return "-" };
    match (normalized.limited.limit, normalized.stabilized.hold) {
        (ScalingLimit::TooMany, _) => "max",
        (ScalingLimit::TooFew, _) => "min",
        (ScalingLimit::Up, _) => "up rate",
        (ScalingLimit::Down, _) => "down rate",
        (ScalingLimit::Within, StabilizationHold::Down) => "down window",
        (ScalingLimit::Within, StabilizationHold::Up) => "up window",
        (ScalingLimit::Within, StabilizationHold::None) => "-",
    }
}

/// The message of the most important condition.
fn by_conditions(conditions: &[HorizontalPodAutoscalerCondition]) -> String {
    let bad = |c: &&HorizontalPodAutoscalerCondition| {
        let good = if c.type_ == "ScalingLimited" { "False" } else { "True" };
        c.status != good && c.type_ != "ScaledToZero"
    };
    match conditions.iter().find(bad) {
        Some(condition) => format!("{}: {}", condition.reason, explain::plain(&condition.message)),
        None if conditions.is_empty() => "not reconciled yet".to_owned(),
        None => "ok".to_owned(),
    }
}

/// A summary of a ScaledObject's conditions.
fn by_conditions_of_events(conditions: &[HorizontalPodAutoscalerCondition]) -> String {
    let found = |kind: &str| conditions.iter().find(|c| c.type_ == kind);
    match (found("Paused"), found("Ready"), found("Active")) {
        (Some(paused), ..) if paused.status == "True" => "paused".to_owned(),
        (_, Some(ready), _) if ready.status != "True" && !ready.reason.is_empty() => {
            format!("{}: {}", ready.reason, ready.message)
        }
        (.., Some(active)) if active.status == "True" => "active".to_owned(),
        (.., Some(active)) if active.status == "False" => format!("not active ({})", active.reason),
        _ => "not reconciled yet".to_owned(),
    }
}

impl GetColumns {
    fn titles(self) -> Vec<&'static str> {
        let mut titles = Vec::new();
        titles.extend(self.namespace.then_some("Namespace"));
        if self.compact {
            titles.push("Name");
            titles.extend((!self.wide).then_some("Reference"));
            titles.extend(["Targets", "Replicas", "Age"]);
        } else {
            titles.extend(print::COLUMNS);
        }
        if self.wide {
            titles.extend(["Wanted", "Limited by", "Since"]);
        }
        titles.push("Last decision");
        titles
    }

    fn cells(self, entry: &Entry, now: Timestamp) -> Vec<String> {
        let mut cells = Vec::new();
        cells.extend(self.namespace.then(|| entry.object.namespace().to_owned()));
        let row = Row::new(&entry.object.hpa, now);
        cells.push(entry.object.named().to_string());
        if !(self.compact && self.wide) {
            cells.push(row.reference);
        }
        cells.push(entry.targets());
        let replicas = entry.replicas().map_or_else(|| "-".to_owned(), |count| count.to_string());
        if self.compact {
            cells.push(format!("{replicas} of {}–{}", row.min_pods, row.max_pods));
        } else {
            cells.extend([row.min_pods, row.max_pods.to_string(), replicas]);
        }
        cells.push(row.age);
        if self.wide {
            let limited = entry.record.as_ref().map_or("-", |record| limited_by(&record.decision));
            cells.extend([entry.wanted(), limited.to_owned(), entry.since(now)]);
        }
        cells.push(entry.sentence());
        cells
    }

    pub(crate) fn table(self, entries: &[Entry], now: Timestamp) -> Table {
        let mut table = Table::new(self.titles());
        table.rows = entries.iter().map(|entry| self.cells(entry, now)).collect();
        table
    }
}

impl StreamedTable {
    /// The rows that changed.
    pub(crate) fn changed<'a>(&mut self, entries: &'a [Entry]) -> Vec<&'a Entry> {
        let mut changed = Vec::new();
        let mut seen = HashMap::new();
        for entry in entries {
            let key = (entry.object.namespace().to_owned(), entry.object.named().to_string());
            let is = (entry.object.hpa.metadata.resource_version.clone(), entry.sentence());
            if self.seen.get(&key) != Some(&is) {
                changed.push(entry);
            }
            seen.insert(key, is);
        }
        self.seen = seen;
        changed
    }

    /// The lines of rows, the heading before the first.
    pub(crate) fn lines(&mut self, columns: GetColumns, entries: &[&Entry], now: Timestamp) -> String {
        let rows: Vec<Vec<String>> = entries.iter().map(|entry| columns.cells(entry, now)).collect();
        let mut text = String::new();
        if self.widths.is_empty() && !rows.is_empty() {
            let titles: Vec<String> = columns.titles().iter().map(|title| title.to_uppercase()).collect();
            self.grow(&titles);
            for row in &rows {
                self.grow(row);
            }
            text += &self.line(&titles);
        }
        for row in rows {
            self.grow(&row);
            text += &self.line(&row);
        }
        text
    }

    fn grow(&mut self, cells: &[String]) {
        self.widths.resize(cells.len().max(self.widths.len()), 0);
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = length(cell).max(*width);
        }
    }

    fn line(&self, cells: &[String]) -> String {
        let padded = |(cell, width): (&String, &usize)| format!("{cell:<width$}   ");
        let text: String = cells.iter().zip(&self.widths).map(padded).collect();
        format!("{}\n", text.trim_end())
    }
}

#[cfg(test)]
mod tests;
