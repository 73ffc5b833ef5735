//! The HPA controller: Kubernetes' own on the real cluster, `plimsoll controller` on the one in memory.

use std::time::Duration;

use testbed::peer::{Peer, PeerOptions};
use testbed::program::{Program, TempFolder};

use super::{TestNamespace, program};

#[allow(dead_code, reason = "held for their ends")]
pub(crate) enum Scaler {
    Kubernetes(Peer),
    Plimsoll(Program),
}

const PERIOD: Duration = Duration::from_secs(1);

impl Scaler {
    pub(crate) async fn start(ns: &TestNamespace) -> Self {
        if let Some(access) = ns.env.cluster.access {
            let options = PeerOptions::of_test(&ns.namespace, PERIOD);
            return Self::Kubernetes(Peer::start(access, &options).await.unwrap());
        }
        let temp_folder = TempFolder::new().unwrap();
        let kubeconfig = temp_folder.write("kubeconfig", &ns.env.cluster.kubeconfig).unwrap();
        let arguments = [
            "controller".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespaces={}", ns.namespace),
            format!("--horizontal-pod-autoscaler-sync-period={}s", PERIOD.as_secs()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        Self::Plimsoll(Program::start("plimsoll", program(), &arguments, temp_folder).unwrap())
    }
}
