//! Resource metrics for a controller in the same process, without requests; unchanged lists are shared.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use api::metrics::{ContainerMetrics, PodMetrics, PodMetricsList};
use api::pod::PodMeta;
use api::provider::PodUsage;
use api::time::go_duration;
use jiff::SignedDuration;

use super::kubelets::Kubelets;

/// How many namespaces are cached at most.
const MAX_CACHED_NAMESPACES: usize = 4096;

/// Pod metrics from kubelets for the controller.
#[derive(Debug)]
pub struct LocalResourceMetrics {
    kubelets: Kubelets,
    /// Lists by namespace, with their generation.
    lists: Mutex<HashMap<String, (u64, Arc<PodMetricsList>)>>,
}

impl LocalResourceMetrics {
    /// Takes metrics from these kubelets.
    pub fn new(kubelets: Kubelets) -> Self {
        Self { kubelets, lists: Mutex::default() }
    }
}

impl cluster::metrics::LocalPodMetrics for LocalResourceMetrics {
    fn pods(&self, namespace: &str) -> Arc<PodMetricsList> {
        let generation = self.kubelets.generation();
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, list)) = lists.get(namespace)
            && *of == generation
        {
            return Arc::clone(list);
        }
        let items = self.kubelets.served().namespace(namespace).into_iter().map(item).collect();
        let list = Arc::new(PodMetricsList { items });
        if lists.len() >= MAX_CACHED_NAMESPACES {
            lists.clear();
        }
        lists.insert(namespace.to_owned(), (generation, Arc::clone(&list)));
        list
    }
}

fn item(pod: PodUsage) -> PodMetrics {
    let labels = pod.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    PodMetrics {
        metadata: PodMeta {
            name: pod.name.to_string(),
            namespace: pod.namespace.to_string(),
            labels,
            ..PodMeta::default()
        },
        timestamp: pod.timestamp,
        window: go_duration(SignedDuration::from_nanos(pod.window)),
        containers: pod
            .containers
            .into_iter()
            .map(|container| ContainerMetrics {
                name: container.name.to_string(),
                usage: container.usage.into_iter().map(|(name, used)| (name.to_string(), used)).collect(),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use api::provider::ContainerUsage;
    use quantity::Quantity;

    use super::*;

    #[test]
    fn pod_metrics_equal_those_of_the_api() {
        let used: Quantity = "250m".parse().unwrap();
        let pod = item(PodUsage {
            namespace: "shop".into(),
            name: "web".into(),
            labels: Arc::new([("app", "web")].into_iter().collect()),
            timestamp: Some("2026-05-01T12:00:00Z".parse().unwrap()),
            window: 15_013_000_000,
            containers: vec![ContainerUsage { name: "c".into(), usage: vec![("cpu".into(), used.clone())] }],
        });
        assert_eq!((pod.metadata.namespace.as_str(), pod.metadata.labels["app"].as_str()), ("shop", "web"));
        assert_eq!(pod.window, "15.013s");
        assert_eq!(pod.containers.first().unwrap().usage["cpu"], used);
    }
}
