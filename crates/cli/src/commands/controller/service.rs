//! What the controller serves: health, metrics, decisions.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use api::decisions::{DecisionRecord, DifferenceList};
use controllers::hpa::{Handle, metrics};
use futures::future::ready;
use futures::stream::{BoxStream, StreamExt};
use kube::Client;
use serve::{App, Certificate, Checks, Exposition, Server};

use super::options::Options;
use crate::failure::Failure;

/// The Service in front of the controller, in manifests and on the desk.
pub(crate) const SERVICE: &str = "plimsoll-controller";
/// How long the loop may be silent before the program counts as dead.
const SILENCE: Duration = Duration::from_mins(1);

struct Records(Handle);

impl serve::Decisions for Records {
    fn latest(&self, namespace: Option<&str>) -> Vec<DecisionRecord> {
        self.0.records().latest(namespace)
    }

    fn of(&self, namespace: &str, name: &str) -> Option<Vec<DecisionRecord>> {
        Some(self.0.records().of(namespace, name)).filter(|records| !records.is_empty())
    }

    fn follow(&self, namespace: &str, name: &str) -> Option<BoxStream<'static, DecisionRecord>> {
        self.of(namespace, name)?;
        // Whoever cannot keep up is cut off and may begin again.
        let records = self.0.records().follow(namespace, name);
        Some(
            records
                .take_while(|record| ready(record.is_ok()))
                .filter_map(|r| ready(r.ok()))
                .map(|r| (*r).clone())
                .boxed(),
        )
    }

    fn differences(&self, namespace: Option<&str>) -> DifferenceList {
        self.0.differences(namespace)
    }
}

/// Starts to serve, unless the user does not want that.
pub(super) async fn start(
    options: &Options,
    client: Client,
    handle: &Handle,
) -> Result<Option<Server>, Failure> {
    let port = options.secure_port.unwrap_or(10257);
    if port < 0 {
        return Ok(None);
    }
    let port = u16::try_from(port).map_err(|_| Failure::input("--secure-port must be at most 65535"))?;
    let certificate = match (&options.tls_cert_file, &options.tls_private_key_file) {
        (Some(certificate), Some(key)) => {
            Certificate::Files { certificate: certificate.clone(), key: key.clone(), authority: None }
        }
        (None, None) => Certificate::SelfMade(names()),
        _ => return Err(Failure::input("--tls-cert-file and --tls-private-key-file belong together")),
    };
    let mut served = serve::Options {
        address: SocketAddr::new(options.bind_address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port),
        certificate,
        ..serve::Options::default()
    };
    if let Some(paths) = &options.authorization_always_allow_paths {
        served.open_paths.clone_from(paths);
    }
    let figures = handle.clone();
    let app = App {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks: checks(handle),
        metrics: Some(Arc::new(move || Exposition {
            content_type: metrics::CONTENT_TYPE.to_owned(),
            text: figures.exposition(),
        })),
        decisions: Some(Arc::new(Records(handle.clone()))),
        ..App::default()
    };
    let server = Server::start(served, client, app).await;
    server
        .map(Some)
        .map_err(|error| Failure::Outside(format!("{error}; choose another port with --secure-port")))
}

/// The names under which a certificate of our own is good.
fn names() -> Vec<String> {
    let namespace = super::run::home();
    let service = format!("{SERVICE}.{namespace}.svc");
    vec!["localhost".into(), "127.0.0.1".into(), service]
}

/// Those who do not lead are ready too: they are warm.
fn checks(handle: &Handle) -> Checks {
    let mut checks = Checks::new();
    let turning = handle.clone();
    checks.add_live("loop", move || {
        if turning.turns(SILENCE) { Ok(()) } else { Err("the loop does not turn any more".into()) }
    });
    let synced = handle.clone();
    checks.add_ready("watches", move || {
        if synced.synced() { Ok(()) } else { Err("autoscalers and pods were not seen yet".into()) }
    });
    checks
}
