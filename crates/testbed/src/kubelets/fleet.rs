//! Thousands of nodes and pods: their simulated kubelets, and their objects in the store of a real cluster.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::json;

use super::{Kubelets, Measures, PodLoad, objects};
use crate::error::Error;
use crate::etcd::{self, Etcd};

/// The number of nodes and pods.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of pods on each node, with one container each.
    pub pods: usize,
    /// The number of namespaces over which pods are spread.
    pub namespaces: usize,
}

/// The minimum time between two measurements of a kubelet.
const MEASUREMENT_PERIOD: Duration = Duration::from_secs(10);
/// The number of pods of each workload.
const PODS_PER_WORKLOAD: usize = 10;
/// The number of images in the status of a node, as real nodes have them.
const IMAGES_PER_NODE: usize = 30;
/// The number of objects in one transaction. etcd accepts at most 128.
const WRITE_BATCH_SIZE: usize = 100;
/// The number of concurrent transactions.
const MAX_CONCURRENT_BATCHES: usize = 4;

impl Fleet {
    /// The number of all pods.
    pub fn size(self) -> usize {
        self.nodes * self.pods
    }

    /// The name of a node.
    pub fn node(self, number: usize) -> String {
        format!("node-{number:05}")
    }

    /// The namespace and name of a pod, counted over all nodes.
    pub fn pod(self, number: usize) -> (String, String) {
        let workload = number / PODS_PER_WORKLOAD;
        let namespace = format!("team-{:03}", workload % self.namespaces.max(1));
        (namespace, format!("{}-7d4b9c6f5-{:05}", workload_name(workload), number % PODS_PER_WORKLOAD))
    }

    /// Adds all nodes and their pods to the simulated kubelets.
    pub fn run(self, kubelets: &Kubelets) -> Result<(), Error> {
        for number in 0..self.nodes {
            let node = self.node(number);
            kubelets.add_node(&node, Measures::Every(MEASUREMENT_PERIOD))?;
            for pod in self.pods_of(number) {
                let (namespace, name) = self.pod(pod);
                let (milli, memory) =
                    (5 + (pod * 37 % 400) as u64, (12 << 20) + (pod * 7919 % 400_000) as u64 * 1024);
                kubelets.set_pod(&node, PodLoad::new(&namespace, &name, &[("app", milli, memory)]));
            }
        }
        Ok(())
    }

    /// Stores the objects of all nodes and pods in etcd.
    pub async fn store(self, etcd: &Etcd, kubelets: &Kubelets) -> Result<(), Error> {
        let namespaces = (0..self.namespaces).map(|number| {
            let name = format!("team-{number:03}");
            let object = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "creationTimestamp": objects::SINCE, "uid": format!("00000000-0000-4000-8000-{number:012x}")},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}
            });
            (format!("/registry/namespaces/{name}"), object)
        });
        let nodes = (0..self.nodes).filter_map(|number| {
            let name = self.node(number);
            let object = objects::node(&name, kubelets.address(&name)?, kubelets.port(), IMAGES_PER_NODE);
            Some((format!("/registry/minions/{name}"), object))
        });
        let pods = (0..self.nodes).flat_map(|number| {
            let node = self.node(number);
            self.pods_of(number).map(move |pod| {
                let (namespace, name) = self.pod(pod);
                let labels = json!({
                    "app": workload_name(pod / PODS_PER_WORKLOAD), "pod-template-hash": "7d4b9c6f5",
                    "app.kubernetes.io/part-of": "shop", "app.kubernetes.io/version": "1.2.3"
                });
                let object = objects::pod(&namespace, &name, &node, &labels, &["app"]);
                (etcd::key("pods", &namespace, &name), object)
            })
        });
        let all = namespaces.chain(nodes).chain(pods);
        stream::iter(all)
            .chunks(WRITE_BATCH_SIZE)
            .map(|batch| async move { etcd.put_all(&batch).await })
            .buffer_unordered(MAX_CONCURRENT_BATCHES)
            .try_collect()
            .await
    }

    fn pods_of(self, node: usize) -> std::ops::Range<usize> {
        node * self.pods..(node + 1) * self.pods
    }
}

fn workload_name(number: usize) -> String {
    format!("checkout-{number:05}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_names_are_unique() {
        let fleet = Fleet { nodes: 40, pods: 30, namespaces: 7 };
        let names: std::collections::BTreeSet<_> =
            (0..fleet.size()).map(|number| fleet.pod(number)).collect();
        assert_eq!(names.len(), fleet.size());
    }
}
