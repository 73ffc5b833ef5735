//! Explains decisions about ScaledObjects and ScaledJobs together with the result of polling their triggers.

use jiff::{SignedDuration, Timestamp};

use super::words::{clock, plain_amount as amount, seconds};
use super::{Explanation, Row, Rows, explain, jobs, provenance, sentence};
use crate::activation::{Activation, ActivationVerdict};
use crate::decision::{Course, Decision, ScaleOutcome};
use crate::spec::{MetricSource, Spec};
use crate::trigger_poll::{FormulaResult, PolledTrigger, TriggerMetric, TriggerPoll};
use crate::units::{MilliValue, Replicas};

/// Explains a decision about a ScaledObject: as [`explain`] does, with rows for its triggers.
pub fn explain_trigger_poll(
    kind: &str,
    spec: &Spec,
    decision: &Decision,
    poll: &TriggerPoll,
    period: SignedDuration,
) -> Explanation {
    if let Some(counts) = &poll.jobs {
        let mut rows = Rows::default();
        triggers(&mut rows, poll, decision);
        return jobs::explanation(rows, (kind, spec), decision, counts, is_polled(poll), period);
    }
    let (spec, decision) = with_trigger_names(spec, decision, poll);
    let mut explanation = explain(kind, &spec, &decision, period);
    let mut trigger_rows = Rows::default();
    triggers(&mut trigger_rows, poll, &decision);
    if let Some(formula) = &poll.formula {
        trigger_rows.add("formula", self::formula(formula));
    }
    if let Some(text) = cooldown(poll, &decision) {
        trigger_rows.add("cooldown", text);
    }
    // The triggers come before the activation phase, which depends on them.
    let rows = &mut explanation.rows;
    let index = rows.iter().position(|row| row.label == "activity");
    let index = index.or_else(|| rows.iter().position(|row| row.label == "outcome")).unwrap_or(rows.len());
    rows.splice(index..index, trigger_rows.0);
    if let Some(name) = deciding_hpa(poll, &decision)
        && let Some(row) = rows.iter_mut().find(|row| row.label == "activity")
    {
        row.text = row.text.replace("metrics decide", &format!("hpa/{name} decides"));
    }
    next(rows, &spec, &decision, poll, period);
    explanation
}

/// Explains a decision in one line, with the values of the triggers.
pub fn sentence_with_triggers(spec: &Spec, decision: &Decision, poll: Option<&TriggerPoll>) -> String {
    let Some(poll) = poll else { return sentence(spec, decision) };
    if let Some(counts) = &poll.jobs {
        let readings = readings(poll, |metric| !counts.active || metric.active);
        return jobs::sentence(&readings, spec, decision, counts, is_polled(poll));
    }
    let (spec, mut decision) = with_trigger_names(spec, decision, poll);
    let Some(activation) = decision.activation.take() else { return sentence(&spec, &decision) };
    let by_course = sentence(&spec, &decision);
    if matches!(decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)) {
        return by_course;
    }
    let and = if by_course.is_empty() { String::new() } else { format!("; {by_course}") };
    match &activation.verdict {
        ActivationVerdict::Wakes => format!("{}{and}", causes(&activation, poll)),
        ActivationVerdict::Lifts => "below the lower bound".to_owned(),
        ActivationVerdict::Rests { since: Some(since) } => format!("nothing active since {}", clock(*since)),
        ActivationVerdict::Rests { since: None } => "nothing active".to_owned(),
        ActivationVerdict::Resting => {
            let readings_text = readings(poll, |_| true);
            if readings_text.is_empty() { "at rest".to_owned() } else { format!("at rest: {readings_text}") }
        }
        ActivationVerdict::Cooling { until } if decision.current() == decision.desired => {
            format!("nothing active; cooldown until {}", clock(*until))
        }
        ActivationVerdict::Cooling { until } => format!("{by_course}; cooldown until {}", clock(*until)),
        ActivationVerdict::Metrics => match deciding_hpa(poll, &decision) {
            Some(name) if activation.by.is_empty() => format!("nothing active; hpa/{name} decides"),
            Some(name) => format!("{}; hpa/{name} decides", causes(&activation, poll)),
            None => by_course,
        },
        ActivationVerdict::Held(why) => format!("held: {why}"),
    }
}

