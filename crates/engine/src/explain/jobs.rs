//! Explains how many jobs a ScaledJob created, and why.

use jiff::SignedDuration;

use super::words::{clock, plural, seconds};
use super::{Explanation, Rows};
use crate::decision::{Decision, ScaleOutcome};
use crate::spec::Spec;
use crate::trigger_poll::JobCounts;

/// Explains a poll of a ScaledJob. `rows` are those of its triggers. `is_polled` is false if the poll ended before its triggers.
pub(super) fn explanation(
    mut rows: Rows,
    (kind, spec): (&str, &Spec),
    decision: &Decision,
    counts: &JobCounts,
    is_polled: bool,
    period: SignedDuration,
) -> Explanation {
    let JobCounts { active, queue, max_scale, running, pending, .. } = *counts;
    let text = if active {
        format!("length {queue}, work for {}", jobs(max_scale))
    } else if !is_polled {
        "unknown: the triggers were not polled".to_owned()
    } else if decision.outcome == ScaleOutcome::Failed {
        "unknown: a trigger cannot be read, and no other is active".to_owned()
    } else {
        "nothing is active".to_owned()
    };
    rows.push("queue", text, !active);
    let bounds = format!("min {}, max {}", spec.min, spec.max);
    rows.add("jobs", format!("{running} running, {pending} of them pending; {bounds}"));
    if active {
        rows.push("strategy", strategy(spec, counts), true);
    }
    rows.add("outcome", outcome(counts));
    rows.add("next", format!("in {}, polled again", seconds(period)));
    let headline =
        format!("{kind}/{} in {} · {} · {}", spec.name, spec.namespace, clock(decision.at), created(counts));
    Explanation { headline, rows: rows.0 }
}

/// Explains a poll in one line. `readings` are those of the active triggers, or of all if none is active.
pub(super) fn sentence(
    readings: &str,
    spec: &Spec,
    decision: &Decision,
    counts: &JobCounts,
    is_polled: bool,
) -> String {
    let JobCounts { running, pending, .. } = *counts;
    let failed = decision.outcome == ScaleOutcome::Failed;
    match (counts.active, readings) {
        (false, "") if !is_polled => "the triggers were not polled: no jobs are created".to_owned(),
        (false, "") if failed => "a trigger cannot be read: no jobs are created".to_owned(),
        (false, "") => "nothing active".to_owned(),
        (false, _) if failed => format!("{readings}: no jobs are created"),
        (false, _) => format!("nothing active: {readings}"),
        (true, _) => {
            let what = match counts.wanted {
                0 => format!("{running} of at most {} run, {pending} pending", jobs(spec.max.get().into())),
                _ => outcome(counts),
            };
            if readings.is_empty() { what } else { format!("{readings}; {what}") }
        }
    }
}

/// The rule by which the number of jobs follows from the queue.
fn strategy(spec: &Spec, counts: &JobCounts) -> String {
    let JobCounts { queue, max_scale, running, pending, wanted, .. } = *counts;
    let (min, max) = (i64::from(spec.min.get()), i64::from(spec.max.get()));
    if running < min {
        return format!("{} always run, and {wanted} are missing", jobs(min));
    }
    let beyond = if min > 0 { " beyond the minimum" } else { "" };
    let (running, max) = (format!("{} running{beyond}", running - min), max - min);
    let rule = match counts.strategy.as_str() {
        "accurate" => format!(
            "the least of work for {max_scale} − {pending} pending, max {max} − {running}, and the queue's {queue}"
        ),
        "eager" => format!("the less of max {max} − {running} − {pending} pending, and work for {max_scale}"),
        "custom" => format!(
            "the less of work for {max_scale} − the deduction − the percentage of {running}, and the queue's {queue}; \
             at most {max}"
        ),
        _ => format!("the less of work for {max_scale} − {running}, and the queue's {queue}"),
    };
    let name = if counts.strategy.is_empty() { "default" } else { &counts.strategy };
    format!("{name}: {rule}: {wanted}")
}

/// `created 3 jobs`.
fn created(counts: &JobCounts) -> String {
    match counts.created {
        0 => "created no jobs".to_owned(),
        created => format!("created {}", jobs(created)),
    }
}

fn outcome(counts: &JobCounts) -> String {
    match &counts.failure {
        Some(failure) => format!("{} of {}: {failure}", created(counts), counts.wanted),
        None => created(counts),
    }
}

fn jobs(count: i64) -> String {
    plural(count, "job")
}

#[cfg(test)]
mod tests;
