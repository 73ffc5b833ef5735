//! The metric families of `/metrics/resource`, as a kubelet of Kubernetes 1.36 writes them.

use std::fmt::Write as _;

/// A family: name, help text and type.
#[derive(Debug)]
pub struct Family(&'static str, &'static str, &'static str);

/// CPU time of a container.
pub const CONTAINER_CPU: Family = Family(
    "container_cpu_usage_seconds_total",
    "Cumulative cpu time consumed by the container in core-seconds",
    "counter",
);
/// Memory of a container.
pub const CONTAINER_MEMORY: Family =
    Family("container_memory_working_set_bytes", "Current working set of the container in bytes", "gauge");
/// Start time of a container.
pub const CONTAINER_START: Family = Family(
    "container_start_time_seconds",
    "Start time of the container since unix epoch in seconds",
    "gauge",
);
/// CPU time of a node.
pub const NODE_CPU: Family = Family(
    "node_cpu_usage_seconds_total",
    "Cumulative cpu time consumed by the node in core-seconds",
    "counter",
);
/// Memory of a node.
pub const NODE_MEMORY: Family =
    Family("node_memory_working_set_bytes", "Current working set of the node in bytes", "gauge");
/// CPU time of a pod.
pub const POD_CPU: Family = Family(
    "pod_cpu_usage_seconds_total",
    "Cumulative cpu time consumed by the pod in core-seconds",
    "counter",
);
/// Memory of a pod.
pub const POD_MEMORY: Family =
    Family("pod_memory_working_set_bytes", "Current working set of the pod in bytes", "gauge");
/// Whether a measurement failed.
pub const ERROR: Family = Family(
    "resource_scrape_error",
    "1 if there was an error while getting container metrics, 0 otherwise",
    "gauge",
);

impl Family {
    /// Writes the family and its lines, each prefixed with its name; writes nothing if there are no lines.
    pub fn write<T>(
        &self,
        out: &mut String,
        lines: impl Iterator<Item = T>,
        write_line: impl Fn(&mut String, T),
    ) {
        let Self(name, help, kind) = self;
        for (index, line) in lines.enumerate() {
            if index == 0 {
                // Writing to a String cannot fail.
                let _ = write!(out, "# HELP {name} [STABLE] {help}\n# TYPE {name} {kind}\n");
            }
            out.push_str(name);
            write_line(out, line);
        }
    }
}
