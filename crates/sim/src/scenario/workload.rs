//! Builds the plan of a workload from its settings and its manifest.

use std::sync::Arc;

use engine::pod::Container;
use quantity::Quantity;

use super::document::{ContainerSettings, MetricKind, MetricSettings, UsageSettings, WorkloadSettings};
use super::faults::{Faults, meant};
use super::limits::MAX_UNITS_PER_SECOND;
use super::manifest::Manifest;
use super::shapes::{self, Setting};
use super::{MetricPlan, WorkloadPlan};
use crate::inputs::{SeriesValue, Signal};
use crate::random::Seed;
use crate::time::Millis;
use crate::workload::{
    ContainerUsageModel, ModelPodTemplate, PodDelays, PodFailure, ServiceCapacity, UsageModel, WorkloadModel,
};

/// Maximum usage of a resource by a container.
const MAX_CONTAINER_USAGE: f64 = 1e15;
/// Maximum share of failing pods. Failed pods are replaced, so a higher share would create pods without end.
const MAX_FAILING_SHARE: f64 = 0.9;

/// Checks and builds the plan of the workload written at `path`.
pub(super) fn plan(
    faults: &mut Faults<'_>,
    setting: &Setting<'_>,
    path: &str,
    settings: &WorkloadSettings,
    manifest: &Manifest,
    seed: Seed,
    delay: Millis,
) -> WorkloadPlan {
    if settings.load.is_empty() {
        let hint = Some("for example `- constant: 10`".to_owned());
        faults.add_with_hint(&format!("{path}.load"), "this workload gets no load", hint);
    }
    let service = service(faults, &format!("{path}.serves"), settings);
    WorkloadPlan {
        kind: manifest.kind.clone(),
        namespace: manifest.namespace.clone(),
        name: manifest.name.clone(),
        labels: manifest.labels.clone(),
        selector: manifest.selector.to_string(),
        plan: WorkloadModel {
            template: template(faults, &format!("{path}.pods"), settings, manifest, seed.part(1)),
            replicas: manifest.replicas,
            service,
            load: shapes::load(faults, setting, &format!("{path}.load"), &settings.load, seed.part(2)),
        },
        containers: containers(faults, &format!("{path}.containers"), &settings.containers, manifest),
        metrics: metrics(faults, setting, path, settings, seed.part(3), delay),
    }
}

fn template(
    faults: &mut Faults<'_>,
    path: &str,
    settings: &WorkloadSettings,
    manifest: &Manifest,
    seed: Seed,
) -> ModelPodTemplate {
    let pods = &settings.pods;
    let mut delay =
        |field: &str, given, default| shapes::delay(faults, &format!("{path}.{field}"), given, default);
    let usual = PodDelays::default();
    let start_delay = delay("startDelay", pods.start_delay, usual.start);
    let ready_delay = delay("readyDelay", pods.ready_delay, usual.ready);
    let stop_delay = delay("stopDelay", pods.stop_delay, usual.stop);
    let failed = pods.failure == PodFailure::Failed && pods.failing > 0.0;
    let most = if failed { MAX_FAILING_SHARE } else { 1.0 };
    let failing = faults.number(&format!("{path}.failing"), pods.failing, 0.0, most);
    if failed && start_delay + ready_delay < Millis::from_secs(1) {
        let message = "with `failure: Failed` pods must take at least 1s to start and become ready";
        faults.add(&format!("{path}.failure"), message);
    }
    ModelPodTemplate {
        name: manifest.name.clone(),
        order: manifest.order,
        shape: Arc::clone(&manifest.shape),
        start_delay,
        ready_delay,
        stop_delay,
        failing,
        failure: pods.failure,
        seed,
    }
}

fn service(faults: &mut Faults<'_>, path: &str, settings: &WorkloadSettings) -> ServiceCapacity {
    let serves = &settings.serves;
    let per_pod = serves.per_pod.inspect(|per_pod| {
        if !(*per_pod > 0.0 && *per_pod <= MAX_UNITS_PER_SECOND) {
            faults.add(
                &format!("{path}.perPod"),
                format!("`perPod` must be above 0 and at most {MAX_UNITS_PER_SECOND}"),
            );
        }
    });
    let limit =
        serves.queue_limit.map(|limit| faults.number(&format!("{path}.queueLimit"), limit, 1.0, f64::MAX));
    if limit.is_some() && !serves.queue {
        faults.add(&format!("{path}.queueLimit"), "`queueLimit` needs `queue: true`");
    }
    let queue = if serves.queue { limit.unwrap_or(f64::INFINITY) } else { 0.0 };
    ServiceCapacity { per_pod, queue }
}

