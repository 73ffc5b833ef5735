//! Connects autoscalers with their targets and with the sources of their metrics.

use std::sync::Arc;

use api::selector::Selector;
use engine::Spec;

use super::autoscaler::Declared;
use super::document::ScenarioSpec;
use super::faults::{Faults, meant};
use super::manifest::{self, Manifest};
use super::settings::Settings;
use super::wiring::Wiring;
use super::{AutoscalerPlan, WorkloadPlan, limits};
use crate::random::Seed;

/// The parts of a scenario that autoscalers refer to.
pub(super) struct Parts<'a> {
    pub(super) scenario: &'a ScenarioSpec,
    pub(super) common: &'a Settings,
    pub(super) manifests: &'a [Manifest],
    pub(super) workloads: &'a [WorkloadPlan],
}

/// Finds the target of an autoscaler and the sources of its metrics.
pub(super) fn connect(
    faults: &mut Faults<'_>,
    declared: Declared,
    parts: &Parts<'_>,
) -> Option<AutoscalerPlan> {
    let Declared { object, spec, period, dry_run } = declared;
    let workload = target(faults, &spec, parts)?;
    if usize::try_from(spec.max.get()).is_ok_and(|max| max > limits::MAX_PODS_PER_WORKLOAD) {
        let message = format!(
            "the simulator has at most {} pods per workload, found {}",
            limits::MAX_PODS_PER_WORKLOAD,
            spec.max
        );
        faults.add("spec.maxReplicas", message);
    }
    let selected_workloads = selected_workloads(parts.workloads, workload);
    let wiring = Wiring {
        workloads: parts.workloads,
        selected_workloads: &selected_workloads,
        outages: &parts.scenario.outages,
        delay: parts.common.delay,
        seed: Seed::new(parts.scenario.seed).part(u64::MAX),
    };
    let metrics = spec.metrics.iter().enumerate();
    let inputs =
        metrics.map(|(index, metric)| wiring.input(faults, &format!("spec.metrics[{index}]"), metric));
    let inputs = inputs.collect();
    let period = period.unwrap_or(parts.common.sync_period);
    Some(AutoscalerPlan {
        object,
        spec: Arc::new(spec),
        workload,
        selected_workloads,
        inputs,
        period,
        dry_run,
    })
}

/// The target workload of an autoscaler.
fn target(faults: &mut Faults<'_>, spec: &Spec, parts: &Parts<'_>) -> Option<usize> {
    let path = "spec.scaleTargetRef";
    // The kind may be written in lower case (T27).
    let meant_kind = |kind: &str| kind == spec.target.kind || kind.to_lowercase() == spec.target.kind;
    let is_target = |kind: &str, namespace: &str, name: &str| {
        meant_kind(kind) && namespace == spec.namespace && name == spec.target.name
    };
    let found = parts.workloads.iter().position(|w| is_target(&w.kind, &w.namespace, &w.name));
    if found.is_some() {
        return found;
    }
    let (kind, name) = (&spec.target.kind, &spec.target.name);
    if parts.workloads.len() < parts.scenario.workloads.len() {
        // A workload is invalid, most likely this one, so no second problem is reported.
    } else if parts.manifests.iter().any(|m| is_target(&m.kind, &m.namespace, &m.name)) {
        let hint = Some("list it under `workloads` of the Scenario".to_owned());
        faults.add_with_hint(
            &format!("{path}.name"),
            format!("nothing says what load {kind} `{name}` gets"),
            hint,
        );
    } else if !manifest::KINDS.iter().any(|known| meant_kind(known)) {
        let message = format!("the simulator has no workloads of kind `{kind}`");
        faults.add_with_hint(&format!("{path}.kind"), message, meant(kind, manifest::KINDS));
    } else {
        let message = format!("no manifest declares {kind} `{name}` in {}", spec.namespace);
        let known = parts.manifests.iter().map(|m| m.name.as_str());
        faults.add_with_hint(&format!("{path}.name"), message, meant(name, known));
    }
    None
}

/// The workloads whose pods the selector of `workload` selects: Kubernetes ignores the owner of a pod (docs/spec/hpa.md 5.3).
fn selected_workloads(workloads: &[WorkloadPlan], workload: usize) -> Vec<usize> {
    let Some(target) = workloads.get(workload) else { return Vec::new() };
    let selector = Selector::parse(&target.selector).unwrap_or_else(|_| Selector::nothing());
    let selected = |w: &WorkloadPlan| w.namespace == target.namespace && selector.matches_map(&w.labels);
    (0..workloads.len()).filter(|place| workloads.get(*place).is_some_and(selected)).collect()
}
