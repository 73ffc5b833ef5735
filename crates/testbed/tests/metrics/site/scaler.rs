//! Who scales: Kubernetes' own HPA controller on the real cluster, ours on the one in memory.

use std::sync::Arc;
use std::time::Duration;

use controllers::hpa::Settings;
use testbed::peer::{Peer, PeerOptions};

use super::Plot;
use crate::ours::Ours;

#[allow(dead_code, reason = "held for their ends")]
pub(crate) enum Scaler {
    Theirs(Peer),
    Ours(Ours),
}

const PERIOD: Duration = Duration::from_secs(1);

impl Scaler {
    pub(crate) async fn start(plot: &Plot) -> Self {
        if let Some(access) = plot.access() {
            let options = PeerOptions::of_test(&plot.namespace, PERIOD);
            return Self::Theirs(Peer::start(access, &options).await.unwrap());
        }
        let config = engine::Config {
            downscale_stabilization: jiff::SignedDuration::ZERO,
            ..engine::Config::default()
        };
        let settings = Settings {
            config: Arc::new(config),
            period: PERIOD,
            namespaces: vec![plot.namespace.clone()],
            ..Settings::default()
        };
        Self::Ours(Ours::start(plot.client().clone(), settings))
    }
}
