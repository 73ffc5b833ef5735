//! The text of `/metrics/resource`, as kubelets write it.

use std::fmt::Write as _;

use localkube::nodes::families::{
    CONTAINER_CPU, CONTAINER_MEMORY, CONTAINER_START, ERROR, NODE_CPU, NODE_MEMORY, POD_CPU, POD_MEMORY,
};

use super::load::{Container, PodLoad};

/// A container, and by how many milliseconds it was measured before the node.
struct Measured<'a> {
    pod: &'a PodLoad,
    container: &'a Container,
    at: u64,
}

/// The page of a measurement: the pods, the processor time and memory of the whole node, the moment, and by how much each
/// container was measured before it. Writing to a string cannot fail, so that no result is checked here.
pub(super) fn text(
    pods: &[PodLoad],
    (cpu, memory): (u64, u64),
    at: u64,
    earlier: impl Fn(usize) -> u64,
) -> String {
    let containers = pods.iter().flat_map(|pod| pod.containers.iter().map(move |found| (pod, found)));
    let mut all: Vec<Measured<'_>> = containers
        .enumerate()
        .map(|(number, (pod, container))| Measured { pod, container, at: at - earlier(number) })
        .collect();
    all.sort_by(|a, b| a.key().cmp(&b.key()));
    let mut out = String::with_capacity(2048 + 700 * all.len());
    CONTAINER_CPU.write(&mut out, all.iter(), |out, one| {
        one.labels(out);
        seconds(out, one.container.used_at(one.at));
        let _ = writeln!(out, " {}", one.at);
    });
    CONTAINER_MEMORY.write(&mut out, all.iter(), |out, one| {
        one.labels(out);
        number(out, one.container.memory);
        let _ = writeln!(out, " {}", one.at);
    });
    CONTAINER_START.write(&mut out, all.iter(), |out, one| {
        one.labels(out);
        let started = one.container.started;
        let _ = writeln!(out, "{}.{:03}", started / 1000, started % 1000);
    });
    NODE_CPU.write(&mut out, std::iter::once(cpu), |out, cpu| {
        out.push(' ');
        seconds(out, cpu);
        let _ = writeln!(out, " {at}");
    });
    NODE_MEMORY.write(&mut out, std::iter::once(memory), |out, memory| {
        out.push(' ');
        number(out, memory);
        let _ = writeln!(out, " {at}");
    });
    let mut pods: Vec<&PodLoad> = pods.iter().collect();
    pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    POD_CPU.write(&mut out, pods.iter(), |out, pod| {
        let _ = write!(out, "{{namespace=\"{}\",pod=\"{}\"}} ", pod.namespace, pod.name);
        seconds(out, pod.containers.iter().map(|one| one.used_at(at)).sum());
        let _ = writeln!(out, " {at}");
    });
    POD_MEMORY.write(&mut out, pods.iter(), |out, pod| {
        let _ = write!(out, "{{namespace=\"{}\",pod=\"{}\"}} ", pod.namespace, pod.name);
        number(out, pod.containers.iter().map(|one| one.memory).sum());
        let _ = writeln!(out, " {at}");
    });
    ERROR.write(&mut out, std::iter::once(()), |out, ()| out.push_str(" 0\n"));
    out
}

impl Measured<'_> {
    fn key(&self) -> (&str, &str, &str) {
        (&self.container.name, &self.pod.namespace, &self.pod.name)
    }

    fn labels(&self, out: &mut String) {
        let (container, namespace, pod) = self.key();
        for part in ["{container=\"", container, "\",namespace=\"", namespace, "\",pod=\"", pod, "\"} "] {
            out.push_str(part);
        }
    }
}

/// Formats nanoseconds as seconds with six decimals.
fn seconds(out: &mut String, nanos: u64) {
    let micros = nanos / 1_000;
    let _ = write!(out, "{}.{:06}", micros / 1_000_000, micros % 1_000_000);
}

/// Formats an integer as Go's shortest form does: with an exponent of two digits from a million on.
fn number(out: &mut String, value: u64) {
    let shortest = format!("{:e}", value as f64);
    match shortest.split_once('e') {
        Some((digits, exponent)) if value >= 1_000_000 => {
            let _ = write!(out, "{digits}e+{exponent:0>2}");
        }
        _ => {
            let _ = write!(out, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::Measures;
    use super::super::load::now;
    use super::super::node::Node;
    use super::*;

    #[test]
    fn page_has_the_format_of_a_kubelet() {
        let mut node = Node::new(Measures::Always, "node-1");
        node.set_pod(PodLoad::new("shop", "web-1", &[("web", 250, 12_533_760), ("log", 10, 4_096)]));
        node.set_pod(PodLoad::new("shop", "web-0", &[("web", 100, 999_999)]));
        let page = node.text_at(now());
        let line = |start: &str| page.lines().position(|line| line.starts_with(start)).unwrap();
        let first = line(
            "container_cpu_usage_seconds_total{container=\"log\",namespace=\"shop\",pod=\"web-1\"} 36.0",
        );
        let second = line(
            "container_cpu_usage_seconds_total{container=\"web\",namespace=\"shop\",pod=\"web-0\"} 360.",
        );
        assert!(first < second);
        line(
            "container_memory_working_set_bytes{container=\"web\",namespace=\"shop\",pod=\"web-1\"} 1.253376e+07 1",
        );
        line(
            "container_memory_working_set_bytes{container=\"web\",namespace=\"shop\",pod=\"web-0\"} 999999 1",
        );
        line("pod_cpu_usage_seconds_total{namespace=\"shop\",pod=\"web-1\"} 936.0");
        line("node_cpu_usage_seconds_total ");
        assert!(page.ends_with("resource_scrape_error 0\n"), "{page}");
        assert_eq!(page.lines().filter(|line| line.starts_with("# TYPE")).count(), 8);
    }
}
