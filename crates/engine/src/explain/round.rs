//! What triggers said, and what follows from it.

use jiff::{SignedDuration, Timestamp};

use super::words::{clock, seconds, trimmed};
use super::{Explanation, Row, Rows, explain, sentence};
use crate::activation::{Activation, ActivationVerdict};
use crate::decision::{Course, Decision, ScaleOutcome};
use crate::round::{FormulaResult, PolledTrigger, TriggerMetric, TriggerPoll};
use crate::spec::{MetricSource, Spec};

/// Puts a decision about an object that is scaled by events into words: as [`explain`] does, with what its triggers said.
pub fn explain_round(
    kind: &str,
    spec: &Spec,
    decision: &Decision,
    round: &TriggerPoll,
    period: SignedDuration,
) -> Explanation {
    let (spec, decision) = as_called(spec, decision, round);
    let mut explanation = explain(kind, &spec, &decision, period);
    let mut said = Rows::default();
    triggers(&mut said, round);
    if let Some(formula) = &round.formula {
        said.say("formula", self::formula(formula));
    }
    if let Some(text) = cooldown(round, &decision) {
        said.say("cooldown", text);
    }
    // They come before what follows from them.
    let rows = &mut explanation.rows;
    let place = rows.iter().position(|row| row.label == "activity");
    let place = place.or_else(|| rows.iter().position(|row| row.label == "outcome")).unwrap_or(rows.len());
    rows.splice(place..place, said.0);
    if let Some(name) = through(round, &decision)
        && let Some(row) = rows.iter_mut().find(|row| row.label == "activity")
    {
        row.text = row.text.replace("metrics decide", &format!("hpa/{name} decides"));
    }
    next(rows, &spec, &decision, round, period);
    explanation
}

/// Why the count is what it is, in one line, with what the triggers said.
pub fn sentence_of(spec: &Spec, decision: &Decision, round: Option<&TriggerPoll>) -> String {
    let Some(round) = round else { return sentence(spec, decision) };
    let (spec, mut decision) = as_called(spec, decision, round);
    let Some(activation) = decision.activation.take() else { return sentence(&spec, &decision) };
    let by_course = sentence(&spec, &decision);
    if matches!(decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)) {
        return by_course;
    }
    let and = if by_course.is_empty() { String::new() } else { format!("; {by_course}") };
    match &activation.verdict {
        ActivationVerdict::Wakes => format!("{}{and}", causes(&activation, round)),
        ActivationVerdict::Lifts => "below the lower bound".to_owned(),
        ActivationVerdict::Rests { since: Some(since) } => format!("nothing active since {}", clock(*since)),
        ActivationVerdict::Rests { since: None } => "nothing active".to_owned(),
        ActivationVerdict::Resting => {
            let said = readings(round, |_| true);
            if said.is_empty() { "at rest".to_owned() } else { format!("at rest: {said}") }
        }
        ActivationVerdict::Cooling { until } if decision.current() == decision.desired => {
            format!("nothing active; cooldown until {}", clock(*until))
        }
        ActivationVerdict::Cooling { until } => format!("{by_course}; cooldown until {}", clock(*until)),
        ActivationVerdict::Metrics => match through(round, &decision) {
            Some(name) if activation.by.is_empty() => format!("nothing active; hpa/{name} decides"),
            Some(name) => format!("{}; hpa/{name} decides", causes(&activation, round)),
            None => by_course,
        },
        ActivationVerdict::Held(why) => format!("held: {why}"),
    }
}

/// `queue: 12/20 each`, nearly as `kubectl get hpa` shows targets.
pub fn targets(round: &TriggerPoll) -> String {
    let one = |(trigger, heard): (&PolledTrigger, &TriggerMetric)| {
        let number = |value: Option<i64>| value.map_or_else(|| "<unknown>".to_owned(), amount);
        let name = round.label(&heard.metric).unwrap_or_else(|| trigger.label().to_owned());
        let each = if heard.each { " each" } else { "" };
        format!("{name}: {}/{}{each}", number(heard.value), number(heard.target))
    };
    if let Some(formula) = &round.formula {
        let value = formula.value.as_ref().map_or_else(|_| "<unknown>".to_owned(), |value| amount(*value));
        return format!("formula: {value}/{}", formula.target);
    }
    heard(round).map(one).collect::<Vec<_>>().join(", ")
}

