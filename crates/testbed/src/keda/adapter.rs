//! KEDA's metrics adapter, which forwards requests of the API server to a server of KEDA's metrics service protocol.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::{RELEASES, blocking, limits, programs};
use crate::access::Access;
use crate::aggregate::Aggregated;
use crate::error::{Attempt as _, Error};
use crate::ports;
use crate::process::ProcessUsage;
use crate::program::{Program, TempFolder};

/// How the adapter is started.
#[derive(Clone, Debug)]
pub struct AdapterOptions {
    /// The only namespace that the adapter watches (`WATCH_NAMESPACE`); absent: all.
    pub namespace: Option<String>,
    /// The namespace of the adapter's Service; it must exist.
    pub own_namespace: String,
    /// `host:port` of the metrics service: KEDA's operator, or ours.
    pub metrics_service: String,
    /// The server name in the certificate of the metrics service, which the cluster's authority must have signed.
    pub server_name: String,
    /// The client-side rate limit, requests per second and burst; absent: the default of KEDA.
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

    /// Starts the adapter, registers it, and returns when the APIService is available.
    pub async fn start_release(
        access: &Access,
        options: &AdapterOptions,
        release: &'static str,
    ) -> Result<Self, Error> {
        let [secure, plain] = ports::several()?;
        let api = Aggregated {
            group: "external.metrics.k8s.io".into(),
            version: "v1beta1".into(),
            namespace: options.own_namespace.clone(),
            service: "keda-metrics-apiserver".into(),
            port: secure,
            authority: Some(access.authority().certificate().to_owned()),
        };
        let temp_folder = TempFolder::new()?;
        let client = access.authority().client("keda-metrics-apiserver", None)?;
        let serving = access.authority().server(&[&api.server_name(), "localhost"])?;
        // The folder has its client certificate for the metrics service; flags name its serving certificate.
        temp_folder.write("ca.crt", access.authority().certificate())?;
        temp_folder.write("tls.crt", &client.certificate)?;
        temp_folder.write("tls.key", &client.key)?;
        temp_folder.write("serving.crt", &serving.certificate)?;
        temp_folder.write("serving.key", &serving.key)?;
        temp_folder.write("kubeconfig", &access.kubeconfig_for(access.admin()))?;
        let arguments = arguments(temp_folder.root(), secure, plain, options);
        let environment = [
            ("WATCH_NAMESPACE", options.namespace.as_deref().unwrap_or_default()),
            ("POD_NAMESPACE", options.own_namespace.as_str()),
        ];
        let program = programs(release).await?.adapter;
        let program = Program::start_with("keda-adapter", &program, &arguments, &environment, temp_folder)?;
        let mut adapter = Self { program };
        register(access, &api).await?;
        let path = format!("/apis/{}/{}", api.group, api.version);
        adapter
            .program
            .until(READY_TIMEOUT, async || {
                let (access, path) = (access.clone(), path.clone());
                blocking(move || access.run_kubectl(&["get", "--raw", &path])).await.is_ok()
            })
            .await?;
        Ok(adapter)
    }

    /// The whole log of the adapter.
    pub fn log(&self) -> String {
        self.program.log()
    }

    /// The id of the process (Linux only; elsewhere none).
    pub fn pid(&self) -> Option<u32> {
        self.program.pid()
    }

    /// The resource usage so far (Linux only; elsewhere none).
    pub fn usage(&self) -> Option<ProcessUsage> {
        self.program.usage()
    }
}

async fn register(access: &Access, api: &Aggregated) -> Result<(), Error> {
    let (access, manifest) = (access.clone(), api.manifest());
    blocking(move || {
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
