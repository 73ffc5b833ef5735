//! Validates flags and environment variables of `plimsoll operator`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use api::keda::KedaProfile;
use api::provider::Compat;
use api::selector::Selector;
use api::time::parse_go_duration;
use cluster::connect::ConnectTarget;
use cluster::lease::LeaseSettings as Lease;
use controllers::hpa::records::HistoryLimits;
use controllers::operator::{OperatorSettings, ScalingMode};

use super::flags::OperatorFlags;
use super::identity::identity;
use super::outbound;
use super::raw_metrics::RawMetricsMode;
use crate::certificates::Shared;
use crate::certificates::owner::OwnerLease;
use crate::certificates::trust::CaBundleObjects;
use crate::failure::Failure;
use crate::instance::{instance_identity, own_namespace, pod_address};
use crate::logs::{LogArgs, LogFormat, level_of_zap};
use crate::serving::{self, ListenAddress};
use crate::telemetry::{MetricsTarget, TraceTarget};

/// The default folder of KEDA's additional CAs.
const DEFAULT_CA_FOLDER: &str = "/custom/ca";

/// The value of `--keda-profile` that stands for what the cluster has.
const AUTO_PROFILE: &str = "auto";

/// The validated options of `plimsoll operator`.
#[derive(Clone, Debug)]
pub(crate) struct OperatorOptions {
    pub(crate) target: ConnectTarget,
    pub(crate) settings: OperatorSettings,
    /// Whether the profile is that of the resource definitions in the cluster.
    pub(crate) auto_profile: bool,
    pub(crate) web: scalers::web::HttpSettings,
    pub(crate) lease: Option<Lease>,
    /// The Lease by which other operators are recognized, also without an election.
    pub(crate) owner: OwnerLease,
    pub(crate) serving: OperatorServing,
    pub(crate) logs: LogArgs,
    /// How long passes are kept.
    pub(crate) history: HistoryLimits,
    /// The folder of the recording.
    pub(crate) record: Option<PathBuf>,
    /// Where metrics are exported to; none without `--enable-opentelemetry-metrics`.
    pub(crate) otlp_metrics: Option<MetricsTarget>,
    /// Where traces of decisions are exported to, if anywhere.
    pub(crate) otlp_traces: Option<TraceTarget>,
    /// Flags that were given and are ignored.
    pub(crate) idle: Vec<&'static str>,
}

/// Options of the listeners.
#[derive(Clone, Debug)]
pub(crate) struct OperatorServing {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
    /// Names in a self-signed certificate.
    pub(crate) names: Vec<String>,
    /// The ValidatingWebhookConfiguration whose `caBundle` is kept up to date.
    pub(crate) webhook: Option<String>,
    /// The CA (PEM) that must have signed the certificates of clients of the webhook.
    pub(crate) webhook_clients: Option<PathBuf>,
    /// Whether the `caBundle` of the APIServices is kept up to date.
    pub(crate) api_service: bool,
    /// Where the shared certificate is stored.
    pub(crate) shared: Shared,
    /// The address for KEDA's own metrics adapter.
    pub(crate) metrics_service: Option<ListenAddress>,
    /// Which raw metrics are published there; none if they are not enabled.
    pub(crate) raw_metrics: Option<RawMetricsMode>,
    /// The address of health without TLS.
    pub(crate) health: Option<ListenAddress>,
    /// The address of exported metrics without TLS.
    pub(crate) exported_metrics: Option<ListenAddress>,
}

