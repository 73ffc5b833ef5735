//! A proxy between our controller and the API server that injects faults and logs requests.

use cluster::connect::{ConnectTarget, connect};
use http::Method;
use kube::Client;
use testbed::proxy::{LogEntry, Proxy, Rules};

use super::{ControllerEnv, unique};

/// A proxy, and a client through it like that of the binary: HTTP/2, TLS, concurrency limiter.
pub(crate) struct ProxiedClient {
    pub(crate) proxy: Proxy,
    pub(crate) rules: Rules,
    pub(crate) client: Client,
}

impl ControllerEnv {
    pub(crate) async fn proxied(&self) -> ProxiedClient {
        let proxy = Proxy::start(&self.kubeconfig).await.unwrap();
        let file = std::env::temp_dir().join(format!("plimsoll-proxied-{}-{}", std::process::id(), unique()));
        std::fs::write(&file, proxy.kubeconfig()).unwrap();
        let target = ConnectTarget { kubeconfig: Some(file.clone()), context: None };
        let client = connect(&target).await.unwrap().client;
        let _ = std::fs::remove_file(file);
        let rules = proxy.rules();
        ProxiedClient { proxy, rules, client }
    }
}

impl ProxiedClient {
    /// All write requests except events.
    pub(crate) fn writes(&self) -> Vec<LogEntry> {
        let is_write = |entry: &LogEntry| entry.method != Method::GET && !entry.path.contains("/events");
        self.rules.log().into_iter().filter(is_write).collect()
    }

    /// Writes to paths with this suffix.
    pub(crate) fn writes_to(&self, suffix: &str) -> Vec<LogEntry> {
        self.writes().into_iter().filter(|entry| entry.path.ends_with(suffix)).collect()
    }
}
