//! Passes as traces: a span for the decision, and below it one for the observation with one for each metric and trigger, and one for
//! the write. Attributes have the names of the fields of records.

use std::time::Duration;

use api::decisions::DecisionRecord;
use api::history::NewestPass;
use cluster::{AutoscalerKey, random};
use engine::ScaleOutcome;
use jiff::{SignedDuration, Timestamp};
use otlp::traces::{SpanIndex, SpanTimes, TraceSender, TraceSpans};
use otlp::wire::{KeyValue, Span};
use serde_json::Value;

use super::kept::record;
use super::run::RunLength;

/// Attributes of one span.
const MAX_ATTRIBUTES: usize = 64;
/// Characters of the text of an attribute.
const MAX_TEXT_CHARS: usize = 256;

/// Exports passes as traces. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct DecisionTracer {
    sender: TraceSender,
    /// How many of the passes are exported that decide the same as the one before them, from 0 to 1.
    unchanged_ratio: f64,
}

/// When a pass began and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassTimes {
    /// When the observation began.
    pub(crate) began: Timestamp,
    /// When the replica count was written, if there was one to write.
    pub(crate) written: Timestamp,
    /// When everything was written.
    pub(crate) ended: Timestamp,
}

impl PassTimes {
    /// The times of a pass whose decision was made at this time: how long before it the observation began, and how long after the
    /// beginning the other steps ended.
    pub(crate) fn around(at: Timestamp, observed: Duration, written: Duration, ended: Duration) -> Self {
        let signed = |duration: Duration| SignedDuration::try_from(duration).unwrap_or_default();
        let began = at.checked_sub(signed(observed)).unwrap_or(at);
        let after = |duration: Duration| began.checked_add(signed(duration)).unwrap_or(at);
        Self { began, written: after(written), ended: after(ended) }
    }
}

impl DecisionTracer {
    /// Exports every pass that decides otherwise than the one before it, and this ratio of the others.
    pub fn new(sender: TraceSender, unchanged_ratio: f64) -> Self {
        Self { sender, unchanged_ratio }
    }

    /// Whether the newest pass of a run is exported.
    pub(super) fn accepts(&self, run: RunLength) -> bool {
        run.times <= 1 || (self.unchanged_ratio > 0.0 && random::fraction() < self.unchanged_ratio)
    }

    /// Queues a pass, which is read and converted later.
    pub(super) fn offer(&self, key: AutoscalerKey, newest: NewestPass, run: RunLength, times: PassTimes) {
        self.sender.send(move || {
            let Some(document) = newest.document() else { return Vec::new() };
            let RunLength { first, times: count } = run;
            spans(&DecisionRecord { first, times: count, ..record(&key, document) }, times)
        });
    }

    /// How many traces were not exported.
    pub(super) fn dropped(&self) -> u64 {
        self.sender.dropped()
    }
}

/// The spans of a pass.
fn spans(record: &DecisionRecord, times: PassTimes) -> Vec<Span> {
    let Ok(json) = serde_json::to_value(record) else { return Vec::new() };
    let (decision, at) = (&record.decision, record.decision.at);
    let mut trace = TraceSpans::new(record.times);
    let root = trace.add(None, "decision", SpanTimes { start: times.began, end: times.ended });
    trace.set_attributes(root, root_attributes(json.clone()));
    match (&decision.outcome, &decision.error) {
        (ScaleOutcome::WriteFailed(error), _) => trace.set_error(root, shortened(error)),
        (ScaleOutcome::Failed, Some(error)) => trace.set_error(root, shortened(&error.text)),
        _ => {}
    }
    let observe = trace.add(Some(root), "observe", SpanTimes { start: times.began, end: at });
    let mut attributes = Vec::new();
    flatten("decision.scale", json.pointer("/decision/scale"), &mut attributes);
    flatten("decision.selected", json.pointer("/decision/selected"), &mut attributes);
    trace.set_attributes(observe, attributes);
    add_metrics(&mut trace, observe, record, &json, times.began);
    add_triggers(&mut trace, observe, record, &json, SpanTimes { start: times.began, end: at });
    if let ScaleOutcome::Scaled | ScaleOutcome::WriteFailed(_) = &decision.outcome {
        let write = trace.add(Some(root), "write", SpanTimes { start: at, end: times.written.max(at) });
        let mut attributes = Vec::new();
        for field in ["desired", "outcome"] {
            let value = json.pointer(&format!("/decision/{field}"));
            flatten(&format!("decision.{field}"), value, &mut attributes);
        }
        trace.set_attributes(write, attributes);
        if let ScaleOutcome::WriteFailed(error) = &decision.outcome {
            trace.set_error(write, shortened(error));
        }
    }
    trace.into_spans()
}

