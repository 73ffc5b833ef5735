//! Every evaluated pod, by metric.

use api::diagnosis::PodFact;
use api::table::Table;
use engine::evaluate::{Arithmetic, PodGroup, Proposal, UncountedPod, UncountedReason};
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

/// The table of pods on a cluster: the record names those that were not counted, and `known` are the pods that the selector
/// matches now. A pod that the record does not name was counted, unless it started after the decision.
pub(crate) fn live_table(page: Page, spec: &Spec, decision: &Decision, known: Option<&[PodFact]>) -> String {
    let recorded = table(page, spec, decision);
    if !recorded.is_empty() {
        return recorded;
    }
    let mut table = Table::new(["Metric", "Pod", "Counted", "Node"]);
    for (evaluation, metric) in decision.evaluations.iter().zip(&spec.metrics) {
        let (uncounted, ready): (&[UncountedPod], i64) = match &evaluation.result {
            Ok(Proposal { sum: Arithmetic::PerPod(sum), .. }) => (&sum.uncounted, sum.pods.ready),
            Err(failure) => (&failure.uncounted, 0),
            Ok(_) => continue,
        };
        let node_of = |name: &str| {
            let pod = known.unwrap_or_default().iter().find(|pod| pod.name == name);
            pod.and_then(|pod| pod.node.clone()).unwrap_or_else(|| "-".to_owned())
        };
        let mut row = |name: &str, counted: &str| {
            table.rows.push(vec![short_name(metric), name.to_owned(), counted.to_owned(), node_of(name)]);
        };
        for pod in uncounted {
            row(&pod.name, state(pod.reason));
        }
        let named = |name: &str| uncounted.iter().any(|pod| &*pod.name == name);
        let others: Vec<&PodFact> =
            known.unwrap_or_default().iter().filter(|pod| !named(&pod.name)).collect();
        // Without a complete list of the uncounted pods, or after a change of pods, the others are not known to be counted.
        let certain = i64::try_from(others.len()).is_ok_and(|count| count == ready);
        for pod in others {
            row(&pod.name, if certain { "yes" } else { "unknown: the pods have changed since" });
        }
    }
    if table.rows.is_empty() { String::new() } else { format!("\n{}", page.table(&table)) }
}

fn state(reason: UncountedReason) -> &'static str {
    match reason {
        UncountedReason::Terminating => "no: terminating",
        UncountedReason::Failed => "no: failed",
        UncountedReason::Pending => "no: pending",
        UncountedReason::NotReady => "no: not ready",
        UncountedReason::Starting => "no: just started",
        UncountedReason::NoSample => "no: without a sample",
        UncountedReason::Completed => "no: completed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::record;

    #[test]
    fn live_table_names_counted_and_uncounted_pods() {
        let mut record = record("2026-01-05T09:15:00Z", 3, &[100; 3]);
        let pod = |name: &str| PodFact { name: name.into(), node: Some("n1".into()) };
        let Ok(proposal) = &mut record.decision.evaluations[0].result else { unreachable!() };
        let Arithmetic::PerPod(sum) = &mut proposal.sum else { unreachable!() };
        sum.pods.ready = 2;
        let reason = UncountedReason::NoSample;
        sum.uncounted = vec![UncountedPod { name: "web-2".into(), reason, started: None }];
        let page = Page { width: None, colour: false };
        let known = [pod("web-0"), pod("web-1"), pod("web-2")];
        let text = live_table(page, &record.spec, &record.decision, Some(&known));
        assert_eq!(
            text,
            "
METRIC   POD     COUNTED                NODE
cpu      web-2   no: without a sample   n1
cpu      web-0   yes                    n1
cpu      web-1   yes                    n1
"
        );
        let text = live_table(page, &record.spec, &record.decision, Some(&known[1..]));
        assert!(text.contains("web-1   unknown: the pods have changed since"), "{text}");
    }
}
