//! The metrics block of `kubectl describe hpa`.

use super::MoreOfMetric;
use super::page::Page;
use crate::autoscaling::print::{UNKNOWN, known, quantity};
use crate::autoscaling::v2::{self, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus};
use crate::gotext;

/// One line per metric; statuses are matched by position.
pub(super) fn describe(
    page: &mut Page,
    metrics: &[MetricSpec],
    statuses: &[MetricStatus],
    more: &[MoreOfMetric],
) {
    for (i, metric) in metrics.iter().enumerate() {
        let more = more.get(i).cloned().unwrap_or_default();
        page.line(1, &line(metric, statuses.get(i), more.of_limits));
        for text in &more.lines {
            page.line(2, text);
        }
    }
}

fn line(metric: &MetricSpec, status: Option<&MetricStatus>, of_limits: bool) -> String {
    let absent = MetricTarget::default();
    match metric.type_.as_str() {
        v2::EXTERNAL => {
            let source = metric.external.as_ref();
            let name = source.map_or("", |source| &source.metric.name);
            let target = source.map_or(&absent, |source| &source.target);
            let current = status.and_then(|status| status.external.as_ref()).map(|status| &status.current);
            // Unlike for an Object metric, an unknown average is not printed as null here.
            let current =
                current.filter(|current| target.average_value.is_none() || current.average_value.is_some());
            let name = gotext::quote(name);
            total(&name, target.average_value.is_some(), target, current)
        }
        v2::OBJECT => {
            let source = metric.object.as_ref();
            let target = source.map_or(&absent, |source| &source.target);
            let name = source.map(|source| {
                let object = &source.described_object;
                format!("\"{}\" on {}/{}", source.metric.name, object.kind, object.name)
            });
            let current = status.and_then(|status| status.object.as_ref()).map(|status| &status.current);
            // The target's type decides here, not the field that is set as in the table.
            total(&name.unwrap_or_default(), target.type_ == v2::AVERAGE_VALUE, target, current)
        }
        v2::PODS => {
            let source = metric.pods.as_ref();
            let name = gotext::quote(source.map_or("", |source| &source.metric.name));
            let current = status.and_then(|status| status.pods.as_ref()).map(|status| &status.current);
            let target = quantity(source.and_then(|source| source.target.average_value.as_ref()));
            format!(
                "{name} on pods:\t{} / {target}",
                known(current, |current| current.average_value.as_ref())
            )
        }
        v2::RESOURCE => {
            let source = metric.resource.as_ref();
            let name = format!("resource {} on pods", source.map_or("", |source| &source.name));
            let current = status.and_then(|status| status.resource.as_ref()).map(|status| &status.current);
            resource(&name, source.map_or(&absent, |source| &source.target), current, of_limits)
        }
        v2::CONTAINER_RESOURCE => {
            let source = metric.container_resource.as_ref();
            let (resource_name, container) =
                source.map_or(("", ""), |source| (&source.name, &source.container));
            let name = format!("resource {resource_name} of container \"{container}\" on pods");
            let current =
                status.and_then(|status| status.container_resource.as_ref()).map(|status| &status.current);
            resource(&name, source.map_or(&absent, |source| &source.target), current, of_limits)
        }
        other => format!("<unknown metric type {}>", gotext::quote(other)),
    }
}

fn total(name: &str, average: bool, target: &MetricTarget, current: Option<&MetricValueStatus>) -> String {
    if average {
        let current = known(current, |current| current.average_value.as_ref());
        format!("{name} (target average value):\t{current} / {}", quantity(target.average_value.as_ref()))
    } else {
        let current = known(current, |current| current.value.as_ref());
        format!("{name} (target value):\t{current} / {}", quantity(target.value.as_ref()))
    }
}

fn resource(
    name: &str,
    target: &MetricTarget,
    current: Option<&MetricValueStatus>,
    of_limits: bool,
) -> String {
    if let Some(target) = &target.average_value {
        return format!("{name}:\t{} / {target}", known(current, |current| current.average_value.as_ref()));
    }
    let current = current.and_then(|current| current.average_utilization.map(|percent| (percent, current)));
    let current = current.map_or_else(
        || UNKNOWN.to_owned(),
        |(percent, current)| format!("{percent}% ({})", quantity(current.average_value.as_ref())),
    );
    let target =
        target.average_utilization.map_or_else(|| "<auto>".to_owned(), |percent| format!("{percent}%"));
    // Kubernetes indents twice in one line, hence the two spaces.
    let base = if of_limits { "limit" } else { "request" };
    format!("{name}  (as a percentage of {base}):\t{current} / {target}")
}