/// Everything but the spec and the status, which the object has too.
fn root_attributes(mut json: Value) -> Vec<KeyValue> {
    if let Some(fields) = json.as_object_mut() {
        for field in ["apiVersion", "kind", "spec"] {
            fields.remove(field);
        }
    }
    if let Some(decision) = json.pointer_mut("/decision").and_then(Value::as_object_mut) {
        decision.remove("status");
    }
    let mut attributes = Vec::new();
    flatten("", Some(&json), &mut attributes);
    attributes
}

/// A span for each metric of the spec, with its provenance.
fn add_metrics(
    trace: &mut TraceSpans,
    observe: SpanIndex,
    record: &DecisionRecord,
    json: &Value,
    began: Timestamp,
) {
    let at = record.decision.at;
    for (index, evaluation) in record.decision.evaluations.iter().enumerate() {
        let took = record.decision.provenance.get(index).and_then(|from| from.took).unwrap_or_default();
        let start = at.checked_sub(took).unwrap_or(began).max(began);
        let span = trace.add(Some(observe), "metric", SpanTimes { start, end: at });
        let mut attributes = Vec::new();
        for field in ["evaluations", "provenance"] {
            let value = json.pointer(&format!("/decision/{field}/{index}"));
            flatten(&format!("decision.{field}"), value, &mut attributes);
        }
        trace.set_attributes(span, attributes);
        if let Err(failure) = &evaluation.result {
            trace.set_error(span, shortened(&failure.text));
        }
    }
}

/// A span for each trigger of a ScaledObject or ScaledJob.
fn add_triggers(
    trace: &mut TraceSpans,
    observe: SpanIndex,
    record: &DecisionRecord,
    json: &Value,
    times: SpanTimes,
) {
    let triggers = record.round.iter().flat_map(|round| &round.triggers);
    for (index, trigger) in triggers.enumerate() {
        let span = trace.add(Some(observe), "trigger", times);
        let mut attributes = Vec::new();
        let value = json.pointer(&format!("/round/triggers/{index}"));
        flatten("round.triggers", value, &mut attributes);
        let metrics = value.and_then(|value| value.get("metrics")).and_then(Value::as_array);
        for (number, metric) in metrics.into_iter().flatten().enumerate() {
            // Keys of attributes must be unique in a span, and most triggers have one metric.
            let path = match number {
                0 => "round.triggers.metrics".to_owned(),
                _ => format!("round.triggers.metrics.{number}"),
            };
            flatten(&path, Some(metric), &mut attributes);
        }
        trace.set_attributes(span, attributes);
        let failure = trigger.failure.as_ref();
        let failure = failure.or_else(|| trigger.metrics.iter().find_map(|metric| metric.failure.as_ref()));
        if let Some(failure) = failure {
            trace.set_error(span, shortened(failure));
        }
    }
}

