//! Shadow mode: compares our decisions with the status that the acting controller has written.
//!
//! Both controllers decide up to a period apart and read metrics at different times, so they disagree for a while after
//! each change. A difference counts only if two of our decisions in a row, at least a period apart, had it,
//! and neither side adopted the other's earlier value in between. It ends as soon as both agree once.
//! Other effects of timing are listed in [`field_value`].
//!
//! Under a moving load that is not enough. So each decision is made again with the readings that the acting controller has written
//! ([`replay`]): a difference that is gone then was one of timing, and is counted apart; one that remains is one of logic.

mod field_value;
mod page;
mod replay;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use api::decisions::{API_VERSION, DecisionMeta, DifferenceList, DifferenceRecord};
use cluster::AutoscalerKey;
use engine::report::{CurrentMetricValue, condition};
use engine::{Decision, Observation, Spec, Status};
use jiff::{SignedDuration, Timestamp};

pub use page::page;

use field_value::FieldValue;
use replay::Replay;

/// The compared fields.
pub const FIELDS: [&str; 4] =
    ["desiredReplicas", condition::ABLE_TO_SCALE, condition::SCALING_ACTIVE, condition::SCALING_LIMITED];
/// How many differences are kept.
pub const MAX_DIFFERENCES: usize = 1000;

/// Compared autoscalers and their differences.
#[derive(Debug, Default)]
pub struct Shadow {
    autoscalers: HashMap<AutoscalerKey, ComparedAutoscaler>,
    /// Differences by number, oldest first.
    found: VecDeque<ShadowDifference>,
    counts: ShadowCounts,
    since: Option<Timestamp>,
    /// The number of autoscalers that differ now.
    differing: usize,
    replays: HashMap<AutoscalerKey, Replay>,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShadowCounts {
    /// Decisions compared.
    pub compared: u64,
    /// Differences of logic, in the order of [`FIELDS`].
    pub differences: [u64; FIELDS.len()],
    /// Differences of timing, in the order of [`FIELDS`].
    pub timing: [u64; FIELDS.len()],
}

/// One autoscaler.
#[derive(Debug)]
struct ComparedAutoscaler {
    since: Timestamp,
    decisions: u64,
    /// The number of its differences of timing.
    timing: u64,
    fields: [FieldComparison; FIELDS.len()],
}

/// The comparison of one field.
#[derive(Debug, Default)]
enum FieldComparison {
    #[default]
    Same,
    /// The values differ, perhaps because of timing.
    Unsure(Disagreement),
    /// The values differ: the number of the difference.
    Differs(u64),
    /// The values differ because the two sides read metrics at different times.
    Timing,
}

#[derive(Debug)]
struct Disagreement {
    since: Timestamp,
    /// The values at the last decision.
    theirs: FieldValue,
    ours: FieldValue,
}

#[derive(Debug)]
struct ShadowDifference {
    number: u64,
    key: AutoscalerKey,
    record: DifferenceRecord,
}

impl Shadow {
    /// Decides again with the readings of the acting controller, for [`Shadow::compare`]. None: they do not suffice.
    pub fn replay(
        &mut self,
        now: Timestamp,
        key: &AutoscalerKey,
        seen: &Observation,
        readings: &[Option<CurrentMetricValue>],
    ) -> Vec<Decision> {
        self.replays.entry(key.clone()).or_default().decide(now, seen, readings)
    }

    /// Compares our decision with the status that the acting controller has written. `replayed` are the decisions with its readings.
    /// Returns the differences of logic that begin to count.
    #[allow(clippy::too_many_arguments, reason = "both sides of the comparison, and its context")]
    pub fn compare(
        &mut self,
        now: Timestamp,
        key: &AutoscalerKey,
        theirs: &Status,
        spec: &Spec,
        ours: &Decision,
        replayed: &[Decision],
        period: SignedDuration,
    ) -> Vec<DifferenceRecord> {
        // The acting controller has not reconciled this autoscaler yet.
        if theirs.conditions.is_empty() {
            return Vec::new();
        }
        self.since = self.since.or(Some(now));
        self.counts.compared += 1;
        let new = || ComparedAutoscaler { since: now, decisions: 0, timing: 0, fields: Default::default() };
        let mut compared = self.autoscalers.remove(key).unwrap_or_else(new);
        compared.decisions += 1;
        let before = compared.differs();
        let mut begun = Vec::new();
        for (place, field) in FIELDS.into_iter().enumerate() {
            let Some(view) = compared.fields.get_mut(place) else { continue };
            let disagreement = field_value::disagree(field, theirs, ours);
            let is_timing =
                replayed.iter().any(|replayed| field_value::disagree(field, theirs, replayed).is_none());
            match (&view, disagreement) {
                (FieldComparison::Same | FieldComparison::Unsure(_) | FieldComparison::Timing, None) => {
                    *view = FieldComparison::Same;
                }
                (FieldComparison::Timing, Some(_)) if is_timing => {}
                (FieldComparison::Differs(number), Some(_)) if is_timing => {
                    self.end(*number);
                    *view = FieldComparison::Timing;
                }
                (FieldComparison::Differs(number), None) => {
                    self.end(*number);
                    *view = FieldComparison::Same;
                }
                (FieldComparison::Same | FieldComparison::Timing, Some((theirs, ours))) => {
                    *view = FieldComparison::Unsure(Disagreement { since: now, theirs, ours });
                }
                (FieldComparison::Unsure(doubt), Some((their, our))) => {
                    let doubt = doubt.goes_on(now, their, our);
                    if doubt.since == now || now.duration_since(doubt.since) < period {
                        *view = FieldComparison::Unsure(doubt);
                        continue;
                    }
                    if is_timing {
                        *view = FieldComparison::Timing;
                        compared.timing += 1;
                        if let Some(count) = self.counts.timing.get_mut(place) {
                            *count += 1;
                        }
                        continue;
                    }
                    let why = engine::explain::sentence(spec, ours);
                    let record = record(key, field, &doubt, now, why);
                    *view = FieldComparison::Differs(self.begin(place, key, record.clone()));
                    begun.push(record);
                }
                (FieldComparison::Differs(number), Some((their, our))) => {
                    if let Some(found) = self.find(*number) {
                        found.last = now;
                        (found.theirs, found.ours) = (their.to_string(), our.to_string());
                        found.why = engine::explain::sentence(spec, ours);
                    }
                }
            }
        }
        self.differing = self.differing + usize::from(compared.differs()) - usize::from(before);
        self.autoscalers.insert(key.clone(), compared);
        begun
    }

