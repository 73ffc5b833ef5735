//! The text of `kubectl describe hpa` (docs/spec/hpa.md 9.2).

mod metrics;
mod page;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use jiff::tz::Offset;

use super::v2::{HPAScalingRules, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerCondition};
use super::{v1, v2};
use crate::meta::ObjectMeta;
use page::Page;

/// An event as it is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `Normal` or `Warning`.
    pub type_: String,
    /// Reason.
    pub reason: String,
    /// How long ago, and how often, e.g. `5m (x3 over 20m)`.
    pub age: String,
    /// Source.
    pub from: String,
    /// Message.
    pub message: String,
}

/// What an object has beyond those of v2.
#[derive(Clone, Debug, Default)]
pub(crate) struct MoreFields {
    /// Of each metric, by position.
    pub(crate) metrics: Vec<MoreOfMetric>,
    /// Fields after the bounds: name and value.
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// What a metric has beyond those of v2.
#[derive(Clone, Debug, Default)]
pub(crate) struct MoreOfMetric {
    /// Whether percentages are of limits.
    pub(crate) of_limits: bool,
    /// Lines below it.
    pub(crate) lines: Vec<String>,
}

/// The description of a v2 object; without `events` their block is left out.
pub fn describe_v2(object: &v2::HorizontalPodAutoscaler, events: Option<&[Event]>) -> String {
    describe_with(object, &MoreFields::default(), events)
}

/// The description of a v2 object with further fields.
pub(crate) fn describe_with(
    object: &v2::HorizontalPodAutoscaler,
    more: &MoreFields,
    events: Option<&[Event]>,
) -> String {
    let mut page = Page::default();
    head(&mut page, &object.metadata, &object.spec.scale_target_ref);
    page.field("Metrics", "( current / target )");
    metrics::describe(
        &mut page,
        &object.spec.metrics,
        object.status.current_metrics.as_deref().unwrap_or_default(),
        &more.metrics,
    );
    bounds(&mut page, object.spec.min_replicas, object.spec.max_replicas);
    for (name, value) in &more.fields {
        page.field(name, value);
    }
    if let Some(rules) = &object.spec.behavior {
        behavior(&mut page, rules);
    }
    let status = &object.status;
    pods(&mut page, &object.spec.scale_target_ref.kind, status.current_replicas, status.desired_replicas);
    if !status.conditions.is_empty() {
        conditions(&mut page, &status.conditions);
    }
    list_events(&mut page, events);
    page.finish()
}

/// The description of a v1 object.
pub fn describe_v1(object: &v1::HorizontalPodAutoscaler, events: Option<&[Event]>) -> String {
    let mut page = Page::default();
    head(&mut page, &object.metadata, &object.spec.scale_target_ref);
    if let Some(target) = object.spec.target_cpu_utilization_percentage {
        page.field("Target CPU utilization", &format!("{target}%"));
        let current = object.status.current_cpu_utilization_percentage;
        let current = current.map_or_else(|| "<unknown>".to_owned(), |current| current.to_string());
        page.field("Current CPU utilization", &format!("{current}%"));
    }
    bounds(&mut page, object.spec.min_replicas, object.spec.max_replicas);
    let status = &object.status;
    pods(&mut page, &object.spec.scale_target_ref.kind, status.current_replicas, status.desired_replicas);
    list_events(&mut page, events);
    page.finish()
}

fn head(page: &mut Page, metadata: &ObjectMeta, target: &v2::CrossVersionObjectReference) {
    page.field("Name", &metadata.name);
    page.field("Namespace", &metadata.namespace);
    page.labels(&metadata.labels);
    page.annotations(&metadata.annotations);
    page.field("CreationTimestamp", &long_time(metadata.creation_timestamp));
    page.field("Reference", &format!("{}/{}", target.kind, target.name));
}

fn bounds(page: &mut Page, min: Option<i32>, max: i32) {
    page.field("Min replicas", &min.map_or_else(|| "<unset>".to_owned(), |min| min.to_string()));
    page.field("Max replicas", &max.to_string());
}

fn behavior(page: &mut Page, behavior: &HorizontalPodAutoscalerBehavior) {
    page.line(0, "Behavior:");
    for (name, rules) in [("Scale Up", &behavior.scale_up), ("Scale Down", &behavior.scale_down)] {
        if let Some(rules) = rules {
            direction(page, name, rules);
        }
    }
}

fn direction(page: &mut Page, name: &str, rules: &HPAScalingRules) {
    page.line(1, &format!("{name}:"));
    if let Some(window) = rules.stabilization_window_seconds {
        page.line(2, &format!("Stabilization Window: {window} seconds"));
    }
    let policies = rules.policies.as_deref().unwrap_or_default();
    if !policies.is_empty() {
        page.line(2, &format!("Select Policy: {}", rules.select_policy.as_deref().unwrap_or("Max")));
        page.line(2, "Policies:");
    }
    for policy in policies {
        let v2::HPAScalingPolicy { type_, value, period_seconds } = policy;
        page.line(3, &format!("- Type: {type_}\tValue: {value}\tPeriod: {period_seconds} seconds"));
    }
}

fn pods(page: &mut Page, kind: &str, current: i32, desired: i32) {
    page.field(&format!("{kind} pods"), &format!("{current} current / {desired} desired"));
}

fn conditions(page: &mut Page, conditions: &[HorizontalPodAutoscalerCondition]) {
    page.line(0, "Conditions:");
    page.line(1, "Type\tStatus\tReason\tMessage");
    page.line(1, "----\t------\t------\t-------");
    for condition in conditions {
        let HorizontalPodAutoscalerCondition { type_, status, reason, message, .. } = condition;
        page.line(1, &format!("{type_}\t{status}\t{reason}\t{message}"));
    }
}

fn list_events(page: &mut Page, events: Option<&[Event]>) {
    let Some(events) = events else { return };
    if events.is_empty() {
        page.field("Events", "<none>");
        return;
    }
    page.new_columns();
    page.line(0, "Events:");
    page.line(1, "Type\tReason\tAge\tFrom\tMessage");
    page.line(1, "----\t------\t----\t----\t-------");
    for Event { type_, reason, age, from, message } in events {
        page.line(1, &format!("{type_}\t{reason}\t{age}\t{from}\t{}", message.trim()));
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// E.g. `Tue, 14 Nov 2023 22:13:20 +0000`; no time is Go's zero time.
fn long_time(time: Option<Timestamp>) -> String {
    let Some(time) = time else { return "Mon, 01 Jan 0001 00:00:00 +0000".to_owned() };
    let civil = Offset::UTC.to_datetime(time);
    let name = |names: &'static [&'static str], at: i8| names.get(at as usize).copied().unwrap_or_default();
    format!(
        "{}, {:02} {} {:04} {:02}:{:02}:{:02} +0000",
        name(&DAYS, civil.weekday().to_monday_zero_offset()),
        civil.day(),
        name(&MONTHS, civil.month() - 1),
        civil.year(),
        civil.hour(),
        civil.minute(),
        civil.second()
    )
}