/// The HPA that decides, if it does and not we.
fn through<'a>(round: &'a TriggerPoll, decision: &Decision) -> Option<&'a str> {
    round.hpa.as_deref().filter(|_| decision.course == Course::Activity)
}

/// Users know their triggers by name; the HPA knows metrics.
fn as_called(spec: &Spec, decision: &Decision, round: &TriggerPoll) -> (Spec, Decision) {
    let (mut spec, mut decision) = (spec.clone(), decision.clone());
    for metric in &mut spec.metrics {
        if let MetricSource::External(id) = &mut metric.source
            && let Some(label) = round.label(&id.name)
        {
            id.name = label;
        }
    }
    for by in decision.activation.iter_mut().flat_map(|activation| &mut activation.by) {
        if let Some(label) = round.label(by) {
            *by = label;
        }
    }
    (spec, decision)
}

fn heard(round: &TriggerPoll) -> impl Iterator<Item = (&PolledTrigger, &TriggerMetric)> {
    round.triggers.iter().flat_map(|trigger| trigger.metrics.iter().map(move |heard| (trigger, heard)))
}

fn triggers(rows: &mut Rows, round: &TriggerPoll) {
    for trigger in &round.triggers {
        let who = match trigger.name.as_str() {
            "" => trigger.type_.clone(),
            name => format!("{name} ({})", trigger.type_),
        };
        if let Some(failure) = &trigger.failure {
            rows.say("triggers", format!("{who} cannot be asked: {failure}"));
        } else if round.pushed {
            rows.say("triggers", format!("{who} told of work by itself"));
        } else if trigger.metrics.is_empty() {
            rows.say("triggers", format!("{who}: others measure it; it says nothing about zero"));
        }
        for heard in trigger.metrics.iter().filter(|_| !round.pushed) {
            let name = if round.label(&heard.metric).is_some() { "" } else { &heard.metric };
            let who = if name.is_empty() { who.clone() } else { format!("{who} {name}") };
            rows.say("triggers", metric(&who, trigger, heard));
        }
    }
}