/// `queue: 4/20 each (12 in all)`, nearly as `kubectl get hpa` shows targets. A target per replica is compared with the share
/// of a replica, if their number is known.
pub fn targets(poll: &TriggerPoll, replicas: Option<Replicas>) -> String {
    let replicas = replicas.map(|replicas| i64::from(replicas.get())).filter(|replicas| *replicas > 0);
    // Jobs that run do not share the queue with those that are created.
    let replicas = replicas.filter(|_| poll.jobs.is_none());
    let one = |(trigger, metric): (&PolledTrigger, &TriggerMetric)| {
        let number = |value: Option<MilliValue>| value.map_or_else(|| "<unknown>".to_owned(), amount);
        let name = poll.label(&metric.metric).unwrap_or_else(|| trigger.label().to_owned());
        let target = number(metric.target);
        match (metric.each, metric.value, replicas) {
            (true, Some(value), Some(1)) => format!("{name}: {}/{target} each", amount(value)),
            (true, Some(value), Some(replicas)) => {
                // As the status of an HPA, rounded up.
                let (whole, rest) = (value.get().div_euclid(replicas), value.get().rem_euclid(replicas));
                let share = MilliValue::new(whole.saturating_add(i64::from(rest > 0)));
                format!("{name}: {}/{target} each ({} in all)", amount(share), amount(value))
            }
            (true, Some(value), None) => format!("{name}: {} in all/{target} each", amount(value)),
            (true, None, _) => format!("{name}: <unknown>/{target} each"),
            (false, value, _) => format!("{name}: {}/{target}", number(value)),
        }
    };
    if let Some(formula) = &poll.formula {
        let value = formula.value.as_ref().map_or_else(|_| "<unknown>".to_owned(), |value| amount(*value));
        return format!("formula: {value}/{}", formula.target);
    }
    metrics(poll).map(one).collect::<Vec<_>>().join(", ")
}

/// Whether triggers were polled: not if the object could not be reconciled.
fn is_polled(poll: &TriggerPoll) -> bool {
    !poll.triggers.is_empty() || poll.reconcile.is_none()
}

/// The HPA that decides between the bounds; absent if the operator decides itself.
fn deciding_hpa<'a>(poll: &'a TriggerPoll, decision: &Decision) -> Option<&'a str> {
    poll.hpa.as_deref().filter(|_| decision.course == Course::Activity)
}

/// Replaces metric names by the trigger names that users know.
fn with_trigger_names(spec: &Spec, decision: &Decision, poll: &TriggerPoll) -> (Spec, Decision) {
    let (mut spec, mut decision) = (spec.clone(), decision.clone());
    for metric in &mut spec.metrics {
        if let MetricSource::External(id) = &mut metric.source
            && let Some(label) = poll.label(&id.name)
        {
            id.name = label;
        }
    }
    for by in decision.activation.iter_mut().flat_map(|activation| &mut activation.by) {
        if let Some(label) = poll.label(by) {
            *by = label;
        }
    }
    (spec, decision)
}

fn metrics(poll: &TriggerPoll) -> impl Iterator<Item = (&PolledTrigger, &TriggerMetric)> {
    poll.triggers.iter().flat_map(|trigger| trigger.metrics.iter().map(move |metric| (trigger, metric)))
}

