//! Options of `plimsoll controller`: one structure for flags and configuration file. Flags take precedence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use api::decisions::DecisionMode;
use api::time::parse_go_duration;
use api::yaml;
use controllers::hpa::{HpaSettings, ProfileChoice, UnknownProfileChoice};
use engine::{ControllerConfig, KubernetesVersion};
use jiff::SignedDuration;
use serde::Deserialize;

use super::gates;
use super::idle_flags::IDLE_GATES;
use crate::failure::Failure;
use crate::files;
use crate::serving::{self, ListenAddress};

/// Options by flag or file. Names are those of kube-controller-manager where it has one.
#[derive(Clone, Debug, Default, Deserialize, clap::Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ControllerOptions {
    #[arg(skip)]
    api_version: Option<String>,
    #[arg(skip)]
    kind: Option<String>,
    /// What to do with decisions: active, shadow (compare with the active controller, scale nothing), dry-run (only record).
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeName>,
    /// Only these namespaces; without it, all.
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    pub(crate) namespaces: Option<Vec<String>>,
    /// Time between two decisions of an autoscaler [15s].
    #[arg(long, value_name = "DURATION", help_heading = SETTINGS)]
    pub(crate) horizontal_pod_autoscaler_sync_period: Option<GoDuration>,
    /// How long a higher recommendation holds back a scale-down [5m].
    #[arg(long, value_name = "DURATION", help_heading = SETTINGS)]
    pub(crate) horizontal_pod_autoscaler_downscale_stabilization: Option<GoDuration>,
    /// How far a usage ratio may be from 1 without scaling [0.1].
    #[arg(long, value_name = "NUMBER", help_heading = SETTINGS)]
    pub(crate) horizontal_pod_autoscaler_tolerance: Option<f64>,
    /// How long after its start a pod's cpu sample may be skipped [5m].
    #[arg(long, value_name = "DURATION", help_heading = SETTINGS)]
    pub(crate) horizontal_pod_autoscaler_cpu_initialization_period: Option<GoDuration>,
    /// How long after its start a pod may be unready without ever having been ready [30s].
    #[arg(long, value_name = "DURATION", help_heading = SETTINGS)]
    pub(crate) horizontal_pod_autoscaler_initial_readiness_delay: Option<GoDuration>,
    /// How many autoscalers are reconciled concurrently [64].
    #[arg(long, value_name = "NUMBER", help_heading = SETTINGS)]
    pub(crate) concurrent_horizontal_pod_autoscaler_syncs: Option<i64>,
    /// Kubernetes feature gates that change decisions, for example HPAScaleToZero=true.
    #[arg(long, value_name = "NAME=BOOL,…", value_parser = gate_list, help_heading = SETTINGS)]
    pub(crate) feature_gates: Option<BTreeMap<String, bool>>,
    /// Release of Kubernetes whose behavior is reproduced: 1.36, 1.37, or auto for the one of the API server, also after an
    /// upgrade [auto].
    #[arg(long, value_name = "VERSION", value_parser = profile, help_heading = SETTINGS)]
    #[serde(deserialize_with = "profile_text")]
    pub(crate) kubernetes_profile: Option<ProfileChoice>,
    /// Keep windows and scale events in an annotation of each object, so that a restart does not forget them [true].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = SETTINGS)]
    pub(crate) remember: Option<bool>,
    /// Use leader election [true].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = ELECTION)]
    pub(crate) leader_elect: Option<bool>,
    /// How long others wait before they replace a leader that does not renew its lease [15s].
    #[arg(long, value_name = "DURATION", help_heading = ELECTION)]
    pub(crate) leader_elect_lease_duration: Option<GoDuration>,
    /// How long a leader tries to renew its lease before it steps down [10s].
    #[arg(long, value_name = "DURATION", help_heading = ELECTION)]
    pub(crate) leader_elect_renew_deadline: Option<GoDuration>,
    /// Time between two attempts to acquire or renew the lease [2s].
    #[arg(long, value_name = "DURATION", help_heading = ELECTION)]
    pub(crate) leader_elect_retry_period: Option<GoDuration>,
    /// Name of the lease [plimsoll-controller].
    #[arg(long, value_name = "NAME", help_heading = ELECTION)]
    pub(crate) leader_elect_resource_name: Option<String>,
    /// Namespace of the lease [plimsoll-system].
    #[arg(long, value_name = "NAMESPACE", help_heading = ELECTION)]
    pub(crate) leader_elect_resource_namespace: Option<String>,
    /// Address to serve on [0.0.0.0].
    #[arg(long, value_name = "ADDRESS", help_heading = SERVING)]
    pub(crate) bind_address: Option<std::net::IpAddr>,
    /// Port to serve on over TLS: health, metrics, decisions; 0 is any free one, -1 none [10257].
    #[arg(long, value_name = "PORT", allow_negative_numbers = true, help_heading = SERVING)]
    pub(crate) secure_port: Option<i32>,
    /// /healthz, /livez and /readyz without TLS at this address, such as :8081; without it or with 0, on --secure-port only.
    #[arg(long, value_name = "ADDRESS", help_heading = SERVING)]
    pub(crate) health_probe_bind_address: Option<String>,
    /// Serving certificate; without it a self-signed one is issued.
    #[arg(long, value_name = "FILE", help_heading = SERVING)]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Key of that certificate.
    #[arg(long, value_name = "FILE", help_heading = SERVING)]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// Issue the certificate, renew it, keep it in a Secret, and write its CA into our APIService [false].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = SERVING)]
    pub(crate) enable_cert_rotation: Option<bool>,
    /// Name of that Secret, in our own namespace [plimsoll-controller-certs].
    #[arg(long, value_name = "NAME", help_heading = SERVING)]
    pub(crate) cert_secret_name: Option<String>,
    /// Paths without authentication and authorization [/healthz,/livez,/readyz].
    #[arg(long, value_name = "PATH,…", value_delimiter = ',', help_heading = SERVING)]
    pub(crate) authorization_always_allow_paths: Option<Vec<String>>,
    /// How long every pass is kept in memory, at most 100 MiB of all autoscalers; 0s keeps none [1h].
    #[arg(long, value_name = "DURATION", help_heading = RECORDS)]
    pub(crate) history: Option<GoDuration>,
    /// Also write every pass to files in this folder, for a week and at most 1 GiB; `why --recording` reads them.
    #[arg(long, value_name = "FOLDER", help_heading = RECORDS)]
    pub(crate) record: Option<PathBuf>,
    /// Without effect: all decisions are kept for --history.
    #[arg(long, value_name = "NUMBER", hide = true, help_heading = RECORDS)]
    pub(crate) decisions: Option<usize>,
    /// Append each new decision to this file, one JSON object per line; --record is smaller and keeps every pass.
    #[arg(long, value_name = "FILE", help_heading = RECORDS)]
    pub(crate) decision_log: Option<PathBuf>,
    /// Log every decision, not only those that differ from the one before.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = RECORDS)]
    pub(crate) decision_log_all: Option<bool>,
    /// Send decisions as traces to the OpenTelemetry collector at this URL, such as http://collector:4318; without it,
    /// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.
    #[arg(long, value_name = "URL", help_heading = RECORDS)]
    pub(crate) otlp_traces_endpoint: Option<String>,
    /// Ratio of the decisions that are sent although they equal the one before them, from 0 to 1 [0].
    #[arg(long, value_name = "NUMBER", help_heading = RECORDS)]
    pub(crate) trace_unchanged: Option<f64>,
}