impl OperatorOptions {
    pub(crate) fn of(
        flags: &OperatorFlags,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        let namespace =
            variable("POD_NAMESPACE").filter(|name| !name.is_empty()).unwrap_or_else(own_namespace);
        let mut web = scalers::web::HttpSettings::from_environment(&variable);
        web.authorities = authorities(flags)?;
        web.dialer = outbound::dialer(flags)?;
        let otlp_metrics = if flags.bool("enable-opentelemetry-metrics")? {
            Some(MetricsTarget::from_environment(super::SERVICE, &variable)?)
        } else {
            None
        };
        Ok(Self {
            target: ConnectTarget {
                kubeconfig: flags.file("kubeconfig")?,
                context: Some(flags.text("context")?.to_owned()).filter(|context| !context.is_empty()),
            },
            settings: settings(flags, &variable, &namespace, web.timeout)?,
            auto_profile: flags.text("keda-profile")? == AUTO_PROFILE,
            web,
            lease: lease(flags, &variable, &namespace)?,
            owner: OwnerLease {
                namespace: namespace.clone(),
                name: flags.text("leader-election-id")?.to_owned(),
            },
            serving: OperatorServing::of(flags, &variable, &namespace)?,
            logs: logs(flags)?,
            history: history(flags)?,
            record: flags.file("record")?,
            otlp_metrics,
            otlp_traces: TraceTarget::of(
                super::SERVICE,
                Some(flags.text("otlp-traces-endpoint")?),
                flags.float("trace-unchanged")?,
                &variable,
            )?,
            idle: flags.idle(),
        })
    }

    /// Options for `plimsoll up`: on loopback only, on any port.
    #[cfg(feature = "desk")]
    pub(crate) fn for_embedded_cluster() -> Result<Self, Failure> {
        let mut options = Self::of(&OperatorFlags::default(), |_| None)?;
        options.serving.address = std::net::Ipv4Addr::LOCALHOST.into();
        options.serving.port = 0;
        // Sources of a cluster on a desk run on this machine.
        options.web.dialer = scalers::dial::Dialer::allowing_loopback();
        // `plimsoll up` registers the APIServices itself.
        (options.serving.webhook, options.serving.api_service) = (None, false);
        (options.serving.shared, options.serving.metrics_service) = (Shared::Nothing, None);
        (options.serving.health, options.serving.exported_metrics) = (None, None);
        Ok(options)
    }
}

fn history(flags: &OperatorFlags) -> Result<HistoryLimits, Failure> {
    let age = flags.duration("history")?;
    if age.is_negative() {
        return Err(Failure::input("--history cannot be negative"));
    }
    Ok(HistoryLimits { age, ..HistoryLimits::default() })
}

fn settings(
    flags: &OperatorFlags,
    variable: &impl Fn(&str) -> Option<String>,
    namespace: &str,
    http_timeout: Duration,
) -> Result<OperatorSettings, Failure> {
    let watched = match flags.text("watch-namespaces")? {
        "" => variable("WATCH_NAMESPACE").unwrap_or_default(),
        given => given.to_owned(),
    };
    let names = watched.split(',').map(|name| name.trim().trim_matches('"').to_owned());
    let restricted = variable("KEDA_RESTRICT_SECRET_ACCESS").unwrap_or_default();
    Ok(OperatorSettings {
        namespaces: names.filter(|name| !name.is_empty()).collect(),
        label_selector: label_selector(variable, "WATCH_LABEL_SELECTOR")?,
        authentication_selector: label_selector(variable, "WATCH_LABEL_SELECTOR_FOR_TRIGGERAUTH")?,
        scaling_mode: ScalingMode::parse(flags.text("act")?).unwrap_or_default(),
        compat: if flags.text("compat")? == "strict" { Compat::Strict } else { Compat::Better },
        profile: match flags.text("keda-profile")? {
            AUTO_PROFILE => KedaProfile::default(),
            named => named.parse().map_err(|error| Failure::input(format!("--keda-profile: {error}")))?,
        },
        http_timeout,
        source_deadline: period(flags, "source-deadline")?.max(Duration::from_millis(100)),
        sample_age: period(flags, "sample-age")?,
        cluster_object_namespace: variable("KEDA_CLUSTER_OBJECT_NAMESPACE")
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| namespace.to_owned()),
        restrict_secret_access: restricted.eq_ignore_ascii_case("true"),
        file_root: flags.file("filepath-auth-root-path")?,
        tenant_files: flags.file("tenant-files-dir")?,
        token_expiry: token_expiry(variable("KEDA_BOUND_SERVICE_ACCOUNT_TOKEN_EXPIRY").as_deref())?,
        identity: identity(flags, variable)?,
        cluster_name: flags.text("k8s-cluster-name")?.to_owned(),
        secrets_check: period(flags, "secrets-check")?,
        high_cardinality_labels: flags.bool("enable-high-cardinality-metrics-labels")?,
        ..OperatorSettings::default()
    })
}

