//! The text of `/metrics/resource`, as a kubelet of Kubernetes 1.36 writes it.

use std::fmt::Write;

use jiff::Timestamp;

use super::families::{
    CONTAINER_CPU, CONTAINER_MEMORY, CONTAINER_START, ERROR, Family, NODE_CPU, NODE_MEMORY, POD_CPU,
    POD_MEMORY,
};
use super::usage::UsageReading;
use crate::schema::go;

/// The counters of a node and of the pods on it.
#[derive(Clone, Debug)]
pub(crate) struct NodeSample<'a> {
    pub(crate) at: Timestamp,
    pub(crate) total: UsageReading,
    pub(crate) containers: Vec<ContainerSample<'a>>,
}

/// The counters of a container.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContainerSample<'a> {
    pub(crate) container: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) pod: &'a str,
    pub(crate) started: Timestamp,
    pub(crate) reading: UsageReading,
}

/// The whole text.
pub(crate) fn text(mut node: NodeSample<'_>) -> String {
    let mut out = String::with_capacity(2048 + 600 * node.containers.len());
    let at = Some(node.at.as_millisecond());
    node.containers.sort_by_key(|c| (c.container, c.namespace, c.pod));
    let each =
        |value: fn(&ContainerSample<'_>) -> f64| node.containers.iter().map(move |c| (c.labels(), value(c)));
    family(&mut out, &CONTAINER_CPU, at, each(cpu));
    family(&mut out, &CONTAINER_MEMORY, at, each(memory));
    family(&mut out, &CONTAINER_START, None, each(|c| c.started.as_millisecond() as f64 / 1000.0));
    let whole = |value| [(String::new(), value)].into_iter();
    family(&mut out, &NODE_CPU, at, whole(node.total.cpu_seconds));
    family(&mut out, &NODE_MEMORY, at, whole(node.total.memory_bytes));
    node.containers.sort_by_key(|c| (c.namespace, c.pod));
    let pods = |value: fn(&ContainerSample<'_>) -> f64| {
        let pods = node.containers.chunk_by(|a, b| (a.namespace, a.pod) == (b.namespace, b.pod));
        pods.filter_map(move |pod| Some((pod.first()?.pod_labels(), pod.iter().map(value).sum())))
    };
    family(&mut out, &POD_CPU, at, pods(cpu));
    family(&mut out, &POD_MEMORY, at, pods(memory));
    family(&mut out, &ERROR, None, whole(0.0));
    out
}

impl ContainerSample<'_> {
    fn labels(&self) -> String {
        let Self { container, namespace, pod, .. } = self;
        format!("{{container=\"{container}\",namespace=\"{namespace}\",pod=\"{pod}\"}}")
    }

    fn pod_labels(&self) -> String {
        format!("{{namespace=\"{}\",pod=\"{}\"}}", self.namespace, self.pod)
    }
}

fn cpu(sample: &ContainerSample<'_>) -> f64 {
    sample.reading.cpu_seconds
}

fn memory(sample: &ContainerSample<'_>) -> f64 {
    sample.reading.memory_bytes
}

/// Writes a family and its lines; nothing if there are no lines.
fn family(out: &mut String, family: &Family, at: Option<i64>, lines: impl Iterator<Item = (String, f64)>) {
    family.write(out, lines, |out, (labels, value)| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{labels} {}", go::float(value, 6));
        if let Some(millis) = at {
            let _ = write!(out, " {millis}");
        }
        out.push('\n');
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_like_go() {
        for (value, text) in [
            (0.0, "0"),
            (4.710_169, "4.710169"),
            (12_533_760.0, "1.253376e+07"),
            (1_633_252_712.0, "1.633252712e+09"),
            (999_999.0, "999999"),
            (1_000_000.0, "1e+06"),
            (0.000_05, "5e-05"),
            (0.000_1, "0.0001"),
        ] {
            assert_eq!(go::float(value, 6), text);
        }
    }

    #[test]
    fn metrics_page_matches_the_kubelet() {
        let at = Timestamp::from_millisecond(1_633_253_812_125).unwrap();
        let started = Timestamp::from_second(1_633_252_712).unwrap();
        let sample = |container, pod, cpu_seconds, memory_bytes| ContainerSample {
            container,
            namespace: "default",
            pod,
            started,
            reading: UsageReading { cpu_seconds, memory_bytes },
        };
        let containers = vec![
            sample("web", "web-1", 1.5, 1e6),
            sample("log", "web-1", 0.5, 5e5),
            sample("web", "web-0", 4.75, 7.0),
        ];
        let total = UsageReading { cpu_seconds: 357.354_91, memory_bytes: 1_616_273_408.0 };
        let page = text(NodeSample { at, total, containers });
        let expected = r#"# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="log",namespace="default",pod="web-1"} 0.5 1633253812125
container_cpu_usage_seconds_total{container="web",namespace="default",pod="web-0"} 4.75 1633253812125
container_cpu_usage_seconds_total{container="web",namespace="default",pod="web-1"} 1.5 1633253812125
# HELP container_memory_working_set_bytes [STABLE] Current working set of the container in bytes
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="log",namespace="default",pod="web-1"} 500000 1633253812125
container_memory_working_set_bytes{container="web",namespace="default",pod="web-0"} 7 1633253812125
container_memory_working_set_bytes{container="web",namespace="default",pod="web-1"} 1e+06 1633253812125
# HELP container_start_time_seconds [STABLE] Start time of the container since unix epoch in seconds
# TYPE container_start_time_seconds gauge
container_start_time_seconds{container="log",namespace="default",pod="web-1"} 1.633252712e+09
container_start_time_seconds{container="web",namespace="default",pod="web-0"} 1.633252712e+09
container_start_time_seconds{container="web",namespace="default",pod="web-1"} 1.633252712e+09
# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 357.35491 1633253812125
# HELP node_memory_working_set_bytes [STABLE] Current working set of the node in bytes
# TYPE node_memory_working_set_bytes gauge
node_memory_working_set_bytes 1.616273408e+09 1633253812125
# HELP pod_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the pod in core-seconds
# TYPE pod_cpu_usage_seconds_total counter
pod_cpu_usage_seconds_total{namespace="default",pod="web-0"} 4.75 1633253812125
pod_cpu_usage_seconds_total{namespace="default",pod="web-1"} 2 1633253812125
# HELP pod_memory_working_set_bytes [STABLE] Current working set of the pod in bytes
# TYPE pod_memory_working_set_bytes gauge
pod_memory_working_set_bytes{namespace="default",pod="web-0"} 7 1633253812125
pod_memory_working_set_bytes{namespace="default",pod="web-1"} 1.5e+06 1633253812125
# HELP resource_scrape_error [STABLE] 1 if there was an error while getting container metrics, 0 otherwise
# TYPE resource_scrape_error gauge
resource_scrape_error 0
"#;
        assert_eq!(page, expected);
    }
}