const SETTINGS: &str = "Decisions";
const ELECTION: &str = "Election";
const SERVING: &str = "Serving";
const RECORDS: &str = "Records";

const API_VERSION: &str = "plimsoll.dev/v1alpha1";
const KIND: &str = "ControllerConfiguration";

/// The value of `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ModeName {
    /// Act on decisions.
    Active,
    /// Compare with the active controller, scale nothing.
    Shadow,
    /// Only record.
    DryRun,
}

/// A duration as Go writes it: `15s`, `1m30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoDuration(pub(crate) SignedDuration);

impl FromStr for GoDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = parse_go_duration(text).filter(|duration| !duration.is_negative());
        parsed.map(Self).ok_or_else(|| format!("{text:?} is not a duration; write for example 15s or 1m30s"))
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The value of `--kubernetes-profile`.
fn profile(text: &str) -> Result<ProfileChoice, UnknownProfileChoice> {
    text.parse()
}

/// The same in a configuration file.
fn profile_text<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ProfileChoice>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
}

/// `A=true,B=false`.
fn gate_list(text: &str) -> Result<BTreeMap<String, bool>, String> {
    text.split(',')
        .filter(|gate| !gate.is_empty())
        .map(|gate| {
            let (name, value) =
                gate.split_once('=').ok_or_else(|| format!("{gate}: write NAME=true or NAME=false"))?;
            let on = value.parse().map_err(|_| format!("{gate}: {value} is neither true nor false"))?;
            Ok((name.trim().to_owned(), on))
        })
        .collect()
}

