//! Common parts of all servers: address, certificate, health checks.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use kube::Client;
use serve::{App, Certificate, CheckFailure, HealthChecks, Server};

use crate::failure::Failure;

/// How long a loop may be silent before the liveness check fails.
const MAX_LOOP_SILENCE: Duration = Duration::from_mins(1);

/// A certificate and its key, in files.
pub(crate) type Pair = (PathBuf, PathBuf);

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
        None => Certificate::SelfMade(names),
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

/// A liveness check of the loop and a readiness check of its watches. Replicas that are not the leader are ready too.
pub(crate) fn checks(
    turns: impl Fn(Duration) -> bool + Send + Sync + 'static,
    watches: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static,
) -> HealthChecks {
    let mut checks = HealthChecks::new();
    checks.add_live(
        "loop",
        move || {
            if turns(MAX_LOOP_SILENCE) { Ok(()) } else { Err("the loop is stuck".into()) }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

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
