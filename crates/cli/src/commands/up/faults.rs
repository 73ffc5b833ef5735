//! Faults that the console can cause in the embedded cluster.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::request::{self, Request};
use http::Method;
use kube::Client;
use localkube::PauseSwitch;
use localkube::metrics::{MetricsGroup, Outage, Script};
use localkube::nodes::Nodes;
use locks::MutexExt as _;
use serde_json::Value;

use super::objects;
use crate::failure::BoxError;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A fault of the embedded cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// `metrics.k8s.io` is not registered, and custom metrics are refused.
    MetricsOutage,
    /// Pods take a minute to become ready.
    SlowPods,
    /// The busiest node is gone, with its pods.
    NodeLoss,
    /// The API server does not answer.
    ApiServerPause,
}

impl Fault {
    pub(super) const ALL: [Self; 4] =
        [Self::MetricsOutage, Self::SlowPods, Self::NodeLoss, Self::ApiServerPause];

    /// Its name in requests.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::MetricsOutage => "metrics",
            Self::SlowPods => "slow-pods",
            Self::NodeLoss => "node-loss",
            Self::ApiServerPause => "api-server-pause",
        }
    }

    /// The text of its button.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::MetricsOutage => "metrics outage",
            Self::SlowPods => "slow pods",
            Self::NodeLoss => "node loss",
            Self::ApiServerPause => "API server pause",
        }
    }

    /// The fault of this name.
    pub(super) fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.id() == id)
    }
}

/// What faults change. The client runs in this process, so that a paused server does not delay it.
pub(super) struct FaultTargets {
    pub(super) client: Client,
    pub(super) nodes: Arc<Nodes>,
    /// The APIServices of the metrics server, which an outage removes.
    pub(super) services: Vec<Value>,
    /// The custom metrics, if there are any.
    pub(super) custom_metrics: Option<Script>,
    pub(super) pause: PauseSwitch,
    /// The node that is lost.
    pub(super) lost: Mutex<Option<String>>,
}

impl FaultTargets {
    /// Causes a fault or ends it. Slow pods are a property of workloads, which `LoadAndFaults` sets.
    pub(super) async fn set(&self, fault: Fault, active: bool) -> Result<(), BoxError> {
        match fault {
            Fault::MetricsOutage => self.outage(active).await,
            Fault::NodeLoss if active => self.lose_node().await,
            Fault::NodeLoss => self.restore_node().await,
            Fault::ApiServerPause => {
                self.pause.set(active);
                Ok(())
            }
            Fault::SlowPods => Ok(()),
        }
    }

    /// Removes the metrics APIs, or registers them again.
    async fn outage(&self, active: bool) -> Result<(), BoxError> {
        if let Some(script) = &self.custom_metrics {
            let message = "the metrics adapter is down".to_owned();
            let outage = Outage::Status { code: 503, reason: "ServiceUnavailable", message };
            script.fail(MetricsGroup::Custom, if active { outage } else { Outage::None });
        }
        for service in &self.services {
            if active {
                self.remove(service).await?;
            } else {
                objects::create_one(&self.client, service).await?;
            }
        }
        Ok(())
    }

    async fn remove(&self, service: &Value) -> Result<(), BoxError> {
        let name = service.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let uri = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}");
        let request = Request::get(uri, "apiservices", REQUEST_TIMEOUT).named(name);
        request::send(&self.client, Request { method: Method::DELETE, ..request }).await?;
        Ok(())
    }

    async fn lose_node(&self) -> Result<(), BoxError> {
        let node = self.nodes.busiest().ok_or("there is no node")?.to_owned();
        *self.lost.locked() = Some(node.clone());
        Ok(self.nodes.lose(&node).await?)
    }

    async fn restore_node(&self) -> Result<(), BoxError> {
        let lost = self.lost.locked().clone();
        if let Some(node) = lost {
            self.nodes.restore(&node).await?;
            *self.lost.locked() = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found_by_their_names() {
        for fault in Fault::ALL {
            assert_eq!(Fault::of(fault.id()), Some(fault));
        }
        assert_eq!(Fault::of("unknown"), None);
    }
}