impl ControllerOptions {
    /// Reads a configuration file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let source = files::read(path)?;
        let documents = yaml::parse(&source)?;
        let document = match documents.as_slice() {
            [only] => only,
            [] => return Ok(Self::default()),
            _ => return Err(Failure::input(format!("{}: one document is enough", path.display()))),
        };
        let options: Self = document.decode()?;
        for (field, given, wanted) in
            [("apiVersion", &options.api_version, API_VERSION), ("kind", &options.kind, KIND)]
        {
            if given.as_deref().is_some_and(|given| given != wanted) {
                return Err(document.problem(field, format!("must be {wanted}")).into());
            }
        }
        Ok(options)
    }

    /// These options, and those of `file` where these are not set.
    pub(crate) fn over(self, file: Self) -> Self {
        macro_rules! either {
            ($($field:ident),* $(,)?) => { Self { $($field: self.$field.or(file.$field)),* } };
        }
        either!(
            api_version,
            kind,
            mode,
            namespaces,
            horizontal_pod_autoscaler_sync_period,
            horizontal_pod_autoscaler_downscale_stabilization,
            horizontal_pod_autoscaler_tolerance,
            horizontal_pod_autoscaler_cpu_initialization_period,
            horizontal_pod_autoscaler_initial_readiness_delay,
            concurrent_horizontal_pod_autoscaler_syncs,
            feature_gates,
            kubernetes_profile,
            remember,
            leader_elect,
            leader_elect_lease_duration,
            leader_elect_renew_deadline,
            leader_elect_retry_period,
            leader_elect_resource_name,
            leader_elect_resource_namespace,
            bind_address,
            secure_port,
            health_probe_bind_address,
            tls_cert_file,
            tls_private_key_file,
            enable_cert_rotation,
            cert_secret_name,
            authorization_always_allow_paths,
            history,
            record,
            decisions,
            decision_log,
            decision_log_all,
            otlp_traces_endpoint,
            trace_unchanged,
        )
    }

    /// Options for `plimsoll up`: no leader election, any free port.
    #[cfg(feature = "desk")]
    pub(crate) fn for_embedded_cluster(scenario: &sim::Scenario) -> Self {
        let config = &scenario.config;
        Self {
            leader_elect: Some(false),
            bind_address: Some(std::net::Ipv4Addr::LOCALHOST.into()),
            secure_port: Some(0),
            horizontal_pod_autoscaler_sync_period: Some(GoDuration(scenario.sync_period.duration())),
            horizontal_pod_autoscaler_downscale_stabilization: Some(GoDuration(
                config.downscale_stabilization,
            )),
            horizontal_pod_autoscaler_tolerance: Some(config.tolerance),
            horizontal_pod_autoscaler_cpu_initialization_period: Some(GoDuration(
                config.cpu_initialization_period,
            )),
            horizontal_pod_autoscaler_initial_readiness_delay: Some(GoDuration(
                config.initial_readiness_delay,
            )),
            feature_gates: Some(BTreeMap::from([("HPAScaleToZero".to_owned(), config.gates.scale_to_zero)])),
            kubernetes_profile: Some(ProfileChoice::Fixed(config.kubernetes)),
            ..Self::default()
        }
    }

    /// The address of probes without TLS.
    pub(crate) fn probes(&self) -> Result<Option<ListenAddress>, Failure> {
        let text = self.health_probe_bind_address.as_deref().unwrap_or_default();
        let address = serving::place(serving::HEALTH_PROBE_FLAG, text)?;
        Ok(address.map(|address| ListenAddress { address, wanted: true }))
    }

    /// The settings of the controller, or why the options are invalid.
    pub(crate) fn settings(&self) -> Result<HpaSettings, Failure> {
        let mut settings = HpaSettings::default();
        let mut config = ControllerConfig::default();
        if let Some(GoDuration(period)) = self.horizontal_pod_autoscaler_sync_period {
            settings.period = positive("horizontal-pod-autoscaler-sync-period", period)?;
        }
        if let Some(GoDuration(window)) = self.horizontal_pod_autoscaler_downscale_stabilization {
            config.downscale_stabilization = window;
        }
        if let Some(tolerance) = self.horizontal_pod_autoscaler_tolerance {
            if !tolerance.is_finite() || tolerance < 0.0 {
                return Err(Failure::input("--horizontal-pod-autoscaler-tolerance must be 0 or more"));
            }
            config.tolerance = tolerance;
        }
        if let Some(GoDuration(period)) = self.horizontal_pod_autoscaler_cpu_initialization_period {
            config.cpu_initialization_period = period;
        }
        if let Some(GoDuration(delay)) = self.horizontal_pod_autoscaler_initial_readiness_delay {
            config.initial_readiness_delay = delay;
        }
        if let Some(syncs) = self.concurrent_horizontal_pod_autoscaler_syncs {
            settings.concurrency =
                usize::try_from(syncs).ok().filter(|syncs| *syncs > 0).ok_or_else(|| {
                    Failure::input(format!(
                        "concurrent-horizontal-pod-autoscaler-syncs must be greater than 0, but got {syncs}"
                    ))
                })?;
        }
        settings.kubernetes = self.kubernetes_profile.unwrap_or(ProfileChoice::Auto);
        let given = self.feature_gates.iter().flatten();
        let given = given.filter(|(name, _)| !IDLE_GATES.contains(&name.as_str()));
        settings.feature_gates = given.map(|(name, on)| (name.clone(), *on)).collect();
        settings.config = Arc::new(config);
        let release = match settings.kubernetes {
            // Until the API server says its release.
            ProfileChoice::Auto => KubernetesVersion::default(),
            ProfileChoice::Fixed(version) => version,
        };
        for (name, on) in &settings.feature_gates {
            gates::check(settings.kubernetes, name, *on)?;
        }
        let mut settings = settings.at_release(release);
        settings.mode = match self.mode {
            None | Some(ModeName::Active) => DecisionMode::Active,
            Some(ModeName::Shadow) => DecisionMode::Shadow,
            Some(ModeName::DryRun) => DecisionMode::DryRun,
        };
        settings.namespaces = self.namespaces.clone().unwrap_or_default();
        settings.persist_state = self.remember.unwrap_or(true);
        Ok(settings)
    }
}

impl ControllerOptions {
    /// The given feature gates that change nothing here.
    pub(crate) fn idle_gates(&self) -> Vec<&str> {
        let names = self.feature_gates.iter().flatten().map(|(name, _)| name.as_str());
        names.filter(|name| IDLE_GATES.contains(name)).collect()
    }
}

fn positive(flag: &str, duration: SignedDuration) -> Result<Duration, Failure> {
    let duration = Duration::try_from(duration).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| Failure::input(format!("--{flag} must be greater than 0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_file_is_valid() {
        let page = include_str!("../../../../../docs/controller.md");
        let block = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let documents = yaml::parse(&yaml::SourceFile::new("controller.yaml", block)).unwrap();
        let options: ControllerOptions = documents[0].decode().unwrap();
        assert_eq!(options.kind.as_deref(), Some(KIND));
        assert_eq!(options.namespaces.as_deref(), Some(["shop".to_owned(), "web".to_owned()].as_slice()));
        options.settings().unwrap();
    }
}