    /// Forgets an autoscaler and ends its differences. Returns whether it was compared.
    pub fn forget(&mut self, key: &AutoscalerKey) -> bool {
        self.replays.remove(key);
        let Some(compared) = self.autoscalers.remove(key) else { return false };
        self.differing -= usize::from(compared.differs());
        for view in compared.fields {
            if let FieldComparison::Differs(number) = view {
                self.end(number);
            }
        }
        true
    }

    /// Forgets all autoscalers and ends their differences, because another process decides now; the counts stay.
    pub fn clear(&mut self) {
        self.replays.clear();
        self.autoscalers.clear();
        self.differing = 0;
        for found in &mut self.found {
            found.record.over = true;
        }
    }

    /// The number of autoscalers that differ now.
    pub fn differing(&self) -> usize {
        self.differing
    }

    /// Counts since the start.
    pub fn counts(&self) -> ShadowCounts {
        self.counts
    }

    /// The report (of a namespace), newest differences first.
    pub fn report(&self, namespace: Option<&str>) -> DifferenceList {
        let wanted = |key: &AutoscalerKey| namespace.is_none_or(|namespace| *key.namespace == *namespace);
        let compared = || self.autoscalers.iter().filter(|(key, _)| wanted(key)).map(|(_, c)| c);
        let (decisions, timing, since) = match namespace {
            None => (self.counts.compared, self.counts.timing.iter().sum(), self.since),
            Some(_) => {
                let since = compared().map(|c| c.since).min();
                (compared().map(|c| c.decisions).sum(), compared().map(|c| c.timing).sum(), since)
            }
        };
        let items = self.found.iter().rev().filter(|found| wanted(&found.key));
        DifferenceList {
            api_version: API_VERSION.to_owned(),
            kind: "DifferenceList".to_owned(),
            autoscalers: compared().count() as u64,
            compared: decisions,
            timing,
            since,
            items: items.map(|found| found.record.clone()).collect(),
        }
    }

    /// Adds a difference. If there are too many, the oldest ended one is dropped, or else the oldest.
    fn begin(&mut self, place: usize, key: &AutoscalerKey, record: DifferenceRecord) -> u64 {
        if let Some(count) = self.counts.differences.get_mut(place) {
            *count += 1;
        }
        let number = self.counts.differences.iter().sum();
        if self.found.len() >= MAX_DIFFERENCES {
            let over = self.found.iter().position(|found| found.record.over);
            self.found.remove(over.unwrap_or(0));
        }
        self.found.push_back(ShadowDifference { number, key: key.clone(), record });
        number
    }

    fn end(&mut self, number: u64) {
        if let Some(record) = self.find(number) {
            record.over = true;
        }
    }

    /// The difference of a number; none if it was dropped.
    fn find(&mut self, number: u64) -> Option<&mut DifferenceRecord> {
        let place = self.found.binary_search_by_key(&number, |found| found.number).ok()?;
        self.found.get_mut(place).map(|found| &mut found.record)
    }
}

impl ComparedAutoscaler {
    fn differs(&self) -> bool {
        self.fields.iter().any(|view| matches!(view, FieldComparison::Differs(_)))
    }
}

impl Disagreement {
    /// The values still differ. If one side adopted the other's earlier value, or their count moves towards ours, the time starts again.
    fn goes_on(&self, now: Timestamp, theirs: FieldValue, ours: FieldValue) -> Self {
        let follows = match (&self.theirs, &self.ours, &theirs) {
            (FieldValue::Replicas(was), FieldValue::Replicas(ours), FieldValue::Replicas(is)) => {
                (ours > was && is > was) || (ours < was && is < was)
            }
            _ => theirs == self.ours,
        };
        let leads = ours == self.theirs;
        // The time also starts again after the clock was set back.
        let since = if follows || leads || self.since > now { now } else { self.since };
        Self { since, theirs, ours }
    }
}

fn record(
    key: &AutoscalerKey,
    field: &str,
    doubt: &Disagreement,
    now: Timestamp,
    why: String,
) -> DifferenceRecord {
    DifferenceRecord {
        api_version: API_VERSION.to_owned(),
        kind: "Difference".to_owned(),
        metadata: DecisionMeta { name: super::records::name_of(key), namespace: key.namespace.to_string() },
        since: doubt.since,
        last: now,
        over: false,
        field: field.to_owned(),
        theirs: doubt.theirs.to_string(),
        ours: doubt.ours.to_string(),
        why,
    }
}