/// `queue (metrics-api) has 12 messages, target 20 each, activation 5: active`.
fn metric(who: &str, trigger: &PolledTrigger, heard: &TriggerMetric) -> String {
    let mut text = match (&heard.failure, heard.value) {
        (Some(failure), _) => format!("{who} cannot be read: {failure}"),
        (None, Some(value)) => format!("{who} {}", counted(trigger, value)),
        (None, None) => format!("{who} has no value"),
    };
    if let Some(replicas) = heard.fallback {
        text += &format!("; it fails too often, so {replicas} replicas stand in (fallback)");
        return text;
    }
    if heard.failure.is_some() {
        return text;
    }
    if let Some(target) = heard.target {
        text += &format!(", target {}{}", amount(target), if heard.each { " each" } else { "" });
    }
    if let Some(activation) = trigger.activation {
        text += &format!(", activation {}", amount(activation));
    }
    text + if heard.active { ": active" } else { ": not active" }
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

fn cooldown(round: &TriggerPoll, decision: &Decision) -> Option<String> {
    let cooldown = round.cooldown?;
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
            Some(format!("{period}, counted from when nothing is active any more"))
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

/// What would change it, and when: the last rows, in words that know the triggers.
fn next(rows: &mut Vec<Row>, spec: &Spec, decision: &Decision, round: &TriggerPoll, period: SignedDuration) {
    let Some(activation) = decision.activation.as_ref() else { return };
    if matches!(decision.outcome, ScaleOutcome::Failed | ScaleOutcome::WriteFailed(_)) {
        return;
    }
    let soon = format!("in {}", seconds(period));
    let rest = activation.rest;
    let sleeps = round
        .cooldown
        .filter(|_| rest < spec.min)
        .map(|cooldown| format!("{rest} once nothing has been active for {}", seconds(cooldown.period)));
    let (own, more) = match &activation.verdict {
        ActivationVerdict::Resting => (Some(format!("{soon}, asked again; wakes {}", wakes(round))), None),
        ActivationVerdict::Rests { .. } => (Some(format!("stays at {rest}; wakes {}", wakes(round))), None),
        ActivationVerdict::Cooling { until } => {
            let end = format!("{rest} after {}, if nothing becomes active before", clock(*until));
            if decision.course == Course::Activity { (Some(end), None) } else { (None, Some(end)) }
        }
        ActivationVerdict::Metrics | ActivationVerdict::Wakes => match through(round, decision) {
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

/// When rest is left.
fn wakes(round: &TriggerPoll) -> String {
    if let Some(formula) = &round.formula {
        let limit = if formula.activation.is_empty() { "0" } else { &formula.activation };
        return format!("when the formula is above {limit}");
    }
    let one = |(trigger, heard): (&PolledTrigger, &TriggerMetric)| {
        let name = round.label(&heard.metric).unwrap_or_else(|| heard.metric.clone());
        match trigger.activation {
            Some(limit) if trigger.unit.is_empty() => format!("{name} is above {}", amount(limit)),
            Some(limit) => format!("{name} has more than {} {}", amount(limit), trigger.unit),
            None => format!("{name} is active"),
        }
    };
    let each: Vec<String> = heard(round).map(one).collect();
    if each.is_empty() {
        "when a trigger is active".to_owned()
    } else {
        format!("when {}", each.join(", or "))
    }
}

/// What woke it.
fn causes(activation: &Activation, round: &TriggerPoll) -> String {
    let said = readings(round, |heard| heard.active);
    match (round.pushed, &round.formula, said.as_str()) {
        (true, ..) => format!("{} told of work by itself", activation.by.join(", ")),
        (_, Some(formula), _) if formula.active => self::formula(formula),
        (.., "") => activation.reason(),
        (.., said) => said.to_owned(),
    }
}

/// `queue has 12 messages (activation 5)`, for each that is wanted.
fn readings(round: &TriggerPoll, is_wanted: impl Fn(&TriggerMetric) -> bool) -> String {
    let one = |(trigger, heard): (&PolledTrigger, &TriggerMetric)| {
        let name = round.label(&heard.metric).unwrap_or_else(|| heard.metric.clone());
        let limit = trigger.activation.map(|limit| format!(" (activation {})", amount(limit)));
        match (heard.fallback, heard.value) {
            (Some(replicas), _) => format!("{replicas} replicas stand in for {name}"),
            (None, Some(value)) => format!("{name} {}{}", counted(trigger, value), limit.unwrap_or_default()),
            (None, None) => format!("{name} cannot be read"),
        }
    };
    heard(round).filter(|(_, heard)| is_wanted(heard)).map(one).collect::<Vec<_>>().join(", ")
}

/// `has 12 messages`, or `is 12`.
fn counted(trigger: &PolledTrigger, milli: i64) -> String {
    let value = amount(milli);
    match trigger.unit.as_str() {
        "" => format!("is {value}"),
        unit if milli == 1000 => format!("has 1 {}", singular(unit)),
        unit => format!("has {value} {unit}"),
    }
}

/// `message` of `messages`, `entry` of `entries`.
fn singular(unit: &str) -> String {
    match unit.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => unit.strip_suffix('s').unwrap_or(unit).to_owned(),
    }
}

/// A value in thousandths as people write it.
fn amount(milli: i64) -> String {
    trimmed(milli as f64 / 1000.0, 3, 0).trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
