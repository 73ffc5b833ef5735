//! Outbound connections of scalers: the flags, and the addresses of the API server (docs/security.md).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use scalers::backends::Cluster;
use scalers::dial::{Cidr, Dialer, OutboundPolicy};

use super::flags::OperatorFlags;
use crate::failure::Failure;

/// How often the addresses of the API server are looked up again.
const LOOKUP_INTERVAL: Duration = Duration::from_mins(5);

/// The dialer of all scalers, as the flags say.
pub(super) fn dialer(flags: &OperatorFlags) -> Result<Dialer, Failure> {
    let given = flags.repeated("allow-source-cidr")?;
    let mut allowed = Vec::new();
    for range in given.iter().flat_map(|list| list.split(',')).filter(|range| !range.trim().is_empty()) {
        let range: Cidr =
            range.parse().map_err(|error| Failure::input(format!("--allow-source-cidr: {error}")))?;
        allowed.push(range);
    }
    Ok(Dialer::new(OutboundPolicy::allowing(allowed)))
}

/// Keeps the addresses of the API server out of reach: those of the URL, of the Service, and of its endpoints.
pub(super) async fn protect(dialer: Dialer, server: String, cluster: Arc<dyn Cluster>) {
    let mut interval = tokio::time::interval(LOOKUP_INTERVAL);
    let mut endpoints: Vec<SocketAddr> = Vec::new();
    loop {
        interval.tick().await;
        let mut found = known(&server).await;
        match cluster.endpoints("default", "kubernetes").await {
            Ok(current) => {
                let current = current.into_iter().filter_map(|(address, port)| {
                    Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, port?))
                });
                endpoints = current.collect();
            }
            // Roles for single namespaces need not allow it. After an outage the endpoints that were read before still count.
            Err(error) => tracing::debug!(%error, "the endpoints of the API server cannot be read"),
        }
        found.extend(&endpoints);
        dialer.protect(found);
    }
}

/// The addresses of the API server that are known without asking it.
pub(super) async fn known(server: &str) -> Vec<SocketAddr> {
    let mut found = of_url(server).await;
    found.extend(from_environment(|name| std::env::var(name).ok()));
    found
}

/// The addresses of a URL.
async fn of_url(url: &str) -> Vec<SocketAddr> {
    let Some((scheme, rest)) = url.split_once("://") else { return Vec::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if scheme == "http" { 80 } else { 443 };
    let authority = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
    tokio::net::lookup_host(authority).await.map(Iterator::collect).unwrap_or_default()
}

/// The address of the Service `kubernetes`, which every pod has in its environment.
fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Vec<SocketAddr> {
    let host = variable("KUBERNETES_SERVICE_HOST").and_then(|host| host.parse::<IpAddr>().ok());
    let port = variable("KUBERNETES_SERVICE_PORT").and_then(|port| port.parse::<u16>().ok());
    host.map(|host| SocketAddr::new(host, port.unwrap_or(443))).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use api::selector::Selector;
    use scalers::ScalerError;
    use scalers::backends::{ClusterFuture, PodView};

    use super::*;

    /// A cluster whose endpoints can be read once.
    #[derive(Default)]
    struct FailingCluster(AtomicBool);

    impl Cluster for FailingCluster {
        fn pods<'a>(&'a self, _: &'a str, _: &'a Selector) -> ClusterFuture<'a, Vec<PodView>> {
            Box::pin(async { Ok(Vec::new()) })
        }

        fn endpoints<'a>(&'a self, _: &'a str, _: &'a str) -> ClusterFuture<'a, Vec<(String, Option<u16>)>> {
            let was_read = self.0.swap(true, Ordering::Relaxed);
            Box::pin(async move {
                if was_read {
                    return Err(ScalerError::new("an outage"));
                }
                Ok(vec![("192.0.2.1".to_owned(), Some(6443))])
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn endpoints_of_the_api_server_stay_refused_when_they_cannot_be_read() {
        let (dialer, cluster) = (Dialer::default(), Arc::new(FailingCluster::default()));
        let protecting = protect(dialer.clone(), String::new(), cluster.clone());
        let _ = tokio::time::timeout(3 * LOOKUP_INTERVAL, protecting).await;
        assert!(cluster.0.load(Ordering::Relaxed));
        assert!(dialer.resolve("192.0.2.1", 6443).await.is_err());
        assert!(dialer.resolve("192.0.2.1", 443).await.is_ok());
    }

    #[tokio::test]
    async fn api_server_is_found_by_url_and_environment() {
        let text = async |url: &str| {
            let found: Vec<String> = of_url(url).await.iter().map(SocketAddr::to_string).collect();
            found.join(" ")
        };
        assert_eq!(text("https://10.96.0.1").await, "10.96.0.1:443");
        assert_eq!(text("https://10.96.0.1:6443/prefix").await, "10.96.0.1:6443");
        assert_eq!(text("http://[fd00::1]/").await, "[fd00::1]:80");
        assert_eq!(text("https://[fd00::1]:6443").await, "[fd00::1]:6443");
        assert_eq!(text("nonsense").await, "");
        let pod = |name: &str| match name {
            "KUBERNETES_SERVICE_HOST" => Some("10.96.0.1".to_owned()),
            "KUBERNETES_SERVICE_PORT" => Some("6443".to_owned()),
            _ => None,
        };
        assert_eq!(from_environment(pod), ["10.96.0.1:6443".parse().unwrap()]);
        assert!(from_environment(|_| None).is_empty());
    }
}
