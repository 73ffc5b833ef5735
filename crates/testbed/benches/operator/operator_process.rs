//! The operator as a separate process.

use crate::shared::plimsoll::PlimsollProcess;
use crate::shared::versions::Version;

/// Starts `plimsoll operator` for one namespace, and returns when it is ready.
pub(crate) async fn start(kubeconfig: &str, namespace: &str) -> PlimsollProcess {
    start_version(Version::New, kubeconfig, namespace, &[]).await
}

/// Starts the operator of a revision with more flags.
pub(crate) async fn start_version(
    version: Version,
    kubeconfig: &str,
    namespace: &str,
    more: &[String],
) -> PlimsollProcess {
    let flags = [
        format!("--watch-namespaces={namespace}"),
        "--allow-source-cidr=127.0.0.0/8,::1".to_owned(),
        "--enable-webhook-patching=false".to_owned(),
        "--enable-apiservice-patching=false".to_owned(),
    ];
    let flags = version.known_flags("operator", &[&flags[..], more].concat());
    let mut process = PlimsollProcess::start_program(&version.binary(), "operator", kubeconfig, &flags);
    process.until_ready().await;
    process
}
