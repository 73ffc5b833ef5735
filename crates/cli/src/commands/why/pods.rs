//! Every evaluated pod, by metric.

use api::table::Table;
use engine::evaluate::{Arithmetic, PodGroup, Proposal};
use engine::explain::short_name;
use engine::{Decision, MilliValue, Spec};

use crate::live::page::Page;

/// The table of pods, after a blank line; nothing if none was recorded.
pub(crate) fn table(page: Page, spec: &Spec, decision: &Decision) -> String {
    let mut table = Table::new(["Metric", "Pod", "Counted", "Used", "Requested"]);
    let milli = |value: Option<MilliValue>| {
        let shown =
            |v: MilliValue| quantity::Quantity::from_milli(v.get(), quantity::Format::DecimalSi).to_string();
        value.map_or_else(|| "-".to_owned(), shown)
    };
    for (evaluation, metric) in decision.evaluations.iter().zip(&spec.metrics) {
        let Ok(Proposal { sum: Arithmetic::PerPod(sum), .. }) = &evaluation.result else { continue };
        for pod in sum.detail.iter().flatten() {
            let group = match pod.group {
                PodGroup::Ready => "yes",
                PodGroup::Unready => "no: not yet ready",
                PodGroup::Missing => "no: without metrics",
                PodGroup::Ignored => "no: ending",
            };
            table.rows.push(vec![
                short_name(metric),
                pod.name.to_string(),
                group.to_owned(),
                milli(pod.usage),
                milli(pod.request),
            ]);
        }
    }
    if table.rows.is_empty() { String::new() } else { format!("\n{}", page.table(&table)) }
}