/// Adds the numbers, texts and flags in a value, by their paths. Lists are left out: they have spans of their own.
fn flatten(path: &str, value: Option<&Value>, into: &mut Vec<KeyValue>) {
    if into.len() >= MAX_ATTRIBUTES {
        return;
    }
    match value {
        None | Some(Value::Null | Value::Array(_)) => {}
        Some(Value::Bool(flag)) => into.push(KeyValue::flag(path, *flag)),
        Some(Value::String(text)) => into.push(KeyValue::text(path, shortened(text))),
        Some(Value::Number(number)) => into.push(match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => KeyValue::integer(path, whole),
            (None, number) => KeyValue::number(path, number.unwrap_or_default()),
        }),
        Some(Value::Object(fields)) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, Some(value), into);
            }
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::decisions::DecisionMode;
    use engine::trigger_poll::{PolledTrigger, TriggerMetric, TriggerPoll};
    use engine::{MilliValue, ScaleWriteResult, State, Status};
    use otlp::Collector;
    use otlp::settings::{CollectorSettings, Signal};
    use otlp::traces::TraceExport;

    use super::super::Records;
    use super::super::tests::{PERIOD, at, decide, mk_spec, once};
    use super::*;

    fn times(second: i64) -> PassTimes {
        PassTimes::around(at(second), Duration::from_secs(2), Duration::from_secs(3), Duration::from_secs(4))
    }

    /// A sender without an exporter: everything that is sent counts as dropped.
    fn sender() -> TraceSender {
        let settings =
            CollectorSettings::from_environment(Signal::Traces, Some("http://127.0.0.1:9"), &|_: &str| None);
        let collector = Collector::new(settings.unwrap()).unwrap();
        TraceExport::new(collector, Vec::new(), "test", Duration::ZERO).0
    }

    fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
        let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
        found.value.as_ref()?.string_value.as_deref()
    }

    #[test]
    fn steps_of_a_decision_are_spans_with_the_fields_of_the_record() {
        let spec = Arc::new(mk_spec("web"));
        let key = AutoscalerKey::hpa("shop", "web");
        let records = Records::default();
        let decided = decide(
            &mut State::default(),
            at(10),
            &spec,
            &Status::default(),
            (10, Some(400)),
            ScaleWriteResult::Done,
        );
        records.add(&key, DecisionMode::Active, PERIOD, &spec, &decided);
        let made = spans(&records.of("shop", "hpa.web")[0], times(10));
        let names: Vec<&str> = made.iter().map(|span| &*span.name).collect();
        assert_eq!(names, ["decision", "observe", "metric", "write"]);
        let parents: Vec<_> = made.iter().map(|span| span.parent_span_id.clone()).collect();
        let id = |index: usize| made[index].span_id.clone();
        assert_eq!(parents, [Vec::new(), id(0), id(1), id(0)]);
        let second = |nanoseconds: u64| nanoseconds / 1_000_000_000 - at(0).as_second() as u64;
        let lasts: Vec<_> = made
            .iter()
            .map(|span| (second(span.start_time_unix_nano), second(span.end_time_unix_nano)))
            .collect();
        assert_eq!(lasts, [(8, 12), (8, 10), (10, 10), (10, 11)]);
        assert_eq!(text(&made[0], "metadata.name"), Some("hpa.web"));
        assert_eq!(text(&made[0], "decision.outcome"), Some("scaled"));
        assert!(made[0].attributes.contains(&KeyValue::integer("decision.desired", 16)), "{:?}", made[0]);
        assert!(!made[0].attributes.iter().any(|attribute| attribute.key.starts_with("spec")));
        assert_eq!(text(&made[2], "decision.evaluations.type"), Some("Resource"));
        assert!(made.iter().all(|span| span.status.is_none()));
    }

    #[test]
    fn failed_metric_is_an_error() {
        let spec = Arc::new(mk_spec("web"));
        let records = Records::default();
        let key = AutoscalerKey::hpa("shop", "web");
        records.add(&key, DecisionMode::Active, PERIOD, &spec, &once(0, &spec, None));
        let made = spans(&records.of("shop", "hpa.web")[0], times(0));
        let failed: Vec<&str> =
            made.iter().filter(|span| span.status.is_some()).map(|span| &*span.name).collect();
        assert_eq!(failed, ["decision", "metric"]);
        assert!(made.iter().all(|span| span.name != "write"));
    }

    #[test]
    fn each_trigger_has_a_span() {
        let spec = Arc::new(mk_spec("web"));
        let records = Records::default();
        let metric = TriggerMetric {
            metric: "s0-cron".into(),
            value: Some(MilliValue::new(2500)),
            ..TriggerMetric::default()
        };
        let second = TriggerMetric { metric: "s1-cron".into(), ..TriggerMetric::default() };
        let cron =
            PolledTrigger { type_: "cron".into(), metrics: vec![metric, second], ..PolledTrigger::default() };
        let redis = PolledTrigger {
            type_: "redis".into(),
            failure: Some("connection refused".into()),
            ..PolledTrigger::default()
        };
        let round = TriggerPoll { triggers: vec![cron, redis], ..TriggerPoll::default() };
        let (key, decided) = (AutoscalerKey::hpa("shop", "web"), once(0, &spec, Some(250)));
        records.add_round(&key, DecisionMode::Active, PERIOD, &spec, &decided, Some(round));
        let made = spans(&records.of("shop", "hpa.web")[0], times(0));
        let triggers: Vec<&Span> = made.iter().filter(|span| span.name == "trigger").collect();
        assert_eq!(triggers.len(), 2);
        assert_eq!(text(triggers[0], "round.triggers.type"), Some("cron"));
        assert_eq!(text(triggers[0], "round.triggers.metrics.metric"), Some("s0-cron"));
        assert_eq!(text(triggers[0], "round.triggers.metrics.1.metric"), Some("s1-cron"));
        assert_eq!(triggers[0].status, None);
        let status = triggers[1].status.as_ref().unwrap();
        assert_eq!((&*status.message, status.code), ("connection refused", 2));
    }

    #[tokio::test]
    async fn unchanged_decisions_are_sampled() {
        let spec = Arc::new(mk_spec("web"));
        let key = AutoscalerKey::hpa("shop", "web");
        let sent = |ratio: f64| {
            let sender = sender();
            let records = Records::default().with_tracer(DecisionTracer::new(sender.clone(), ratio));
            for (second, milli) in [(0, 250), (15, 250), (30, 250), (45, 400)] {
                records.add(&key, DecisionMode::Active, PERIOD, &spec, &once(second, &spec, Some(milli)));
                records.trace(&key, || times(second));
            }
            sender.dropped()
        };
        assert_eq!((sent(0.0), sent(1.0)), (2, 4));
    }
}
