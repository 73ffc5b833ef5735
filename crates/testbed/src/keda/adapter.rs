//! KEDA's metrics adapter, which forwards requests of the API server to a server of KEDA's metrics service protocol.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::{RELEASES, aside, limits, programs};
use crate::access::Access;
use crate::aggregate::Aggregated;
use crate::error::{Attempt as _, Error};
use crate::ports;
use crate::process::ProcessUsage;
use crate::program::{Program, Room};

/// How the adapter is started.
#[derive(Clone, Debug)]
pub struct AdapterOptions {
    /// The only namespace it knows (`WATCH_NAMESPACE`); absent: all.
    pub namespace: Option<String>,
    /// The namespace of its Service; it must exist.
    pub home: String,
    /// `host:port` of the metrics service: KEDA's operator, or ours.
    pub metrics_service: String,
    /// The name in the metrics service's certificate, which the cluster's authority must have signed.
    pub server_name: String,
    /// Client-side limits, requests per second and burst; absent: its defaults.
    pub requests: Option<(u32, u32)>,
}

/// A running adapter, registered as the server of `external.metrics.k8s.io`; it ends when this is dropped.
pub struct KedaAdapter {
    program: Program,
}

const READY_TIMEOUT: Duration = Duration::from_mins(2);

impl KedaAdapter {
    /// Starts the adapter of the default release.
    pub async fn start(access: &Access, options: &AdapterOptions) -> Result<Self, Error> {
        Self::start_release(access, options, RELEASES[0]).await
    }

    /// Starts it, registers it, and returns when the API server calls it available.
    pub async fn start_release(
        access: &Access,
        options: &AdapterOptions,
        release: &'static str,
    ) -> Result<Self, Error> {
        let [secure, plain] = ports::several()?;
        let api = Aggregated {
            group: "external.metrics.k8s.io".into(),
            version: "v1beta1".into(),
            namespace: options.home.clone(),
            service: "keda-metrics-apiserver".into(),
            port: secure,
            authority: Some(access.authority().certificate().to_owned()),
        };
        let room = Room::new()?;
        let client = access.authority().client("keda-metrics-apiserver", None)?;
        let serving = access.authority().server(&[&api.server_name(), "localhost"])?;
        // The folder has its client certificate for the metrics service; flags name its serving certificate.
        room.write("ca.crt", access.authority().certificate())?;
        room.write("tls.crt", &client.certificate)?;
        room.write("tls.key", &client.key)?;
        room.write("serving.crt", &serving.certificate)?;
        room.write("serving.key", &serving.key)?;
        room.write("kubeconfig", &access.kubeconfig_for(access.admin()))?;
        let arguments = arguments(room.folder(), secure, plain, options);
        let environment = [
            ("WATCH_NAMESPACE", options.namespace.as_deref().unwrap_or_default()),
            ("POD_NAMESPACE", options.home.as_str()),
        ];
        let program = programs(release).await?.adapter;
        let program = Program::start_with("keda-adapter", &program, &arguments, &environment, room)?;
        let mut adapter = Self { program };
        register(access, &api).await?;
        let path = format!("/apis/{}/{}", api.group, api.version);
        adapter
            .program
            .until(READY_TIMEOUT, async || {
                let (access, path) = (access.clone(), path.clone());
                aside(move || access.run_kubectl(&["get", "--raw", &path])).await.is_ok()
            })
            .await?;
        Ok(adapter)
    }

    /// Its whole log.
    pub fn log(&self) -> String {
        self.program.log()
    }

    /// Its process (Linux only; elsewhere none).
    pub fn pid(&self) -> Option<u32> {
        self.program.pid()
    }

    /// What it has used so far (Linux only; elsewhere nothing is known).
    pub fn usage(&self) -> Option<ProcessUsage> {
        self.program.usage()
    }
}

async fn register(access: &Access, api: &Aggregated) -> Result<(), Error> {
    let (access, manifest) = (access.clone(), api.manifest());
    aside(move || {
        let mut command = access.kubectl();
        let applying = command.args(["apply", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut applying = applying.attempt(|| "run kubectl".into())?;
        if let Some(mut input) = applying.stdin.take() {
            std::io::Write::write_all(&mut input, manifest.as_bytes()).attempt(|| "run kubectl".into())?;
        }
        applying.wait().attempt(|| "run kubectl".into()).map(|_| ())
    })
    .await
}

fn arguments(folder: &Path, secure: u16, plain: u16, options: &AdapterOptions) -> Vec<String> {
    let file = |flag: &str, name: &str| format!("--{flag}={}", folder.join(name).display());
    let mut arguments = vec![
        file("kubeconfig", "kubeconfig"),
        file("authentication-kubeconfig", "kubeconfig"),
        file("authorization-kubeconfig", "kubeconfig"),
        file("lister-kubeconfig", "kubeconfig"),
        file("tls-cert-file", "serving.crt"),
        file("tls-private-key-file", "serving.key"),
        file("client-ca-file", "ca.crt"),
        format!("--cert-dir={}", folder.display()),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={secure}"),
        format!("--port={plain}"),
        format!("--metrics-service-address={}", options.metrics_service),
        format!("--metrics-service-grpc-authority={}", options.server_name),
    ];
    arguments.extend(limits(options.requests));
    arguments
}
