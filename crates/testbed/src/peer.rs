//! Kubernetes' own HPA controller, without the other controllers. Plimsoll's controller is compared with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::access::Access;
use crate::error::Error;
use crate::process::ProcessUsage;
use crate::program::{Program, TempFolder};
use crate::proxy::{Fault, Proxy, ProxyOptions, Rewrite, Rule, Rules};

/// How the controller is started. Kubernetes' defaults apply to absent options.
#[derive(Clone, Debug, Default)]
pub struct PeerOptions {
    /// The only namespace whose autoscalers the controller sees; absent: all.
    pub namespace: Option<String>,
    /// Whether its requests go through a proxy that counts them, also without a namespace.
    pub counted: bool,
    /// The sync period.
    pub sync_period: Option<Duration>,
    /// The stabilization window of scale-downs.
    pub downscale_stabilization: Option<Duration>,
    /// The tolerance, such as 0.1.
    pub tolerance: Option<f64>,
    /// The CPU initialization period.
    pub cpu_initialization_period: Option<Duration>,
    /// The initial readiness delay.
    pub initial_readiness_delay: Option<Duration>,
    /// The number of concurrent syncs.
    pub concurrent_syncs: Option<u32>,
    /// Feature gates.
    pub feature_gates: BTreeMap<String, bool>,
    /// Further flags, which come last.
    pub args: Vec<String>,
}

impl PeerOptions {
    /// Options for a test: one namespace, several concurrent syncs, and this sync period.
    pub fn of_test(namespace: &str, period: Duration) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            sync_period: Some(period),
            concurrent_syncs: Some(5),
            ..Self::default()
        }
    }
}

/// A running controller; it ends when this is dropped, and also when the process that holds it is killed.
pub struct Peer {
    program: Program,
    proxy: Option<Proxy>,
}

const NAME: &str = "kube-controller-manager";
/// The log line that the controller writes when its caches are synced and its workers start.
const READY_LOG_LINE: &str = "Caches are synced";
const READY_TIMEOUT: Duration = Duration::from_mins(2);
impl Peer {
    /// Starts the controller on a real cluster, and returns when its workers start.
    pub async fn start(access: &Access, options: &PeerOptions) -> Result<Self, Error> {
        let mut kubeconfig = access.kubeconfig_for(access.admin());
        let mut proxy = None;
        if options.namespace.is_some() || options.counted {
            let settings = ProxyOptions { store_lists: false, ..ProxyOptions::default() };
            let started = Proxy::start_with(&kubeconfig, settings).await?;
            if let Some(namespace) = &options.namespace {
                started.rules().add(only(namespace));
            }
            kubeconfig = started.kubeconfig();
            proxy = Some(started);
        }
        let temp_folder = TempFolder::new()?;
        let file = temp_folder.write("kubeconfig", &kubeconfig)?;
        let program = &access.parts.kube_controller_manager;
        let mut program = Program::start(NAME, program, &arguments(&file, options), temp_folder)?;
        program.until_logged(READY_TIMEOUT, READY_LOG_LINE).await?;
        Ok(Self { program, proxy })
    }

    /// The rules of the proxy through which the controller sends its requests; none without a proxy.
    pub fn rules(&self) -> Option<Rules> {
        self.proxy.as_ref().map(Proxy::rules)
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

/// Rewrites requests for the autoscalers of all namespaces to one namespace.
fn only(namespace: &str) -> Rule {
    let namespace = namespace.to_owned();
    let rewrite: Rewrite = Arc::new(move |path| narrowed(path, &namespace));
    Rule::new(Fault::RewritePath(rewrite)).prefix("/apis/autoscaling/")
}

fn narrowed(path: &str, namespace: &str) -> String {
    for version in ["v1", "v2"] {
        let root = format!("/apis/autoscaling/{version}/");
        if let Some(rest) =
            path.strip_prefix(&root).filter(|rest| rest.starts_with("horizontalpodautoscalers"))
        {
            return format!("{root}namespaces/{namespace}/{rest}");
        }
    }
    path.to_owned()
}

fn arguments(kubeconfig: &Path, options: &PeerOptions) -> Vec<String> {
    let config = |flag: &str| format!("--{flag}={}", kubeconfig.display());
    let mut arguments = vec![
        config("kubeconfig"),
        config("authentication-kubeconfig"),
        config("authorization-kubeconfig"),
        "--controllers=horizontal-pod-autoscaler-controller".into(),
        "--use-service-account-credentials=false".into(),
        "--leader-elect=false".into(),
        // The secure port is disabled, because no client uses it.
        "--secure-port=0".into(),
        // The default of 20 requests a second would limit the controller, which tests do not measure.
        "--kube-api-qps=500".into(),
        "--kube-api-burst=1000".into(),
    ];
    let durations = [
        ("sync-period", options.sync_period),
        ("downscale-stabilization", options.downscale_stabilization),
        ("cpu-initialization-period", options.cpu_initialization_period),
        ("initial-readiness-delay", options.initial_readiness_delay),
    ];
    for (name, given) in durations {
        arguments.extend(
            given.map(|given| format!("--horizontal-pod-autoscaler-{name}={}s", given.as_secs_f64())),
        );
    }
    arguments.extend(options.tolerance.map(|given| format!("--horizontal-pod-autoscaler-tolerance={given}")));
    let syncs = options.concurrent_syncs;
    arguments.extend(syncs.map(|given| format!("--concurrent-horizontal-pod-autoscaler-syncs={given}")));
    let gates: Vec<String> = options.feature_gates.iter().map(|(name, on)| format!("{name}={on}")).collect();
    if !gates.is_empty() {
        arguments.push(format!("--feature-gates={}", gates.join(",")));
    }
    arguments.extend(options.args.iter().cloned());
    arguments
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_lists_of_all_autoscalers_are_narrowed() {
        let cases = [
            (
                "/apis/autoscaling/v2/horizontalpodautoscalers?watch=true",
                "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers?watch=true",
            ),
            (
                "/apis/autoscaling/v1/horizontalpodautoscalers",
                "/apis/autoscaling/v1/namespaces/a/horizontalpodautoscalers",
            ),
            (
                "/apis/autoscaling/v2/namespaces/b/horizontalpodautoscalers/x/status",
                "/apis/autoscaling/v2/namespaces/b/horizontalpodautoscalers/x/status",
            ),
            ("/apis/autoscaling/v2", "/apis/autoscaling/v2"),
            ("/api/v1/pods", "/api/v1/pods"),
        ];
        for (path, expected) in cases {
            assert_eq!(narrowed(path, "a"), expected);
        }
    }

    #[test]
    fn only_given_options_become_flags() {
        let plain = arguments(Path::new("/k"), &PeerOptions::default());
        assert!(plain.iter().all(|argument| !argument.starts_with("--horizontal")), "{plain:?}");
        let options = PeerOptions {
            sync_period: Some(Duration::from_millis(1500)),
            tolerance: Some(0.05),
            feature_gates: [("HPAScaleToZero".to_owned(), true)].into(),
            ..PeerOptions::default()
        };
        let some = arguments(Path::new("/k"), &options);
        for wanted in [
            "--horizontal-pod-autoscaler-sync-period=1.5s",
            "--horizontal-pod-autoscaler-tolerance=0.05",
            "--feature-gates=HPAScaleToZero=true",
        ] {
            assert!(some.iter().any(|argument| argument == wanted), "{some:?}");
        }
    }
}
