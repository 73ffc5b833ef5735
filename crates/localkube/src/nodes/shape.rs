//! What pods of one template have in common, kept once for all of them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use quantity::Quantity;
use sim::Millis;
use sim::workload::PodDelays;

use super::plan::annotation;
use super::view::{Container, PodSpec, Resources, Toleration};

/// What pods of one template have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) containers: Vec<Part>,
    pub(crate) init_containers: Vec<Part>,
    /// What a pod takes of its node.
    pub(crate) request: Amount,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) restarts: Restarts,
    pub(crate) host_network: bool,
    /// How long its readiness probes wait before the first look.
    pub(crate) probe_delay: Millis,
    pub(crate) wishes: Wishes,
}

/// One container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) image: String,
    /// An init container that keeps running beside the others.
    pub(crate) sidecar: bool,
    /// Most it may use, in thousandths.
    pub(crate) cpu_limit: Option<i64>,
    pub(crate) memory_limit: Option<i64>,
}

/// Room on a node: cpu in thousandths of a core, memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Amount {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) pods: i64,
}

/// Which containers are started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Restarts {
    /// All: the pod never ends by itself.
    #[default]
    Always,
    /// Those that failed.
    OnFailure,
    /// None.
    Never,
}

/// What annotations ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wishes {
    start_delay: Option<Millis>,
    ready_delay: Option<Millis>,
    stop_delay: Option<Millis>,
    run_for: Option<Millis>,
    exit_code: i32,
}

/// How one pod lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Course {
    pub(crate) start: Millis,
    pub(crate) ready: Millis,
    pub(crate) stop: Millis,
    /// How long it runs before it ends by itself, and with which code.
    pub(crate) ends: Option<(Millis, i32)>,
    pub(crate) restarts: Restarts,
}

/// Every shape in use, once.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    known: HashSet<Arc<Shape>>,
    clean_at: usize,
}

impl Shape {
    pub(crate) fn new(
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<&BTreeMap<String, String>>,
        spec: PodSpec,
    ) -> Self {
        let (cpu, memory) = (request(&spec, "cpu", thousandths), request(&spec, "memory", whole));
        let seconds = |container: &Container| container.readiness_probe.as_ref()?.initial_delay_seconds;
        let probe_delay = spec.containers.iter().flatten().filter_map(seconds).max().unwrap_or(0);
        let parts =
            |containers: Option<Vec<Container>>| containers.into_iter().flatten().map(Part::new).collect();
        Self {
            labels: labels.unwrap_or_default(),
            containers: parts(spec.containers),
            init_containers: parts(spec.init_containers),
            request: Amount { cpu, memory, pods: 1 },
            node_selector: spec.node_selector.unwrap_or_default(),
            tolerations: spec.tolerations.unwrap_or_default(),
            restarts: match spec.restart_policy.as_deref() {
                Some("Never") => Restarts::Never,
                Some("OnFailure") => Restarts::OnFailure,
                _ => Restarts::Always,
            },
            host_network: spec.host_network.unwrap_or(false),
            probe_delay: Millis::from_secs(probe_delay.max(0)),
            wishes: annotations.map(Wishes::new).unwrap_or_default(),
        }
    }

    /// Containers that run as long as the pod does, in the order in which they are listed.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Part> {
        self.containers.iter().chain(self.init_containers.iter().filter(|part| part.sidecar))
    }

    /// How a pod of this shape lives where `delays` and `run_for` are usual.
    pub(crate) fn course(&self, delays: PodDelays, run_for: Millis) -> Course {
        let wishes = &self.wishes;
        let ends = self.restarts != Restarts::Always;
        // What ends by itself does one thing and needs no time to warm up for others.
        let usual = if ends { Millis::ZERO } else { delays.ready };
        Course {
            start: wishes.start_delay.unwrap_or(delays.start),
            ready: wishes.ready_delay.unwrap_or(usual) + self.probe_delay,
            stop: wishes.stop_delay.unwrap_or(delays.stop),
            ends: ends.then(|| (wishes.run_for.unwrap_or(run_for), wishes.exit_code)),
            restarts: self.restarts,
        }
    }
}