fn triggers(rows: &mut Rows, poll: &TriggerPoll, decision: &Decision) {
    if let Some(failure) = &poll.reconcile {
        rows.add("reconcile", format!("failed: {failure}"));
    }
    for trigger in &poll.triggers {
        let who = match trigger.name.as_str() {
            "" => trigger.type_.clone(),
            name => format!("{name} ({})", trigger.type_),
        };
        if let Some(failure) = &trigger.failure {
            rows.add("triggers", format!("{who} cannot be polled: {failure}"));
        } else if poll.pushed {
            rows.add("triggers", format!("{who} reported activity (push)"));
        } else if trigger.metrics.is_empty() && poll.jobs.is_some() {
            rows.add("triggers", format!("{who} has no metrics"));
        } else if trigger.metrics.is_empty() {
            rows.add("triggers", format!("{who}: read by the HPA; not used for activation"));
        }
        for metric in trigger.metrics.iter().filter(|_| !poll.pushed) {
            let name = if poll.label(&metric.metric).is_some() { "" } else { &metric.metric };
            let who = if name.is_empty() { who.clone() } else { format!("{who} {name}") };
            rows.add("triggers", describe_metric(&who, trigger, metric));
            // A decision by metrics has it with each of them.
            if let Some(read) = metric.read.filter(|_| decision.provenance.is_empty()) {
                rows.add("triggers", provenance::sample_read(&read, decision.at));
            }
        }
    }
}

/// `queue (metrics-api) has 12 messages, target 20 each, activation 5: active`.
fn describe_metric(who: &str, trigger: &PolledTrigger, metric: &TriggerMetric) -> String {
    let mut text = match (&metric.failure, metric.value) {
        (Some(failure), _) => format!("{who} cannot be read: {failure}"),
        (None, Some(value)) => format!("{who} {}", counted(trigger, value)),
        (None, None) => format!("{who} has no value"),
    };
    if let Some(replicas) = metric.fallback {
        text += &format!("; it failed too often, so {replicas} replicas are used (fallback)");
        return text;
    }
    if metric.failure.is_some() {
        return text;
    }
    if let Some(target) = metric.target {
        text += &format!(", target {}{}", amount(target), if metric.each { " each" } else { "" });
    }
    if let Some(activation) = trigger.activation {
        text += &format!(", activation {}", amount(activation));
    }
    text + if metric.active { ": active" } else { ": not active" }
}

fn formula(formula: &FormulaResult) -> String {
    let text = if formula.text.is_empty() { "the triggers" } else { &formula.text };
    let limit = if formula.activation.is_empty() { "0" } else { &formula.activation };
    match &formula.value {
        Ok(value) => {
            let is = if formula.active { "active" } else { "not active" };
            format!("{text} = {}, target {}, activation {limit}: {is}", amount(*value), formula.target)
        }
        Err(why) => format!("{text} cannot be computed: {why}"),
    }
}

fn cooldown(poll: &TriggerPoll, decision: &Decision) -> Option<String> {
    let cooldown = poll.cooldown?;
    let period = seconds(cooldown.period);
    match &decision.activation.as_ref()?.verdict {
        ActivationVerdict::Cooling { until } => {
            let since = cooldown.since.map(|since| format!(" ({})", clock(since))).unwrap_or_default();
            let (end, left) = (clock(*until), seconds(left(decision.at, *until)));
            Some(format!("{period} after the last activity{since}: until {end}, {left} left"))
        }
        ActivationVerdict::Rests { .. } => {
            let end = cooldown.end().map(|end| format!(", over since {}", clock(end))).unwrap_or_default();
            Some(format!("{period} after the last activity{end}"))
        }
        ActivationVerdict::Wakes | ActivationVerdict::Metrics
            if !decision.activation.as_ref()?.by.is_empty() =>
        {
            Some(format!("{period}, counted from the last activity"))
        }
        _ => None,
    }
}

/// Whole seconds, rounded up.
fn left(now: Timestamp, until: Timestamp) -> SignedDuration {
    let left = until.duration_since(now).max(SignedDuration::ZERO);
    let more = i64::from(left.subsec_nanos() > 0);
    SignedDuration::from_secs(left.as_secs().saturating_add(more))
}