/// A label selector of the environment, as KEDA 2.21 reads it: two quotes are an empty one.
fn label_selector(variable: &impl Fn(&str) -> Option<String>, name: &str) -> Result<String, Failure> {
    let given = variable(name).unwrap_or_default();
    if matches!(given.as_str(), "" | "\"\"") {
        return Ok(String::new());
    }
    match Selector::parse(&given) {
        Ok(selector) => Ok(selector.to_string()),
        Err(error) => Err(Failure::input(format!("invalid {name} {given:?}: {error}"))),
    }
}

fn token_expiry(given: Option<&str>) -> Result<Duration, Failure> {
    let Some(text) = given.filter(|text| !text.is_empty()) else { return Ok(Duration::from_hours(1)) };
    let (least, most) = (Duration::from_hours(1), Duration::from_hours(6));
    let expiry = parse_go_duration(text).and_then(|expiry| Duration::try_from(expiry).ok());
    expiry.filter(|expiry| (least..=most).contains(expiry)).ok_or_else(|| {
        Failure::input(format!(
            "KEDA_BOUND_SERVICE_ACCOUNT_TOKEN_EXPIRY={text}: write a duration between 1h and 6h"
        ))
    })
}

fn lease(
    flags: &OperatorFlags,
    variable: &impl Fn(&str) -> Option<String>,
    namespace: &str,
) -> Result<Option<Lease>, Failure> {
    if !flags.bool("leader-elect")? {
        return Ok(None);
    }
    let duration = |name: &str, default: u64| -> Result<Duration, Failure> {
        let name = format!("KEDA_OPERATOR_LEADER_ELECTION_{name}");
        let Some(text) = variable(&name).filter(|text| !text.is_empty()) else {
            return Ok(Duration::from_secs(default));
        };
        let read = parse_go_duration(&text).and_then(|duration| Duration::try_from(duration).ok());
        read.ok_or_else(|| Failure::input(format!("{name}={text}: write a duration such as 15s")))
    };
    let lease = Lease {
        namespace: namespace.to_owned(),
        name: flags.text("leader-election-id")?.to_owned(),
        identity: instance_identity(),
        lease_duration: duration("LEASE_DURATION", 15)?,
        renew_deadline: duration("RENEW_DEADLINE", 10)?,
        retry_period: duration("RETRY_PERIOD", 2)?,
        address: pod_address(variable("POD_IP"), flags.number("secure-port")?),
    };
    lease.validate().map_err(Failure::input)?;
    Ok(Some(lease))
}

/// The APIServices of external metrics and decisions.
const API_SERVICES: [&str; 2] = ["v1beta1.external.metrics.k8s.io", "v1alpha1.operator.plimsoll.dev"];

impl OperatorServing {
    /// The objects that name our CA.
    pub(crate) fn ca_bundle_objects(&self) -> CaBundleObjects {
        let api_services = API_SERVICES.iter().filter(|_| self.api_service).map(|&name| name.to_owned());
        CaBundleObjects {
            webhook: self.webhook.clone(),
            api_services: api_services.collect(),
            names: self.names.clone(),
        }
    }

