//! What pods use. It never is so far from what is wanted that anybody would scale.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use localkube::metrics::{ContainerUsage, Labels, PodUsage, SampleTime, Script};
use tokio::task::JoinHandle;

use crate::PERIOD;
use crate::workloads::{self, PODS, Workloads};

/// In thousandths of a core: half of what is requested, give or take a little.
const VALUES: std::ops::Range<i64> = 98..105;
const MEMORY: i64 = 150 << 20;
/// Seven values, a new one every fifth of a period: two reconciles in a row see different values.
const STEP: Duration = Duration::from_secs(PERIOD.as_secs() / 5);

/// Says what all pods use, for as long as it lives.
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
        set(workloads, &script, &labels, VALUES.start);
        let reported = Arc::clone(&changing);
        let task = tokio::spawn(async move {
            let mut steps = tokio::time::interval(STEP);
            for value in VALUES.cycle() {
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
        for pod in 0..PODS {
            let usage = PodUsage {
                labels: Arc::clone(labels),
                containers: vec![ContainerUsage::new("app", cpu, MEMORY)],
                when: SampleTime::Now,
                window: Duration::from_secs(15),
            };
            script.set_pod(&namespace, &workloads::pod_name(number, pod), usage);
        }
    }
}