/// Replaces the last rows, which explain what would change the count and when, by ones that name the triggers.
fn next(rows: &mut Vec<Row>, spec: &Spec, decision: &Decision, poll: &TriggerPoll, period: SignedDuration) {
    let Some(activation) = decision.activation.as_ref() else { return };
    if matches!(decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)) {
        return;
    }
    let soon = format!("in {}", seconds(period));
    let rest = activation.rest;
    let sleeps = poll
        .cooldown
        .filter(|_| rest < spec.min)
        .map(|cooldown| format!("{rest} once nothing has been active for {}", seconds(cooldown.period)));
    let (own, more) = match &activation.verdict {
        ActivationVerdict::Resting => (Some(format!("{soon}, polled again; wakes {}", wakes(poll))), None),
        ActivationVerdict::Rests { .. } => (Some(format!("stays at {rest}; wakes {}", wakes(poll))), None),
        ActivationVerdict::Cooling { until } => {
            let end = format!("{rest} after {}, if nothing becomes active before", clock(*until));
            if decision.course == Course::Activity { (Some(end), None) } else { (None, Some(end)) }
        }
        ActivationVerdict::Metrics | ActivationVerdict::Wakes => match deciding_hpa(poll, decision) {
            Some(name) => (Some(format!("hpa/{name} decides between {} and {}", spec.min, spec.max)), sleeps),
            None => (None, sleeps),
        },
        ActivationVerdict::Lifts | ActivationVerdict::Held(_) => (None, None),
    };
    if let Some(text) = own {
        rows.retain(|row| row.label != "next");
        rows.push(Row { label: "next".to_owned(), text, decided: false });
    }
    if let Some(text) = more {
        rows.push(Row { label: String::new(), text, decided: false });
    }
}

/// The condition for scaling up from the idle count.
fn wakes(poll: &TriggerPoll) -> String {
    if let Some(formula) = &poll.formula {
        let limit = if formula.activation.is_empty() { "0" } else { &formula.activation };
        return format!("when the formula is above {limit}");
    }
    let one = |(trigger, metric): (&PolledTrigger, &TriggerMetric)| {
        let name = poll.label(&metric.metric).unwrap_or_else(|| metric.metric.clone());
        match trigger.activation {
            Some(limit) if trigger.unit.is_empty() => format!("{name} is above {}", amount(limit)),
            Some(limit) => format!("{name} has more than {} {}", amount(limit), trigger.unit),
            None => format!("{name} is active"),
        }
    };
    let each: Vec<String> = metrics(poll).map(one).collect();
    if each.is_empty() {
        "when a trigger is active".to_owned()
    } else {
        format!("when {}", each.join(", or "))
    }
}

/// Why the target was activated.
fn causes(activation: &Activation, poll: &TriggerPoll) -> String {
    let readings_text = readings(poll, |metric| metric.active);
    match (poll.pushed, &poll.formula, readings_text.as_str()) {
        (true, ..) => format!("{} reported activity (push)", activation.by.join(", ")),
        (_, Some(formula), _) if formula.active => self::formula(formula),
        (.., "") => activation.reason(),
        (.., readings_text) => readings_text.to_owned(),
    }
}

/// `queue has 12 messages (activation 5)`, for each metric that passes the filter.
fn readings(poll: &TriggerPoll, include: impl Fn(&TriggerMetric) -> bool) -> String {
    let one = |(trigger, metric): (&PolledTrigger, &TriggerMetric)| {
        let name = poll.label(&metric.metric).unwrap_or_else(|| metric.metric.clone());
        let limit = trigger.activation.map(|limit| format!(" (activation {})", amount(limit)));
        match (metric.fallback, metric.value) {
            (Some(replicas), _) => format!("{replicas} replicas replace {name} (fallback)"),
            (None, Some(value)) => format!("{name} {}{}", counted(trigger, value), limit.unwrap_or_default()),
            (None, None) => format!("{name} cannot be read"),
        }
    };
    metrics(poll).filter(|(_, metric)| include(metric)).map(one).collect::<Vec<_>>().join(", ")
}

/// `has 12 messages`, or `is 12`.
fn counted(trigger: &PolledTrigger, value: MilliValue) -> String {
    let shown = amount(value);
    match trigger.unit.as_str() {
        "" => format!("is {shown}"),
        unit if value.get() == 1000 => format!("has 1 {}", singular(unit)),
        unit => format!("has {shown} {unit}"),
    }
}

/// `message` of `messages`, `entry` of `entries`.
fn singular(unit: &str) -> String {
    match unit.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => unit.strip_suffix('s').unwrap_or(unit).to_owned(),
    }
}

#[cfg(test)]
mod tests;
