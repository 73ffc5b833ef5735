//! KEDA, with which Plimsoll's operator is compared: 2.20.2 by default.

mod adapter;

use std::path::Path;
use std::time::Duration;

use crate::access::Access;
use crate::ensure::KedaPrograms;
use crate::error::Error;
use crate::parts::KEDA_RELEASES;
use crate::ports;
use crate::process::ProcessUsage;
use crate::program::{Program, TempFolder};
use crate::proxy::{Proxy, ProxyOptions, Rules};

pub use adapter::{AdapterOptions, KedaAdapter};

/// How KEDA is started. KEDA's defaults apply to absent options.
#[derive(Clone, Debug)]
pub struct KedaOptions {
    /// The release, one of [`RELEASES`].
    pub release: &'static str,
    /// The only namespace that the operator watches (`WATCH_NAMESPACE`); absent: all.
    pub namespace: Option<String>,
    /// The namespace of KEDA itself, with the secrets of ClusterTriggerAuthentications. It is created if it does not exist.
    pub own_namespace: String,
    /// Whether its metrics adapter runs too and is registered as the server of `external.metrics.k8s.io`.
    pub adapter: bool,
    /// Whether the operator's requests go through a proxy that counts them.
    pub counted: bool,
    /// The client-side rate limit, requests per second and burst; absent: the default of KEDA, 20 and 30.
    pub requests: Option<(u32, u32)>,
    /// Further variables of the operator's environment.
    pub environment: Vec<(&'static str, String)>,
    /// Further flags of the operator, which come last.
    pub args: Vec<String>,
}

/// A running KEDA; it ends when this is dropped, and also when the process that holds it is killed.
pub struct Keda {
    adapter: Option<KedaAdapter>,
    operator: Program,
    proxy: Option<Proxy>,
    /// The port of the operator's metrics service.
    service_port: u16,
}

/// The server name that the adapter expects in the operator's certificate.
pub const SERVER_NAME: &str = "keda-operator.keda.svc";
/// The releases that can be started; the default is the first.
pub const RELEASES: [&str; 2] = [KEDA_RELEASES[0].version, KEDA_RELEASES[1].version];
/// The log line that the operator writes when its caches are synced and its workers start.
const READY_LOG_LINE: &str = r#"Starting workers	{"controller": "scaledobject""#;
const READY_TIMEOUT: Duration = Duration::from_mins(2);

impl Default for KedaOptions {
    fn default() -> Self {
        Self {
            release: RELEASES[0],
            namespace: None,
            own_namespace: "keda".to_owned(),
            adapter: false,
            counted: false,
            // The default rate limit would slow the operator down, which comparisons do not measure.
            requests: Some((500, 1000)),
            environment: Vec::new(),
            args: Vec::new(),
        }
    }
}

impl Keda {
    /// Installs the CustomResourceDefinitions, starts the operator, and returns when its workers start.
    pub async fn start(access: &Access, options: &KedaOptions) -> Result<Self, Error> {
        prepare(access, &options.own_namespace).await?;
        let temp_folder = TempFolder::new()?;
        let names = [SERVER_NAME, "localhost", "127.0.0.1"];
        let identity = access.authority().server(&names)?;
        temp_folder.write("ca.crt", access.authority().certificate())?;
        temp_folder.write("tls.crt", &identity.certificate)?;
        temp_folder.write("tls.key", &identity.key)?;
        let mut kubeconfig = access.kubeconfig_for(access.admin());
        let mut proxy = None;
        if options.counted {
            let settings = ProxyOptions { store_lists: false, ..ProxyOptions::default() };
            let started = Proxy::start_with(&kubeconfig, settings).await?;
            kubeconfig = started.kubeconfig();
            proxy = Some(started);
        }
        let kubeconfig = temp_folder.write("kubeconfig", &kubeconfig)?;
        let [metrics_port, probes, service] = ports::several()?;
        let arguments = arguments(&kubeconfig, temp_folder.root(), [metrics_port, probes, service], options);
        let environment = environment(options);
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let program = programs(options.release).await?.operator;
        let mut operator =
            Program::start_with("keda-operator", &program, &arguments, &environment, temp_folder)?;
        operator.until_logged(READY_TIMEOUT, READY_LOG_LINE).await?;
        // The adapter is started after the operator, because it would retry its connection with increasing delays otherwise.
        operator
            .until(READY_TIMEOUT, async || {
                tokio::net::TcpStream::connect(("127.0.0.1", service)).await.is_ok()
            })
            .await?;
        let mut keda = Self { adapter: None, operator, proxy, service_port: service };
        if options.adapter {
            let settings = AdapterOptions {
                namespace: options.namespace.clone(),
                own_namespace: options.own_namespace.clone(),
                metrics_service: keda.metrics_service(),
                server_name: SERVER_NAME.to_owned(),
                requests: options.requests,
            };
            keda.adapter = Some(KedaAdapter::start_release(access, &settings, options.release).await?);
        }
        Ok(keda)
    }