/// All running containers with their usage.
fn containers(
    faults: &mut Faults<'_>,
    path: &str,
    settings: &[ContainerSettings],
    manifest: &Manifest,
) -> Vec<ContainerUsageModel> {
    let shape = &manifest.shape;
    let running = || shape.containers.iter().chain(shape.init_containers.iter().filter(|c| c.restarts));
    for (index, container) in settings.iter().enumerate() {
        let at_name = format!("{path}[{index}].name");
        let name = &container.name;
        if settings.iter().take(index).any(|earlier| earlier.name == *name) {
            faults.add(&at_name, format!("container `{name}` is listed twice"));
        } else if shape.init_containers.iter().any(|c| c.name == *name && !c.restarts) {
            faults.add(
                &at_name,
                format!("init container `{name}` ends before the pod runs and uses nothing then"),
            );
        } else if !running().any(|c| c.name == *name) {
            let message = format!("{} `{}` has no container `{name}`", manifest.kind, manifest.name);
            faults.add_with_hint(&at_name, message, meant(name, running().map(|c| c.name.as_str())));
        }
    }
    let none = UsageSettings::default();
    let each = running().map(|container| {
        let found = settings.iter().enumerate().find(|(_, s)| s.name == container.name);
        let path = format!("{path}[{}]", found.map_or(0, |(index, _)| index));
        let mut of = |resource: &str, settings: &UsageSettings| {
            usage(faults, &format!("{path}.{resource}"), settings, container, resource)
        };
        ContainerUsageModel {
            name: container.name.clone(),
            cpu: of("cpu", found.map_or(&none, |(_, s)| &s.cpu)),
            memory: of("memory", found.map_or(&none, |(_, s)| &s.memory)),
        }
    });
    each.collect()
}

fn usage(
    faults: &mut Faults<'_>,
    path: &str,
    settings: &UsageSettings,
    container: &Container,
    resource: &str,
) -> UsageModel {
    let mut milli = |field: &str, quantity: Option<&Quantity>| {
        let quantity = quantity?;
        if quantity.sign() < 0 || quantity.as_f64() > MAX_CONTAINER_USAGE {
            let message = format!("`{field}` must not be negative or beyond all sense, found {quantity}");
            faults.add(&format!("{path}.{field}"), message);
        }
        Some(quantity.as_f64() * 1000.0)
    };
    let idle = milli("idle", settings.idle.as_ref()).unwrap_or_default();
    let limit = container.resources.limits.iter().find(|(name, _)| name == resource);
    UsageModel {
        idle,
        per_unit: milli("perUnit", settings.per_unit.as_ref()).unwrap_or_default(),
        starting: milli("starting", settings.starting.as_ref()).unwrap_or(idle),
        limit: limit.map_or(f64::INFINITY, |(_, limit)| limit.as_f64() * 1000.0),
    }
}

fn metrics(
    faults: &mut Faults<'_>,
    setting: &Setting<'_>,
    path: &str,
    settings: &WorkloadSettings,
    seed: Seed,
    delay: Millis,
) -> Vec<MetricPlan> {
    let mut plans: Vec<MetricPlan> = Vec::new();
    for (index, metric) in settings.metrics.iter().enumerate() {
        let path = format!("{path}.metrics[{index}]");
        check_metric(faults, &path, settings, metric);
        let curve =
            shapes::load(faults, setting, &format!("{path}.load"), &metric.load, seed.part(index as u64));
        let plan = MetricPlan {
            name: metric.name.clone(),
            kind: metric.served_as,
            object: metric.object.clone(),
            labels: metric.labels.clone(),
            value: metric.value.map_or_else(|| SeriesValue::Curve(Arc::new(curve)), SeriesValue::Signal),
            scale: faults.number(
                &format!("{path}.scale"),
                metric.scale,
                -MAX_UNITS_PER_SECOND,
                MAX_UNITS_PER_SECOND,
            ),
            delay: shapes::delay(faults, &format!("{path}.delay"), metric.delay, delay),
        };
        if plans.iter().any(|other| other.is_same_series(&plan)) {
            faults.add(
                &format!("{path}.name"),
                format!("metric `{}` with these labels is listed twice", metric.name),
            );
        }
        plans.push(plan);
    }
    plans
}

fn check_metric(faults: &mut Faults<'_>, path: &str, settings: &WorkloadSettings, metric: &MetricSettings) {
    match (&metric.value, metric.load.is_empty()) {
        (None, true) => faults.add(path, "a metric needs `value` or `load`"),
        (Some(_), false) => faults.add(&format!("{path}.load"), "a metric has `value` or `load`, not both"),
        (None, false) if metric.served_as == MetricKind::Pods => {
            faults.add(&format!("{path}.load"), "a metric of pods has `value`, not `load`");
        }
        (Some(Signal::Backlog), _) if !settings.serves.queue => {
            faults.add(
                &format!("{path}.value"),
                "without `serves.queue: true` nothing waits, so the backlog is always 0",
            );
        }
        _ => {}
    }
    match (&metric.object, metric.served_as) {
        (None, MetricKind::Object) => faults.add(path, "a metric of an object needs `object`"),
        (Some(_), MetricKind::Pods | MetricKind::External) => {
            faults.add(&format!("{path}.object"), "only a metric with `as: Object` has `object`");
        }
        _ => {}
    }
    if metric.name.is_empty() {
        faults.add(&format!("{path}.name"), "a metric needs a name");
    }
}
