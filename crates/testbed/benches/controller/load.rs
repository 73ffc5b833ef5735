//! The CPU and memory usage of pods. It stays so close to the target that no controller scales.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use localkube::metrics::{ContainerUsage, Labels, PodUsage, SampleTime, Script};
use tokio::task::JoinHandle;

use crate::SYNC_PERIOD;
use crate::workloads::{self, PODS_PER_DEPLOYMENT, Workloads};

/// The CPU usage of a pod: about half of its request, which is the target.
const CPU_MILLICORES: std::ops::Range<i64> = 98..105;
const MEMORY_BYTES: i64 = 150 << 20;
/// The time between two changes of the values: a fifth of a period. With seven values, two reconciles in a row see different values.
const CHANGE_INTERVAL: Duration = Duration::from_secs(SYNC_PERIOD.as_secs() / 5);

/// Sets the usage of all pods in the metrics API until it is dropped.
pub(crate) struct Load {
    changing: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Load {
    /// Starts with constant values.
    pub(crate) fn start(workloads: Workloads, script: Script) -> Self {
        let changing = Arc::new(AtomicBool::new(false));
        let labels: Vec<Arc<Labels>> = (0..workloads.autoscalers)
            .map(|number| Arc::new(BTreeMap::from([("app".to_owned(), workloads::name(number))])))
            .collect();
        set(workloads, &script, &labels, CPU_MILLICORES.start);
        let reported = Arc::clone(&changing);
        let task = tokio::spawn(async move {
            let mut steps = tokio::time::interval(CHANGE_INTERVAL);
            for value in CPU_MILLICORES.cycle() {
                steps.tick().await;
                if reported.load(Ordering::Relaxed) {
                    set(workloads, &script, &labels, value);
                }
            }
        });
        Self { changing, task }
    }

    pub(crate) fn changes(&self, changing: bool) {
        self.changing.store(changing, Ordering::Relaxed);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn set(workloads: Workloads, script: &Script, labels: &[Arc<Labels>], cpu: i64) {
    for (number, labels) in labels.iter().enumerate() {
        let namespace = workloads.namespace(number);
        for pod in 0..PODS_PER_DEPLOYMENT {
            let usage = PodUsage {
                labels: Arc::clone(labels),
                containers: vec![ContainerUsage::new("app", cpu, MEMORY_BYTES)],
                when: SampleTime::Now,
                window: Duration::from_secs(15),
            };
            script.set_pod(&namespace, &workloads::pod_name(number, pod), usage);
        }
    }
}
