//! The operator as a process.

use crate::shared::plimsoll::PlimsollProcess;

/// Starts `plimsoll operator` for one namespace, and returns when it has listed everything.
pub(crate) async fn start(kubeconfig: &str, namespace: &str) -> PlimsollProcess {
    let flags = [
        format!("--watch-namespaces={namespace}"),
        "--allow-source-cidr=127.0.0.0/8,::1".to_owned(),
        "--enable-webhook-patching=false".to_owned(),
        "--enable-apiservice-patching=false".to_owned(),
    ];
    let mut process = PlimsollProcess::start("operator", kubeconfig, &flags);
    process.until_ready().await;
    process
}
