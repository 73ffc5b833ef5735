//! The catalogue of causes: why an autoscaler does not do what its user expects.
//!
//! Facts go in (a decision with its typed failures, and what is known of the cluster), causes come out, the most specific first. Nothing
//! here reads a message: the texts of Kubernetes and of event sources are only quoted. `docs/diagnosis.md` lists every cause.
//!
//! ```text
//! facts     what is known
//! target    scale target, selector, other autoscalers, modes
//! pods      pods without samples, containers, requests
//! metrics   metrics that cannot be read
//! limits    windows, scaling policies, bounds, tolerance
//! triggers  triggers of ScaledObjects
//! events    causes as annotations of events
//! ```

mod access;
mod events;
mod explain;
mod facts;
mod limits;
mod metrics;
mod pods;
mod target;
#[cfg(test)]
mod tests;
mod triggers;
mod words;

use std::collections::BTreeSet;

use serde::Serialize;

pub use access::AccessCause;
pub use events::{CAUSES_ANNOTATION, REMEDY_ANNOTATION, event_annotations};
pub use explain::{explain_with_causes, with_causes};
pub use facts::{
    ApiServiceFact, ClusterFacts, DiagnosisFacts, NodeFact, PausedFact, PodFact, RivalFact, SelectedOwner,
    ServedMetrics,
};
pub use limits::LimitCause;
pub use metrics::MetricCause;
pub use pods::PodCause;
pub use target::TargetCause;
pub use triggers::{TriggerCause, poll_causes, trigger_causes};

/// The page that lists all causes.
pub const PAGE: &str = "docs/diagnosis.md";

/// How much a cause matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Concern {
    /// Something is broken.
    Problem,
    /// The object works, but a limit or a missing part changes the result.
    Limit,
    /// All is as intended.
    Normal,
}

/// One cause, described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// Stable identifier, and anchor in [`PAGE`].
    pub id: &'static str,
    /// How much it matters.
    pub concern: Concern,
    /// One sentence that names the cause.
    pub sentence: String,
    /// What to do.
    pub remedy: String,
    /// Where it is documented.
    pub link: String,
}

/// What every group of causes provides.
pub trait Described {
    /// Stable identifier.
    fn id(&self) -> &'static str;
    /// How much it matters.
    fn concern(&self) -> Concern;
    /// One sentence that names the cause.
    fn sentence(&self) -> String;
    /// What to do.
    fn remedy(&self) -> String;
}

impl Diagnosis {
    /// Describes a cause.
    pub fn of(cause: &dyn Described) -> Self {
        Self {
            id: cause.id(),
            concern: cause.concern(),
            sentence: cause.sentence(),
            remedy: cause.remedy(),
            link: format!("{PAGE}#{}", cause.id()),
        }
    }
}

/// All causes that the facts show, the most specific first.
pub fn diagnose(facts: &DiagnosisFacts<'_>) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> = Vec::new();
    for_each_cause(facts, &mut |cause: &dyn Described| {
        let one = Diagnosis::of(cause);
        if !found.iter().any(|known| known.sentence == one.sentence) {
            found.push(one);
        }
    });
    // Within one concern the order of `for_each_cause` stays.
    found.sort_by_key(|one| one.concern);
    found
}

/// The identifiers of all causes that the facts show, each once: what exported metrics count, without the sentences.
pub fn cause_ids(facts: &DiagnosisFacts<'_>) -> BTreeSet<&'static str> {
    let mut ids = BTreeSet::new();
    for_each_cause(facts, &mut |cause: &dyn Described| {
        ids.insert(cause.id());
    });
    ids
}

/// Calls `add` with all causes, from specific to general.
fn for_each_cause(facts: &DiagnosisFacts<'_>, add: &mut dyn FnMut(&dyn Described)) {
    let of_target = target::find(facts);
    for cause in &of_target {
        add(cause);
    }
    if of_target.iter().any(TargetCause::is_only_one) {
        return;
    }
    for cause in &triggers::find(facts) {
        add(cause);
    }
    metrics::find(facts, add);
    for cause in &pods::find(facts) {
        add(cause);
    }
    for cause in &limits::find(facts) {
        add(cause);
    }
}
