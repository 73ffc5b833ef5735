//! The active HPA controller: that of Kubernetes on the real cluster, ours on localkube.

use std::sync::Arc;
use std::time::Duration;

use controllers::hpa::HpaSettings;
use testbed::peer::{Peer, PeerOptions};

use super::TestNamespace;
use crate::controller::RunningController;

#[allow(dead_code, reason = "held for their ends")]
pub(crate) enum Scaler {
    Kubernetes(Peer),
    Plimsoll(RunningController),
}

const PERIOD: Duration = Duration::from_secs(1);

impl Scaler {
    pub(crate) async fn start(ns: &TestNamespace) -> Self {
        if let Some(access) = ns.access() {
            let options = PeerOptions::of_test(&ns.namespace, PERIOD);
            return Self::Kubernetes(Peer::start(access, &options).await.unwrap());
        }
        let config = engine::ControllerConfig {
            downscale_stabilization: jiff::SignedDuration::ZERO,
            ..engine::ControllerConfig::default()
        };
        let settings = HpaSettings {
            config: Arc::new(config),
            period: PERIOD,
            namespaces: vec![ns.namespace.clone()],
            ..HpaSettings::default()
        };
        Self::Plimsoll(RunningController::start(ns.client.clone(), settings))
    }
}
