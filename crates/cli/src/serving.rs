//! Common parts of all servers: address, certificate, health checks.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use cluster::Clock;
use cluster::lease::{Election, Leadership};
use kube::Client;
use serve::{App, Certificate, CheckFailure, ExtraListener, HealthChecks, Keyring, Server, StartError};
use tokio::task::{JoinHandle, JoinSet};

use crate::certificates::trust::{self, CaBundleObjects, ServingCa};
use crate::certificates::{self, Shared};
use crate::failure::{CommandResult, Failure};

/// How long a loop may be silent before the liveness check fails.
const MAX_LOOP_SILENCE: Duration = Duration::from_mins(1);

/// A certificate and its key, in files.
pub(crate) type Pair = (PathBuf, PathBuf);

/// The flag of the listener of probes, as controller-runtime names it.
pub(crate) const HEALTH_PROBE_FLAG: &str = "health-probe-bind-address";

/// The address of an additional listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    pub(crate) address: SocketAddr,
    /// Whether it was given by flag: then it is an error if it cannot be bound.
    pub(crate) wanted: bool,
}

/// The files of `--tls-cert-file` and `--tls-private-key-file`: both or none.
pub(crate) fn pair(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<Pair>, Failure> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        _ => Err(Failure::input("--tls-cert-file and --tls-private-key-file belong together")),
    }
}

/// The given certificate files, else a self-signed certificate for these names.
pub(crate) fn certificate(given: Option<Pair>, names: Vec<String>) -> Certificate {
    match given {
        Some((certificate, key)) => Certificate::Files { certificate, key, authority: None },
        None => Certificate::SelfSigned(names),
    }
}

/// The names of a self-signed certificate behind a Service.
pub(crate) fn names(service: &str, namespace: &str) -> Vec<String> {
    vec!["localhost".into(), "127.0.0.1".into(), format!("{service}.{namespace}.svc")]
}

/// The address of `--bind-address`.
pub(crate) fn address(text: &str) -> Result<IpAddr, Failure> {
    text.parse().map_err(|_| Failure::input(format!("--bind-address={text}: write an IP address")))
}

/// Parses `host:port` as Go does: without a host it means all addresses; empty or `0` means none.
pub(crate) fn place(flag: &str, text: &str) -> Result<Option<SocketAddr>, Failure> {
    if matches!(text, "" | "0") {
        return Ok(None);
    }
    let everywhere = text.strip_prefix(':').map(|port| format!("{}:{port}", Ipv4Addr::UNSPECIFIED));
    let here = text.strip_prefix("localhost:").map(|port| format!("{}:{port}", Ipv4Addr::LOCALHOST));
    let whole = everywhere.or(here).unwrap_or_else(|| text.to_owned());
    let read = whole.parse().map(Some);
    read.map_err(|_| {
        Failure::input(format!(
            "--{flag}={text}: write an address with a port, such as :8080 or 127.0.0.1:8080"
        ))
    })
}

/// The port of `--secure-port`.
pub(crate) fn port(number: i64) -> Result<u16, Failure> {
    u16::try_from(number)
        .map_err(|_| Failure::input(format!("--secure-port={number}: write a number from 0 to 65535")))
}

/// A check of the loop, and a readiness check of its watches. Replicas that are not the leader are ready too.
pub(crate) fn checks(
    is_alive: impl Fn(Duration) -> bool + Send + Sync + 'static,
    watches: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static,
) -> HealthChecks {
    let mut checks = HealthChecks::new();
    checks.add(
        "loop",
        move || {
            if is_alive(MAX_LOOP_SILENCE) { Ok(()) } else { Err("the loop is stuck".into()) }
        },
    );
    checks.add_ready("watches", watches);
    checks
}

/// Starts the server.
pub(crate) async fn start(
    options: serve::ServerOptions,
    client: Client,
    app: App,
) -> Result<Server, Failure> {
    let started = Server::start(options, client, app).await;
    started.map_err(|error| Failure::Outside(format!("{error}; choose another port with --secure-port")))
}

/// A certificate that replicas share in a Secret, and the APIServices that name its CA.
pub(crate) struct Rotation {
    pub(crate) shared: Shared,
    pub(crate) names: Vec<String>,
    pub(crate) api_services: &'static [&'static str],
}

