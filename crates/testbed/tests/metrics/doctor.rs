//! Output and exit code of `plimsoll metrics doctor`.

use std::process::{Command, Output};

use testbed::harness::Failure;
use testbed::kubelets::{Behaviour, Measures, objects};
use testbed::program::TempFolder;

use crate::env::{TestNamespace, make_node, on_both, peers, program, until};

fn doctor(ns: &TestNamespace, arguments: &[&str]) -> Output {
    let temp_folder = TempFolder::new().unwrap();
    let config = temp_folder.write("kubeconfig", &ns.env.cluster.kubeconfig).unwrap();
    let mut command = Command::new(program());
    command.args(["metrics", "doctor", "--kubeconfig"]).arg(config).args(arguments);
    command.output().unwrap()
}

#[test]
fn doctor_names_node_cause_and_remedy() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_both(async |ns| {
        let env = ns.env;
        let node = format!("{}-closed", ns.namespace);
        let address = env.kubelets.add_node(&node, Measures::Always).unwrap();
        env.kubelets.set_behaviour(&node, Behaviour::Status(403));
        make_node(&ns.client, &objects::node(&node, address, env.kubelets.port(), 1)).await;
        let mut reported = String::new();
        until("a word about the node", async || {
            let output = tokio::task::block_in_place(|| doctor(&ns, &[]));
            reported = String::from_utf8_lossy(&output.stdout).into_owned();
            let about = reported.lines().any(|line| line.contains(&node) && line.contains("403"));
            if about && output.status.code() == Some(1) {
                Ok(())
            } else {
                Err((output.status, reported.clone()))
            }
        })
        .await;
        assert!(reported.contains("nodes/metrics"), "the remedy is missing: {reported}");
        for group in ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"] {
            assert!(
                reported.lines().any(|line| line.starts_with(group) && line.contains("plimsoll")),
                "{reported}"
            );
        }
        let output = tokio::task::block_in_place(|| doctor(&ns, &["-o", "json"]));
        let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(findings.to_string().contains(&node), "{findings}");
        env.kubelets.set_behaviour(&node, Behaviour::Normal);
        until("silence about the node", async || {
            let output = tokio::task::block_in_place(|| doctor(&ns, &[]));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if text.contains(&node) { Err(text) } else { Ok(()) }
        })
        .await;
    })
}
