//! Pod templates, shared by all pods that have equal ones.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use quantity::Quantity;
use sim::Millis;
use sim::workload::PodDelays;

use super::plan::annotation;
use super::view::{ContainerView, PodSpecView, ResourcesView, Toleration};

/// The parts of a pod that all pods of one template share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PodTemplate {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) containers: Vec<ContainerTemplate>,
    pub(crate) init_containers: Vec<ContainerTemplate>,
    /// The resources that a pod requests.
    pub(crate) request: ResourceAmounts,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) restarts: RestartPolicy,
    pub(crate) host_network: bool,
    /// The longest initial delay of its readiness probes.
    pub(crate) probe_delay: Millis,
    pub(crate) overrides: LifecycleOverrides,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ContainerTemplate {
    pub(crate) name: String,
    pub(crate) image: String,
    /// A restartable init container.
    pub(crate) sidecar: bool,
    /// CPU limit in millicores.
    pub(crate) cpu_limit: Option<i64>,
    pub(crate) memory_limit: Option<i64>,
}

/// Resources of a node: CPU in millicores, memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ResourceAmounts {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) pods: i64,
}

/// The restart policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum RestartPolicy {
    /// Containers are always restarted: the pod never ends by itself.
    #[default]
    Always,
    /// Failed containers are restarted.
    OnFailure,
    /// Containers are not restarted.
    Never,
}

/// Overrides from annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LifecycleOverrides {
    start_delay: Option<Millis>,
    ready_delay: Option<Millis>,
    stop_delay: Option<Millis>,
    run_for: Option<Millis>,
    exit_code: i32,
}

/// The delays and the end of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PodTimeline {
    pub(crate) start: Millis,
    pub(crate) ready: Millis,
    pub(crate) stop: Millis,
    /// How long the containers run before they end by themselves, and their exit code.
    pub(crate) ends: Option<(Millis, i32)>,
    pub(crate) restarts: RestartPolicy,
}

/// All templates in use.
#[derive(Debug, Default)]
pub(crate) struct TemplateInterner {
    known: HashSet<Arc<PodTemplate>>,
    clean_at: usize,
}

impl PodTemplate {
    pub(crate) fn new(
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<&BTreeMap<String, String>>,
        spec: PodSpecView,
    ) -> Self {
        let (cpu, memory) = (request(&spec, "cpu", thousandths), request(&spec, "memory", whole));
        let seconds = |container: &ContainerView| container.readiness_probe.as_ref()?.initial_delay_seconds;
        let probe_delay = spec.containers.iter().flatten().filter_map(seconds).max().unwrap_or(0);
        let parts = |containers: Option<Vec<ContainerView>>| {
            containers.into_iter().flatten().map(ContainerTemplate::new).collect()
        };
        Self {
            labels: labels.unwrap_or_default(),
            containers: parts(spec.containers),
            init_containers: parts(spec.init_containers),
            request: ResourceAmounts { cpu, memory, pods: 1 },
            node_selector: spec.node_selector.unwrap_or_default(),
            tolerations: spec.tolerations.unwrap_or_default(),
            restarts: match spec.restart_policy.as_deref() {
                Some("Never") => RestartPolicy::Never,
                Some("OnFailure") => RestartPolicy::OnFailure,
                _ => RestartPolicy::Always,
            },
            host_network: spec.host_network.unwrap_or(false),
            probe_delay: Millis::from_secs(probe_delay.max(0)),
            overrides: annotations.map(LifecycleOverrides::new).unwrap_or_default(),
        }
    }

    /// The containers that run as long as the pod, in order.
    pub(crate) fn running(&self) -> impl Iterator<Item = &ContainerTemplate> {
        self.containers.iter().chain(self.init_containers.iter().filter(|part| part.sidecar))
    }

    /// The timeline of a pod with the plan's `delays` and `run_for`.
    pub(crate) fn timeline(&self, delays: PodDelays, run_for: Millis) -> PodTimeline {
        let overrides = &self.overrides;
        let ends = self.restarts != RestartPolicy::Always;
        // Pods that end by themselves need no warm-up time.
        let usual = if ends { Millis::ZERO } else { delays.ready };
        PodTimeline {
            start: overrides.start_delay.unwrap_or(delays.start),
            ready: overrides.ready_delay.unwrap_or(usual) + self.probe_delay,
            stop: overrides.stop_delay.unwrap_or(delays.stop),
            ends: ends.then(|| (overrides.run_for.unwrap_or(run_for), overrides.exit_code)),
            restarts: self.restarts,
        }
    }
}

impl ContainerTemplate {
    fn new(container: ContainerView) -> Self {
        let limits = container.resources.and_then(|resources| resources.limits).unwrap_or_default();
        Self {
            name: container.name.unwrap_or_default(),
            image: container.image.unwrap_or_default(),
            sidecar: container.restart_policy.as_deref() == Some("Always"),
            cpu_limit: limits.get("cpu").map(thousandths),
            memory_limit: limits.get("memory").map(whole),
        }
    }
}

