//! Usage rates from two samples of the counters, as metrics-server computes them.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use quantity::{Format, Quantity};

use super::contents::{ContainerUsage, NodeUsage, PodUsage, SampleTime, ServedMetrics, usage};
use crate::nodes::{ContainerReading, NodeReading, PodReading};

/// The minimum age at which a container's start counts as its first sample.
const MIN_CONTAINER_AGE: Duration = Duration::from_secs(10);

/// The last samples.
#[derive(Debug, Default)]
pub(super) struct UsageRates {
    nodes: HashMap<String, CounterReading>,
    /// By namespace, pod and container.
    containers: HashMap<(String, String, String), CounterReading>,
}

#[derive(Clone, Copy, Debug)]
struct CounterReading {
    at: Timestamp,
    elapsed: Duration,
    cpu_seconds: f64,
}

impl UsageRates {
    /// Adds samples; a pod is served when all its containers have two.
    pub(super) fn step(&mut self, resolution: Duration, readings: &[NodeReading]) -> ServedMetrics {
        let mut contents = ServedMetrics::default();
        let mut next = Self::default();
        for node in readings {
            let point = CounterReading { at: node.at, elapsed: node.elapsed, cpu_seconds: node.cpu_seconds };
            let before = self.nodes.get(&node.name).copied();
            if let Some((cpu, window)) = before.and_then(|before| rate(before, point)) {
                let found = NodeUsage {
                    labels: node.labels.clone(),
                    usage: amounts(cpu, node.memory_bytes),
                    when: SampleTime::At(node.at),
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
            let point =
                CounterReading { at: node.at, elapsed: node.elapsed, cpu_seconds: container.cpu_seconds };
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
        complete.then(|| PodUsage {
            labels: pod.labels.clone(),
            containers,
            when: SampleTime::At(node.at),
            window,
        })
    }
}

/// The start of a young container, which counts as a sample.
fn fresh(resolution: Duration, now: CounterReading, container: &ContainerReading) -> Option<CounterReading> {
    let age = Duration::try_from(now.at.duration_since(container.started)).ok()?;
    let elapsed = now.elapsed.saturating_sub(age);
    (age >= MIN_CONTAINER_AGE && age < resolution).then_some(CounterReading {
        at: container.started,
        elapsed,
        cpu_seconds: 0.0,
    })
}

/// Cores and the window; `None` if no time passed or the counter decreased.
fn rate(before: CounterReading, after: CounterReading) -> Option<(f64, Duration)> {
    let window = after.elapsed.checked_sub(before.elapsed).filter(|window| !window.is_zero())?;
    let used = after.cpu_seconds - before.cpu_seconds;
    (used >= 0.0).then(|| (used / window.as_secs_f64(), window))
}

fn amounts(cores: f64, bytes: f64) -> std::collections::BTreeMap<String, Quantity> {
    let cpu = Quantity::from_scaled((cores * 1e9) as i64, -9, Format::DecimalSi);
    usage(cpu, Quantity::new(bytes as i64, Format::BinarySi))
}
