//! Comparison with the controller that acts: what it wrote in the status, and what we would have written.
//!
//! The two are out of step by up to a period and read metrics at different moments, so they disagree for a while
//! whenever something changes. A difference counts only if it was there at two of our decisions in a row, at least a
//! period apart, and neither side came to what the other had said in between. It is over as soon as both agree once.
//! What else is timing and not a difference is in [`said`].

mod page;
mod said;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use api::decisions::{API_VERSION, DecisionMeta, DifferenceList, DifferenceRecord};
use cluster::AutoscalerKey;
use engine::report::condition;
use engine::{Decision, Spec, Status};
use jiff::{SignedDuration, Timestamp};

pub use page::page;

use said::Said;

/// What is compared.
pub const FIELDS: [&str; 4] =
    ["desiredReplicas", condition::ABLE_TO_SCALE, condition::SCALING_ACTIVE, condition::SCALING_LIMITED];
/// How many differences are kept.
pub const KEEP: usize = 1000;

/// What was compared and what was found.
#[derive(Debug, Default)]
pub struct Shadow {
    autoscalers: HashMap<AutoscalerKey, Compared>,
    /// By number, oldest first.
    found: VecDeque<Found>,
    counts: Counts,
    since: Option<Timestamp>,
    /// Autoscalers that differ now.
    differing: usize,
}

/// Figures since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Decisions compared.
    pub compared: u64,
    /// Differences, in the order of [`FIELDS`].
    pub differences: [u64; FIELDS.len()],
}

/// One autoscaler.
#[derive(Debug)]
struct Compared {
    since: Timestamp,
    decisions: u64,
    fields: [View; FIELDS.len()],
}

/// How both see one field.
#[derive(Debug, Default)]
enum View {
    #[default]
    Same,
    /// They do not agree, perhaps because of timing.
    Unsure(Doubt),
    /// They differ: the number of the difference.
    Differs(u64),
}

#[derive(Debug)]
struct Doubt {
    since: Timestamp,
    /// As of the last decision.
    theirs: Said,
    ours: Said,
}

#[derive(Debug)]
struct Found {
    number: u64,
    key: AutoscalerKey,
    record: DifferenceRecord,
}

impl Shadow {
    /// Compares a decision of ours with the status that the controller that acts has stored. Tells the differences that
    /// begin to count.
    pub fn look(
        &mut self,
        now: Timestamp,
        key: &AutoscalerKey,
        theirs: &Status,
        spec: &Spec,
        ours: &Decision,
        period: SignedDuration,
    ) -> Vec<DifferenceRecord> {
        // It has not looked at this one yet.
        if theirs.conditions.is_empty() {
            return Vec::new();
        }
        self.since = self.since.or(Some(now));
        self.counts.compared += 1;
        let new = || Compared { since: now, decisions: 0, fields: Default::default() };
        let mut compared = self.autoscalers.remove(key).unwrap_or_else(new);
        compared.decisions += 1;
        let before = compared.differs();
        let mut begun = Vec::new();
        for (place, field) in FIELDS.into_iter().enumerate() {
            let Some(view) = compared.fields.get_mut(place) else { continue };
            let disagreement = said::disagree(field, theirs, ours);
            match (&view, disagreement) {
                (View::Same | View::Unsure(_), None) => *view = View::Same,
                (View::Differs(number), None) => {
                    self.end(*number);
                    *view = View::Same;
                }
                (View::Same, Some((theirs, ours))) => {
                    *view = View::Unsure(Doubt { since: now, theirs, ours });
                }
                (View::Unsure(doubt), Some((their, our))) => {
                    let doubt = doubt.goes_on(now, their, our);
                    if doubt.since == now || now.duration_since(doubt.since) < period {
                        *view = View::Unsure(doubt);
                        continue;
                    }
                    let why = engine::explain::sentence(spec, ours);
                    let record = record(key, field, &doubt, now, why);
                    *view = View::Differs(self.begin(place, key, record.clone()));
                    begun.push(record);
                }
                (View::Differs(number), Some((their, our))) => {
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

    /// Forgets an autoscaler: what it differed in is over.
    pub fn forget(&mut self, key: &AutoscalerKey) {
        let Some(compared) = self.autoscalers.remove(key) else { return };
        self.differing -= usize::from(compared.differs());
        for view in compared.fields {
            if let View::Differs(number) = view {
                self.end(number);
            }
        }
    }

    /// Autoscalers that differ now.
    pub fn differing(&self) -> usize {
        self.differing
    }

    /// Figures since the start.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What was compared and found (in a namespace), newest first.
    pub fn report(&self, namespace: Option<&str>) -> DifferenceList {
        let wanted = |key: &AutoscalerKey| namespace.is_none_or(|namespace| *key.namespace == *namespace);
        let compared = || self.autoscalers.iter().filter(|(key, _)| wanted(key)).map(|(_, c)| c);
        let (decisions, since) = match namespace {
            None => (self.counts.compared, self.since),
            Some(_) => (compared().map(|c| c.decisions).sum(), compared().map(|c| c.since).min()),
        };
        let items = self.found.iter().rev().filter(|found| wanted(&found.key));
        DifferenceList {
            api_version: API_VERSION.to_owned(),
            kind: "DifferenceList".to_owned(),
            autoscalers: compared().count() as u64,
            compared: decisions,
            since,
            items: items.map(|found| found.record.clone()).collect(),
        }
    }

    /// Keeps a new difference. For it goes the oldest that is over, or the oldest.
    fn begin(&mut self, place: usize, key: &AutoscalerKey, record: DifferenceRecord) -> u64 {
        if let Some(count) = self.counts.differences.get_mut(place) {
            *count += 1;
        }
        let number = self.counts.differences.iter().sum();
        if self.found.len() >= KEEP {
            let over = self.found.iter().position(|found| found.record.over);
            self.found.remove(over.unwrap_or(0));
        }
        self.found.push_back(Found { number, key: key.clone(), record });
        number
    }

    fn end(&mut self, number: u64) {
        if let Some(record) = self.find(number) {
            record.over = true;
        }
    }

    /// None if it is no longer kept.
    fn find(&mut self, number: u64) -> Option<&mut DifferenceRecord> {
        let place = self.found.binary_search_by_key(&number, |found| found.number).ok()?;
        self.found.get_mut(place).map(|found| &mut found.record)
    }
}

impl Compared {
    fn differs(&self) -> bool {
        self.fields.iter().any(|view| matches!(view, View::Differs(_)))
    }
}

impl Doubt {
    /// They still do not agree. If one came to what the other had said, or theirs moves our way, time starts anew.
    fn goes_on(&self, now: Timestamp, theirs: Said, ours: Said) -> Self {
        let follows = match (&self.theirs, &self.ours, &theirs) {
            (Said::Replicas(was), Said::Replicas(ours), Said::Replicas(is)) => {
                (ours > was && is > was) || (ours < was && is < was)
            }
            _ => theirs == self.ours,
        };
        let leads = ours == self.theirs;
        // A clock that was set back starts anew too.
        let since = if follows || leads || self.since > now { now } else { self.since };
        Self { since, theirs, ours }
    }
}

fn record(key: &AutoscalerKey, field: &str, doubt: &Doubt, now: Timestamp, why: String) -> DifferenceRecord {
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