/// Opens the shared certificate, and keeps it and the `caBundle`s of the APIServices up to date.
pub(crate) async fn rotated(
    rotation: Rotation,
    client: &Client,
    clock: &Clock,
    leadership: &Leadership,
    tasks: &mut JoinSet<()>,
) -> Option<Keyring> {
    let Rotation { shared, names, api_services } = rotation;
    let (keyring, renewer) = certificates::open(&shared, &names, client, clock).await?;
    tasks.spawn(renewer.run(leadership.clone()));
    let api_services = api_services.iter().map(|&name| name.to_owned()).collect();
    let objects = CaBundleObjects { webhook: None, api_services, names };
    let authority = ServingCa::Shared(keyring.clone());
    tasks.spawn(trust::keep(client.clone(), leadership.clone(), objects, None, authority));
    Some(keyring)
}

/// Waits until the task of a role ends by itself, and says how. A task that has ended is taken, so that it is not awaited again.
pub(crate) async fn ended(role: &str, task: &mut Option<JoinHandle<()>>) -> Failure {
    let Some(running) = task else { return std::future::pending().await };
    let result = running.await;
    *task = None;
    let cause = result.err().map(|error| format!(": {error}")).unwrap_or_default();
    Failure::Outside(format!(
        "the {role} ended unexpectedly{cause}; this process ends, so that it is started again"
    ))
}

/// Waits until one of the tasks beside that of a role panics. A task that has nothing to do may end.
pub(crate) async fn panicked(role: &str, tasks: &mut JoinSet<()>) -> Failure {
    while let Some(result) = tasks.join_next().await {
        if let Err(error) = result {
            return Failure::Outside(format!(
                "a part of the {role} ended unexpectedly: {error}; this process ends, so that it is started again"
            ));
        }
    }
    std::future::pending().await
}

/// Waits until the election ends by itself; forever without one.
pub(crate) async fn election_ended(election: Option<&mut Election>) -> Failure {
    let Some(election) = election else { return std::future::pending().await };
    election.ended().await;
    Failure::Outside(
        "the leader election ended unexpectedly; this process ends, so that it is started again".to_owned(),
    )
}

/// Logs why a process stops.
pub(crate) fn log_stop(outcome: &CommandResult) {
    match outcome {
        Ok(()) => tracing::info!("stopping"),
        Err(failure) => tracing::error!("stopping: {failure}"),
    }
}

/// Starts the listener of probes, if it has an address. It has limits of its own, so that clients of the server cannot
/// make probes fail.
pub(crate) async fn probes(
    open: Option<ListenAddress>,
    checks: HealthChecks,
) -> Result<Option<ExtraListener>, Failure> {
    match open {
        Some(open) => listening(HEALTH_PROBE_FLAG, open, ExtraListener::health(open.address, checks).await),
        None => Ok(None),
    }
}

/// A default address that cannot be bound is only logged.
pub(crate) fn listening(
    flag: &str,
    open: ListenAddress,
    started: Result<ExtraListener, StartError>,
) -> Result<Option<ExtraListener>, Failure> {
    match started {
        Ok(listener) => {
            tracing::info!(address = %listener.address(), flag, "serving");
            Ok(Some(listener))
        }
        Err(error) if open.wanted => {
            Err(Failure::Outside(format!("{error}; choose another address with --{flag}, or 0 for none")))
        }
        Err(error) => {
            tracing::warn!(%error, flag, "cannot listen at this address");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn role_that_ends_unexpectedly_is_named() {
        let mut task = Some(tokio::spawn(async {}));
        let failure = ended("controller", &mut task).await;
        assert!(failure.to_string().starts_with("the controller ended unexpectedly; this process ends"));
        assert!(task.is_none(), "it is not awaited again");
    }

    #[tokio::test(start_paused = true)]
    async fn panic_of_a_task_beside_the_role_is_reported() {
        let mut tasks = JoinSet::new();
        tasks.spawn(async {});
        tasks.spawn(async { panic!("no certificate") });
        let failure = panicked("controller", &mut tasks).await.to_string();
        assert!(failure.starts_with("a part of the controller ended unexpectedly: "), "{failure}");
        assert!(failure.contains("no certificate"), "{failure}");
        tasks.spawn(async {});
        let waiting = tokio::time::timeout(Duration::from_secs(1), panicked("controller", &mut tasks)).await;
        assert!(waiting.is_err(), "a task that ends is no failure");
    }

    #[test]
    fn addresses_are_parsed_as_go_parses_them() {
        let read = |text: &str| place("x", text).map(|found| found.map(|found| found.to_string()));
        for (text, expected) in [
            (":8080", Some("0.0.0.0:8080")),
            ("127.0.0.1:1", Some("127.0.0.1:1")),
            ("localhost:2", Some("127.0.0.1:2")),
            ("[::1]:3", Some("[::1]:3")),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(read(text).unwrap().as_deref(), expected, "{text}");
        }
        for text in ["8080", ":70000", "a.b:80", ":"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