impl Part {
    fn new(container: Container) -> Self {
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

impl Wishes {
    /// What cannot be read is as if it were not there: a pod must not fail for it.
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

impl Shapes {
    /// The one copy of this shape.
    pub(crate) fn share(&mut self, shape: Shape) -> Arc<Shape> {
        if let Some(known) = self.known.get(&shape) {
            return Arc::clone(known);
        }
        // Rollouts leave shapes behind that no pod has any more.
        if self.known.len() >= self.clean_at {
            self.known.retain(|shape| Arc::strong_count(shape) > 1);
            self.clean_at = 2 * self.known.len() + 16;
        }
        let shape = Arc::new(shape);
        self.known.insert(Arc::clone(&shape));
        shape
    }
}

/// As the scheduler counts: all containers and sidecars together, or the largest init container with the sidecars
/// before it; what the pod as a whole asks for comes first.
fn request(spec: &PodSpec, name: &str, unit: fn(&Quantity) -> i64) -> i64 {
    let asked = |resources: Option<&Resources>| resources?.requests.as_ref()?.get(name).map(unit);
    let of = |container: &Container| asked(container.resources.as_ref()).unwrap_or(0);
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

    /// The shape of a pod with this spec.
    pub(crate) fn shape(spec: serde_json::Value) -> Shape {
        Shape::new(None, None, serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn requests_add_up_as_for_the_scheduler() {
        let with = |cpu: &str| serde_json::json!({"requests": {"cpu": cpu, "memory": "1Gi"}});
        let two = shape(
            serde_json::json!({"containers": [{"resources": with("100m")}, {"resources": with("1")}, {}]}),
        );
        assert_eq!(two.request, Amount { cpu: 1100, memory: 2 << 30, pods: 1 });
        let init = shape(serde_json::json!({
            "containers": [{"resources": with("100m")}],
            "initContainers": [
                {"resources": with("2")},
                {"resources": with("50m"), "restartPolicy": "Always"},
            ],
            "overhead": {"cpu": "5m"},
        }));
        assert_eq!((init.request.cpu, init.request.memory), (2005, 2 << 30));
        let whole =
            shape(serde_json::json!({"containers": [{"resources": with("1")}], "resources": with("3")}));
        assert_eq!(whole.request.cpu, 3000);
    }

    #[test]
    fn annotations_and_probes_change_the_course() {
        let spec = || {
            let probe = serde_json::json!({"initialDelaySeconds": 20});
            serde_json::from_value(serde_json::json!({"containers": [{"readinessProbe": probe}]})).unwrap()
        };
        let usual = PodDelays::default();
        let course = Shape::new(None, None, spec()).course(usual, Millis::ZERO);
        assert_eq!(
            (course.start, course.ready, course.ends),
            (usual.start, usual.ready + Millis(20_000), None)
        );
        let asked = [
            (annotation::READY_DELAY, "1m"),
            (annotation::START_DELAY, "-1s"),
            (annotation::STOP_DELAY, "x"),
        ];
        let asked = asked.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let course = Shape::new(None, Some(&asked), spec()).course(usual, Millis::ZERO);
        assert_eq!((course.start, course.ready, course.stop), (usual.start, Millis(80_000), usual.stop));
        let job = shape(serde_json::json!({"restartPolicy": "Never"})).course(usual, Millis(9));
        assert_eq!((job.ready, job.ends), (Millis::ZERO, Some((Millis(9), 0))));
    }

    #[test]
    fn equal_shapes_are_kept_once_and_unused_ones_go() {
        let mut shapes = Shapes::default();
        let first = shapes.share(Shape::default());
        assert!(Arc::ptr_eq(&first, &shapes.share(Shape::default())));
        for number in 0..1000 {
            shapes.share(Shape { probe_delay: Millis(number), ..Shape::default() });
        }
        assert!(shapes.known.len() < 50 && shapes.known.contains(&first));
    }
}
