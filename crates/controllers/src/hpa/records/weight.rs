//! The approximate memory of decisions.

use cluster::AutoscalerKey;
use engine::evaluate::{Arithmetic, Evaluation};
use engine::trigger_poll::{PolledTrigger, TriggerMetric, TriggerPoll};
use engine::{CowStr, Decision, Provenance, Status};

use super::run::Run;
use super::{AutoscalerHistory, RecordTable};

impl RecordTable {
    pub(super) fn weight(&self) -> usize {
        // A slot of the hash map and its control byte.
        let slots = self.kept.capacity() * 8 / 7 * (size_of::<(AutoscalerKey, AutoscalerHistory)>() + 1);
        let entries = self.kept.iter().map(|(key, kept)| {
            let names = block(16 + key.namespace.len()) + block(16 + key.name.len());
            let round = kept.newest.round.as_deref().map_or(0, round);
            let newest = block(16 + size_of::<Run>()) + decision(&kept.newest.decision) + round;
            names + newest + kept.older.weight()
        });
        slots + entries.sum::<usize>()
    }
}

/// The size of an allocation, rounded up to 16 bytes as allocators do.
pub(super) fn block(size: usize) -> usize {
    if size == 0 { 0 } else { size.next_multiple_of(16) }
}

/// The heap size of trigger activity.
fn round(round: &TriggerPoll) -> usize {
    let said = |text: &Option<String>| text.as_ref().map_or(0, |text| block(text.capacity()));
    let metric = |heard: &TriggerMetric| block(heard.metric.capacity()) + said(&heard.failure);
    let trigger = |one: &PolledTrigger| {
        let names = block(one.name.capacity()) + block(one.type_.capacity()) + block(one.unit.capacity());
        let metrics = block(one.metrics.capacity() * size_of::<TriggerMetric>());
        names + said(&one.failure) + metrics + one.metrics.iter().map(metric).sum::<usize>()
    };
    let triggers = block(round.triggers.capacity() * size_of::<PolledTrigger>());
    let formula = round.formula.as_ref().map_or(0, |formula| {
        block(formula.text.capacity())
            + block(formula.target.capacity())
            + block(formula.activation.capacity())
    });
    block(size_of::<TriggerPoll>())
        + triggers
        + round.triggers.iter().map(trigger).sum::<usize>()
        + formula
        + said(&round.hpa)
}

/// The heap size of a decision, without the spec, which is shared with the store.
fn decision(d: &Decision) -> usize {
    let selector = d.scale.as_ref().map_or(0, |s| block(s.selector.capacity()));
    let evaluations = block(d.evaluations.capacity() * size_of::<Evaluation>());
    let recommendation = d.recommendation.as_ref().map_or(0, |r| {
        block(r.metric.capacity()) + block(r.substitutes.capacity() * size_of_val(r.substitutes.as_slice()))
    });
    let event = |e: &engine::Event| size_of_val(e) + text(&e.reason) + block(e.message.capacity());
    let logged = d.logged.iter().map(|line| size_of_val(line) + block(line.capacity()));
    selector
        + evaluations
        + d.evaluations.iter().map(evaluation).sum::<usize>()
        + block(d.provenance.capacity() * size_of::<Provenance>())
        + d.provenance.iter().map(provenance).sum::<usize>()
        + recommendation
        + block(d.reason.capacity())
        + status(&d.status)
        + d.events.iter().map(event).sum::<usize>()
        + d.error.as_ref().map_or(0, |e| block(e.text.capacity()))
        + logged.sum::<usize>()
}

fn evaluation(e: &Evaluation) -> usize {
    let result = match &e.result {
        Ok(proposal) => match &proposal.sum {
            Arithmetic::PerPod(sum) => sum.detail.as_ref().map_or(0, |pods| size_of_val(pods.as_slice())),
            Arithmetic::Total(_) | Arithmetic::PerReplica(_) => 0,
        },
        Err(f) => {
            let texts = text(&f.reason) + block(f.text.capacity()) + block(f.summary.capacity());
            block(size_of_val(&**f)) + texts
        }
    };
    block(e.kind.capacity()) + block(e.name.capacity()) + result
}

/// Names of pods and sources are shared with the samples, but may outlive them.
fn provenance(p: &Provenance) -> usize {
    let named = p.largest.iter().map(|one| block(16 + one.name.len()));
    let source = p.source.as_ref().map_or(0, |source| block(16 + source.len()));
    text(&p.api) + source + block(size_of_val(p.largest.as_slice())) + named.sum::<usize>()
}

fn status(s: &Status) -> usize {
    let metrics = s.metrics.as_ref().map_or(0, |m| block(size_of_val(m.as_slice())));
    let texts = s.conditions.iter().flat_map(|c| [&c.kind, &c.status, &c.reason, &c.message]).map(text);
    metrics + block(size_of_val(s.conditions.as_slice())) + texts.sum::<usize>()
}

fn text(text: &CowStr) -> usize {
    match text {
        CowStr::Borrowed(_) => 0,
        CowStr::Owned(owned) => block(owned.capacity()),
    }
}
