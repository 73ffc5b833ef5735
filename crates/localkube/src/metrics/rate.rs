//! From counters to usage: two readings make a rate, as a collector of resource metrics computes it.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use quantity::{Format, Quantity};

use super::contents::{ContainerUsage, Contents, NodeUsage, PodUsage, When, usage};
use crate::nodes::{ContainerReading, NodeReading, PodReading};

/// The youngest container whose start counts as its first reading.
const FRESH: Duration = Duration::from_secs(10);

/// What was read last.
#[derive(Debug, Default)]
pub(super) struct Rates {
    nodes: HashMap<String, Point>,
    /// By namespace, pod and container.
    containers: HashMap<(String, String, String), Point>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    at: Timestamp,
    elapsed: Duration,
    cpu_seconds: f64,
}

impl Rates {
    /// Takes new readings; a pod is told of when all its containers have two.
    pub(super) fn step(&mut self, resolution: Duration, readings: &[NodeReading]) -> Contents {
        let mut contents = Contents::default();
        let mut next = Self::default();
        for node in readings {
            let point = Point { at: node.at, elapsed: node.elapsed, cpu_seconds: node.cpu_seconds };
            let before = self.nodes.get(&node.name).copied();
            if let Some((cpu, window)) = before.and_then(|before| rate(before, point)) {
                let found = NodeUsage {
                    labels: node.labels.clone(),
                    usage: amounts(cpu, node.memory_bytes),
                    when: When::At(node.at),
                    window,
                };
                contents.nodes.insert(node.name.clone(), found);
            }
            next.nodes.insert(node.name.clone(), point);
            for pod in &node.pods {
                if let Some(found) = self.pod(&mut next, resolution, node, pod) {
                    contents.pods.insert((pod.namespace.clone(), pod.name.clone()), found);
                }
            }
        }
        *self = next;
        contents
    }

    fn pod(
        &self,
        next: &mut Self,
        resolution: Duration,
        node: &NodeReading,
        pod: &PodReading,
    ) -> Option<PodUsage> {
        let mut containers = Vec::new();
        let mut window = Duration::MAX;
        for container in &pod.containers {
            let key = (pod.namespace.clone(), pod.name.clone(), container.name.clone());
            let point = Point { at: node.at, elapsed: node.elapsed, cpu_seconds: container.cpu_seconds };
            let known = self.containers.get(&key).copied().filter(|before| container.started < before.at);
            let before = fresh(resolution, point, container).or(known);
            next.containers.insert(key, point);
            if let Some((cpu, over)) = before.and_then(|before| rate(before, point)) {
                window = window.min(over);
                let usage = amounts(cpu, container.memory_bytes);
                containers.push(ContainerUsage { name: container.name.clone(), usage });
            }
        }
        let complete = !containers.is_empty() && containers.len() == pod.containers.len();
        complete.then(|| PodUsage { labels: pod.labels.clone(), containers, when: When::At(node.at), window })
    }
}

/// The start of a young container, which is as good as a reading.
fn fresh(resolution: Duration, now: Point, container: &ContainerReading) -> Option<Point> {
    let age = Duration::try_from(now.at.duration_since(container.started)).ok()?;
    let elapsed = now.elapsed.saturating_sub(age);
    (age >= FRESH && age < resolution).then_some(Point { at: container.started, elapsed, cpu_seconds: 0.0 })
}

/// Cores, and over how long; none if time stood still or the counter went back.
fn rate(before: Point, after: Point) -> Option<(f64, Duration)> {
    let window = after.elapsed.checked_sub(before.elapsed).filter(|window| !window.is_zero())?;
    let used = after.cpu_seconds - before.cpu_seconds;
    (used >= 0.0).then(|| (used / window.as_secs_f64(), window))
}

fn amounts(cores: f64, bytes: f64) -> std::collections::BTreeMap<String, Quantity> {
    let cpu = Quantity::from_scaled((cores * 1e9) as i64, -9, Format::DecimalSi);
    usage(cpu, Quantity::new(bytes as i64, Format::BinarySi))
}
