//! What the operator serves: external metrics, admission, health, figures.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api::provide::Compat;
use controllers::metrics::figures::CONTENT_TYPE;
use controllers::operator::{Admission, Handle};
use kube::Client;
use serve::admission::{Admit, open_paths, routes};
use serve::metrics::{Settings, external};
use serve::{App, Certificate, Checks, Exposition, Server};

use super::admission::Webhook;
use super::options::Serving;
use crate::failure::Failure;

/// The Service in front of it, in manifests and on the desk.
pub(crate) const SERVICE: &str = "plimsoll-operator";
/// How long the loop may be silent before the program counts as dead.
const SILENCE: Duration = Duration::from_mins(1);

/// Starts to serve.
pub(super) async fn start(
    serving: &Serving,
    client: Client,
    handle: &Handle,
    admission: Admission,
    compat: Compat,
) -> Result<Server, Failure> {
    let certificate = match &serving.certificate {
        Some((certificate, key)) => {
            Certificate::Files { certificate: certificate.clone(), key: key.clone(), authority: None }
        }
        None => Certificate::SelfMade(serving.names.clone()),
    };
    let mut options = serve::Options {
        address: SocketAddr::new(serving.address, serving.port),
        certificate,
        ..serve::Options::default()
    };
    options.open_paths.extend(open_paths());
    let admit: Arc<dyn Admit> = Arc::new(Webhook(admission));
    let figures = handle.clone();
    let app = App {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks: checks(handle),
        metrics: Some(Arc::new(move || Exposition {
            content_type: CONTENT_TYPE.to_owned(),
            text: figures.figures(),
        })),
        groups: external(handle.external_metrics(), &Settings::from(compat)),
        routes: routes(&admit),
        ..App::default()
    };
    let started = Server::start(options, client, app).await;
    started.map_err(|error| Failure::Outside(format!("{error}; choose another port with --secure-port")))
}

/// Those who do not lead are ready too: they answer.
fn checks(handle: &Handle) -> Checks {
    let mut checks = Checks::new();
    let turning = handle.clone();
    checks.add_live("loop", move || {
        if turning.turns(SILENCE) { Ok(()) } else { Err("the loop does not turn any more".into()) }
    });
    let synced = handle.clone();
    checks.add_ready("watches", move || {
        if synced.synced() { Ok(()) } else { Err("ScaledObjects and their targets were not seen yet".into()) }
    });
    checks
}