    fn of(
        flags: &OperatorFlags,
        variable: &impl Fn(&str) -> Option<String>,
        namespace: &str,
    ) -> Result<Self, Failure> {
        let certificate = serving::pair(flags.file("tls-cert-file")?, flags.file("tls-private-key-file")?)?;
        let services = ["operator-service-name", "metrics-server-service-name", "webhooks-service-name"];
        let domain = flags.text("k8s-cluster-domain")?;
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        for service in services.into_iter().map(|flag| flags.text(flag)).chain([Ok(super::SERVICE)]) {
            let service = service?;
            names.extend([
                service.to_owned(),
                format!("{service}.{namespace}"),
                format!("{service}.{namespace}.svc"),
                format!("{service}.{namespace}.svc.{domain}"),
            ]);
        }
        let webhook = flags.text("validating-webhook-name")?.to_owned();
        Ok(Self {
            address: serving::address(flags.text("bind-address")?)?,
            port: serving::port(flags.number("secure-port")?)?,
            shared: shared(flags, namespace, certificate.is_some())?,
            metrics_service: open(flags, "metrics-service-bind-address")?,
            raw_metrics: RawMetricsMode::of(variable),
            // Exported metrics have names of objects, so they are served without TLS only if a flag allows it.
            health: open(flags, "health-probe-bind-address")?,
            exported_metrics: open(flags, "metrics-bind-address")?
                .filter(|exported_metrics| exported_metrics.wanted)
                .filter(|_| flags.bool("enable-prometheus-metrics").unwrap_or(true)),
            certificate,
            names,
            webhook: Some(webhook)
                .filter(|name| !name.is_empty())
                .filter(|_| flags.bool("enable-webhook-patching").unwrap_or(true)),
            webhook_clients: flags.file("webhook-client-ca")?,
            api_service: flags.bool("enable-apiservice-patching")?,
        })
    }
}

/// Certificate files take precedence over a Secret, and a Secret over a mounted folder.
fn shared(flags: &OperatorFlags, namespace: &str, is_given: bool) -> Result<Shared, Failure> {
    if is_given {
        return Ok(Shared::Nothing);
    }
    if flags.bool("enable-cert-rotation")? {
        let name = flags.text("cert-secret-name")?.to_owned();
        return Ok(Shared::Secret { namespace: namespace.to_owned(), name });
    }
    let folder = PathBuf::from(flags.text("cert-dir")?);
    let is_filled = flags.given("cert-dir") || folder.join("tls.crt").exists();
    Ok(if is_filled { Shared::Folder(folder) } else { Shared::Nothing })
}

fn open(flags: &OperatorFlags, name: &str) -> Result<Option<ListenAddress>, Failure> {
    let wanted = flags.given(name);
    Ok(serving::place(name, flags.text(name)?)?.map(|address| ListenAddress { address, wanted }))
}

/// The CAs in the named folders. The default folder need not exist, also where it is named: KEDA's chart always names it, and KEDA's
/// operator goes on without it.
fn authorities(flags: &OperatorFlags) -> Result<Vec<u8>, Failure> {
    let named = flags.repeated("ca-dir")?;
    let folders = if named.is_empty() { vec![DEFAULT_CA_FOLDER.to_owned()] } else { named.clone() };
    let mut all = Vec::new();
    for folder in folders {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error)
                if named.is_empty()
                    || (folder == DEFAULT_CA_FOLDER && error.kind() == std::io::ErrorKind::NotFound) =>
            {
                continue;
            }
            Err(error) => return Err(Failure::file("read", std::path::Path::new(&folder), &error)),
        };
        let mut files: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        files.sort();
        for file in files {
            let bytes = std::fs::read(&file).map_err(|error| Failure::file("read", &file, &error))?;
            all.extend_from_slice(&bytes);
            all.push(b'\n');
        }
    }
    Ok(all)
}

fn logs(flags: &OperatorFlags) -> Result<LogArgs, Failure> {
    let log_format = match (flags.given("log-format"), flags.text("log-format")?, flags.text("zap-encoder")?)
    {
        (true, "json", _) | (false, _, "json") => LogFormat::Json,
        _ => LogFormat::Text,
    };
    let log_level = if flags.given("log-level") {
        flags.text("log-level")?
    } else {
        level_of_zap(flags.text("zap-log-level")?)?
    };
    Ok(LogArgs { log_format, log_level: log_level.to_owned() })
}

fn period(flags: &OperatorFlags, name: &str) -> Result<Duration, Failure> {
    let given = flags.duration(name)?;
    Duration::try_from(given).map_err(|_| Failure::input(format!("--{name} must not be negative")))
}