impl LifecycleOverrides {
    /// Invalid annotations are ignored.
    fn new(annotations: &BTreeMap<String, String>) -> Self {
        let length =
            |name| annotations.get(name)?.parse::<Millis>().ok().filter(|length| *length >= Millis::ZERO);
        let code = annotations.get(annotation::EXIT_CODE).and_then(|code| code.parse().ok());
        Self {
            start_delay: length(annotation::START_DELAY),
            ready_delay: length(annotation::READY_DELAY),
            stop_delay: length(annotation::STOP_DELAY),
            run_for: length(annotation::RUN_FOR),
            exit_code: code.unwrap_or(0),
        }
    }
}

impl TemplateInterner {
    /// The shared copy of a template.
    pub(crate) fn share(&mut self, template: PodTemplate) -> Arc<PodTemplate> {
        if let Some(known) = self.known.get(&template) {
            return Arc::clone(known);
        }
        // Rollouts leave unused templates behind.
        if self.known.len() >= self.clean_at {
            self.known.retain(|template| Arc::strong_count(template) > 1);
            self.clean_at = 2 * self.known.len() + 16;
        }
        let template = Arc::new(template);
        self.known.insert(Arc::clone(&template));
        template
    }
}

/// The request as the scheduler computes it: all containers and sidecars, or the largest init container with the
/// sidecars before it; pod-level resources take precedence.
fn request(spec: &PodSpecView, name: &str, unit: fn(&Quantity) -> i64) -> i64 {
    let asked = |resources: Option<&ResourcesView>| resources?.requests.as_ref()?.get(name).map(unit);
    let of = |container: &ContainerView| asked(container.resources.as_ref()).unwrap_or(0);
    let (mut sidecars, mut largest) = (0_i64, 0_i64);
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = sidecars.saturating_add(of(container));
            largest = largest.max(sidecars);
        } else {
            largest = largest.max(sidecars.saturating_add(of(container)));
        }
    }
    let running = spec.containers.iter().flatten().map(of).fold(sidecars, i64::saturating_add);
    let overhead = spec.overhead.as_ref().and_then(|overhead| overhead.get(name)).map_or(0, unit);
    asked(spec.resources.as_ref()).unwrap_or(running.max(largest)).saturating_add(overhead)
}

fn thousandths(quantity: &Quantity) -> i64 {
    quantity.milli_value()
}

fn whole(quantity: &Quantity) -> i64 {
    quantity.value()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The template of a pod with this spec.
    pub(crate) fn template(spec: serde_json::Value) -> PodTemplate {
        PodTemplate::new(None, None, serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn pod_requests_match_the_scheduler() {
        let with = |cpu: &str| serde_json::json!({"requests": {"cpu": cpu, "memory": "1Gi"}});
        let two = template(
            serde_json::json!({"containers": [{"resources": with("100m")}, {"resources": with("1")}, {}]}),
        );
        assert_eq!(two.request, ResourceAmounts { cpu: 1100, memory: 2 << 30, pods: 1 });
        let init = template(serde_json::json!({
            "containers": [{"resources": with("100m")}],
            "initContainers": [
                {"resources": with("2")},
                {"resources": with("50m"), "restartPolicy": "Always"},
            ],
            "overhead": {"cpu": "5m"},
        }));
        assert_eq!((init.request.cpu, init.request.memory), (2005, 2 << 30));
        let whole =
            template(serde_json::json!({"containers": [{"resources": with("1")}], "resources": with("3")}));
        assert_eq!(whole.request.cpu, 3000);
    }

    #[test]
    fn annotations_and_probes_change_the_timeline() {
        let spec = || {
            let probe = serde_json::json!({"initialDelaySeconds": 20});
            serde_json::from_value(serde_json::json!({"containers": [{"readinessProbe": probe}]})).unwrap()
        };
        let usual = PodDelays::default();
        let timeline = PodTemplate::new(None, None, spec()).timeline(usual, Millis::ZERO);
        assert_eq!(
            (timeline.start, timeline.ready, timeline.ends),
            (usual.start, usual.ready + Millis(20_000), None)
        );
        let asked = [
            (annotation::READY_DELAY, "1m"),
            (annotation::START_DELAY, "-1s"),
            (annotation::STOP_DELAY, "x"),
        ];
        let asked = asked.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let timeline = PodTemplate::new(None, Some(&asked), spec()).timeline(usual, Millis::ZERO);
        assert_eq!(
            (timeline.start, timeline.ready, timeline.stop),
            (usual.start, Millis(80_000), usual.stop)
        );
        let job = template(serde_json::json!({"restartPolicy": "Never"})).timeline(usual, Millis(9));
        assert_eq!((job.ready, job.ends), (Millis::ZERO, Some((Millis(9), 0))));
    }

    #[test]
    fn equal_templates_are_shared_and_unused_ones_dropped() {
        let mut templates = TemplateInterner::default();
        let first = templates.share(PodTemplate::default());
        assert!(Arc::ptr_eq(&first, &templates.share(PodTemplate::default())));
        for number in 0..1000 {
            templates.share(PodTemplate { probe_delay: Millis(number), ..PodTemplate::default() });
        }
        assert!(templates.known.len() < 50 && templates.known.contains(&first));
    }
}