    /// The whole log of the operator.
    pub fn log(&self) -> String {
        self.operator.log()
    }

    /// The `host:port` of the operator's metrics service.
    pub fn metrics_service(&self) -> String {
        format!("127.0.0.1:{}", self.service_port)
    }

    /// The rules of the proxy through which the operator sends its requests; none without a proxy.
    pub fn rules(&self) -> Option<Rules> {
        self.proxy.as_ref().map(Proxy::rules)
    }

    /// The adapter, if it runs.
    pub fn adapter(&self) -> Option<&KedaAdapter> {
        self.adapter.as_ref()
    }

    /// The id of the operator's process (Linux only; elsewhere none).
    pub fn pid(&self) -> Option<u32> {
        self.operator.pid()
    }

    /// The resource usage of the operator so far (Linux only; elsewhere none).
    pub fn usage(&self) -> Option<ProcessUsage> {
        self.operator.usage()
    }

    /// The exit code of the operator, if it has ended.
    pub fn ended(&mut self) -> Option<i32> {
        self.operator.ended()
    }
}

/// Installs KEDA's CustomResourceDefinitions and creates its namespace, unless they exist.
pub async fn prepare(access: &Access, own_namespace: &str) -> Result<(), Error> {
    let (access, own_namespace) = (access.clone(), own_namespace.to_owned());
    let work = move || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/keda");
        let folder = folder.display().to_string();
        access.run_kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &folder])?;
        access.run_kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "-f", &folder])?;
        if access.run_kubectl(&["get", "namespace", &own_namespace]).is_err() {
            access.run_kubectl(&["create", "namespace", &own_namespace])?;
        }
        Ok(())
    };
    blocking(work).await
}

async fn programs(release: &'static str) -> Result<KedaPrograms, Error> {
    blocking(move || KedaPrograms::ensure(release)).await
}

/// Runs blocking code on a thread pool for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let lost = |error| Error::Io { attempt: "prepare KEDA".into(), source: std::io::Error::other(error) };
    tokio::task::spawn_blocking(work).await.map_err(lost)?
}

fn environment(options: &KedaOptions) -> Vec<(&'static str, String)> {
    let mut environment = vec![
        ("WATCH_NAMESPACE", options.namespace.clone().unwrap_or_default()),
        ("POD_NAMESPACE", options.own_namespace.clone()),
        ("KEDA_CLUSTER_OBJECT_NAMESPACE", options.own_namespace.clone()),
    ];
    environment.extend(options.environment.iter().cloned());
    environment
}

fn arguments(
    kubeconfig: &Path,
    certificates: &Path,
    [metrics_port, probes, service]: [u16; 3],
    options: &KedaOptions,
) -> Vec<String> {
    let mut arguments = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--cert-dir={}", certificates.display()),
        format!("--metrics-bind-address=127.0.0.1:{metrics_port}"),
        format!("--health-probe-bind-address=127.0.0.1:{probes}"),
        format!("--metrics-service-bind-address=127.0.0.1:{service}"),
        // The testbed provides certificates; tests register APIServices and webhooks themselves.
        "--enable-cert-rotation=false".into(),
        "--enable-webhook-patching=false".into(),
        "--enable-apiservice-patching=false".into(),
        "--leader-elect=false".into(),
        "--zap-encoder=console".into(),
    ];
    arguments.extend(limits(options.requests));
    arguments.extend(options.args.iter().cloned());
    arguments
}

fn limits(requests: Option<(u32, u32)>) -> Vec<String> {
    requests.map_or_else(Vec::new, |(rate, burst)| {
        vec![format!("--kube-api-qps={rate}"), format!("--kube-api-burst={burst}")]
    })
}

#[cfg(test)]
mod tests;
