//! Rules for Prometheus: providers, reloading, reports and exported metrics.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use api::provider::{CustomMetricsProvider, ExternalMetricsProvider, ResourceMetricsProvider};
use api::reports::{BackendReport, MetricsReport, ProblemSeverity, ReportedProblem, ResourceReport};
use cluster::request::ApiError;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use locks::MutexExt as _;
use sources::Clock;
use sources::http::{self, Endpoint};
use sources::prometheus::client::{PrometheusClient, PrometheusSettings};
use sources::prometheus::config::{AdapterConfig, ConfigError};
use sources::prometheus::provider::{self, PrometheusProvider, RuleReport, SectionReport};
use sources::prometheus::reload::{FileChange, ReloadOutcome, WatchedConfigFile};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::MetricsWriter;
use super::described::Described;
use super::watches::ClusterInventory;

/// The interval at which the file is checked for changes.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Settings of rules.
#[derive(Debug)]
pub struct RuleSettings {
    /// The file, which is reloaded when it changes.
    pub file: PathBuf,
    /// The initial content.
    pub config: AdapterConfig,
    /// Settings of the provider.
    pub provider: provider::ProviderSettings,
    /// The address of Prometheus.
    pub endpoint: Endpoint,
    /// Settings of the Prometheus client.
    pub client_settings: PrometheusSettings,
    /// The interval of discovery.
    pub discovery: Duration,
    /// Whether `metrics.k8s.io` is served from rules.
    pub resource: bool,
}

/// Why rules cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The rules are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The connection to Prometheus cannot be set up.
    #[error("failed to set up the connection to Prometheus: {0}\n  remedy: {remedy}", remedy = .0.remedy())]
    Endpoint(http::HttpError),
    /// Discovery failed.
    #[error("failed to discover the kinds of the cluster: {0}")]
    Discovery(#[source] ApiError),
}

/// Rules for Prometheus. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Rules {
    provider: PrometheusProvider,
    resource: bool,
    strict: bool,
    clock: Clock,
    reload: Arc<Mutex<ReloadState>>,
    reload_requested: Arc<Notify>,
}

/// The state of reloading.
#[derive(Debug, Default)]
struct ReloadState {
    /// Why the current content of the file is not used, and since when.
    refused: Option<(String, Timestamp)>,
    good: u64,
    bad: u64,
}

/// Whether the content of the file is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileUse {
    /// Not before it changes.
    Done,
    /// At the next check: the rules may fit the kinds of the cluster then.
    Later,
}

impl ReloadState {
    /// An error that repeats is logged and counted once.
    fn set_refused(&mut self, refused: Option<String>, now: Timestamp) {
        let Some(why) = refused else {
            self.refused = None;
            return;
        };
        if self.refused.as_ref().is_some_and(|(known, _)| *known == why) {
            return;
        }
        tracing::error!(error = why, "the new rules are not used, the old ones stay");
        self.bad += 1;
        self.refused = Some((why, now));
    }
}

impl Rules {
    /// Starts discovery of series and reloading of the file, which end with `tasks`.
    pub async fn start(
        client: &Client,
        settings: RuleSettings,
        cluster_inventory: Option<&ClusterInventory>,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self, RulesError> {
        let RuleSettings { file, config, provider, endpoint, client_settings, discovery, resource } =
            settings;
        let (strict, clock) = (provider.compat.is_strict(), provider.clock.clone());
        let inventory = cluster_inventory
            .map(|cluster_inventory| cluster_inventory.inventory.clone())
            .unwrap_or_default();
        let described_cluster =
            Arc::new(Described::new(client, inventory).await.map_err(RulesError::Discovery)?);
        let transport = http::HttpClient::new(endpoint).map_err(RulesError::Endpoint)?;
        let prometheus = PrometheusClient::new(Arc::new(transport), client_settings);
        let provider = PrometheusProvider::start(provider, prometheus, config, described_cluster.clone())?;
        let rules = Self {
            provider,
            resource,
            strict,
            clock,
            reload: Arc::default(),
            reload_requested: Arc::default(),
        };
        let reloader = rules.clone();
        tasks.spawn(async move {
            let mut file = WatchedConfigFile::new(file);
            // The file was read before the start; the first check finds later changes.
            loop {
                if reloader.apply_file_change(file.poll()) == FileUse::Later {
                    file.forget();
                }
                tokio::select! {
                    () = tokio::time::sleep(FILE_CHECK_INTERVAL) => {}
                    () = reloader.reload_requested.notified() => {}
                }
            }
        });
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(discovery).await;
                described_cluster.rediscover().await;
            }
        });
        Ok(rules)
    }

    /// Checks the file now.
    pub fn request_reload(&self) {
        self.reload_requested.notify_one();
    }

    fn apply_file_change(&self, file_change: FileChange) -> FileUse {
        let mut file_use = FileUse::Done;
        let refused = match file_change {
            FileChange::Unchanged => return file_use,
            FileChange::Changed(config) => match self.provider.reload(*config) {
                ReloadOutcome::Unchanged => None,
                ReloadOutcome::Reloaded => {
                    tracing::info!("new rules are in force");
                    self.state().good += 1;
                    None
                }
                ReloadOutcome::Refused(why) => {
                    // The rules may name a kind that the cluster has soon.
                    file_use = FileUse::Later;
                    Some(why)
                }
            },
            FileChange::Refused(error) => Some(error.to_string()),
        };
        self.state().set_refused(refused, self.clock.now());
        file_use
    }

    fn state(&self) -> MutexGuard<'_, ReloadState> {
        self.reload.locked()
    }

    /// Whether custom metrics are served. prometheus-adapter does not serve them without rules; here rules may be added later.
    pub fn serves_custom(&self) -> bool {
        !self.strict || self.provider.serves().0
    }

    /// Whether external metrics are served.
    pub fn serves_external(&self) -> bool {
        !self.strict || self.provider.serves().1
    }

    /// The provider of `custom.metrics.k8s.io`.
    pub fn custom(&self) -> Arc<dyn CustomMetricsProvider> {
        Arc::new(self.provider.clone())
    }

    /// The provider of `external.metrics.k8s.io`.
    pub fn external(&self) -> Arc<dyn ExternalMetricsProvider> {
        Arc::new(self.provider.clone())
    }

    /// The provider of `metrics.k8s.io`, if it is served from rules.
    pub fn resource(&self) -> Option<Arc<dyn ResourceMetricsProvider>> {
        self.resource.then(|| Arc::new(self.provider.clone()) as Arc<dyn ResourceMetricsProvider>)
    }

    /// The reports of custom and external metrics.
    pub fn reports(&self) -> (Option<MetricsReport>, Option<MetricsReport>) {
        let report = self.provider.report();
        (report.custom.as_ref().map(section), report.external.as_ref().map(section))
    }

    /// The report of resource metrics, if they are served from rules.
    pub fn resource_report(&self, cluster_inventory: Option<&ClusterInventory>) -> Option<ResourceReport> {
        let pods = cluster_inventory
            .map(|cluster_inventory| cluster_inventory.inventory.pod_count() as u64)
            .unwrap_or_default();
        let source = "prometheus".to_owned();
        self.resource.then(|| ResourceReport { source, pods, ..ResourceReport::default() })
    }

    /// Problems: a refused file, and metrics that several rules define.
    pub fn problems(&self) -> Vec<ReportedProblem> {
        let refused = self.state().refused.clone().map(|(why, since)| ReportedProblem {
            reason: "RulesRefused".to_owned(),
            cause: format!("the rules as they are now are not used, the old ones stay: {why}"),
            remedy: "correct them; plimsoll metrics lint shows the place".to_owned(),
            since: Some(since),
            ..ReportedProblem::default()
        });
        let shadowed = self.provider.report().shadowed;
        let hidden = (!shadowed.is_empty()).then(|| {
            ReportedProblem {
                grade: ProblemSeverity::Warning,
                reason: "Shadowed".to_owned(),
                cause: "several rules claim the same metric; the last one in the file has it".to_owned(),
                remedy: "rename one with name.as, or narrow its seriesQuery".to_owned(),
                ..ReportedProblem::default()
            }
            .with(shadowed.iter().map(|found| format!("{}/{}", found.resource, found.metric)))
        });
        refused.into_iter().chain(hidden).collect()
    }

    /// The health of Prometheus: healthy if the last query of any selector succeeded.
    pub fn backends(&self) -> Vec<BackendReport> {
        let report = self.provider.report();
        let sections = report.custom.iter().chain(&report.external);
        let selectors: Vec<_> =
            sections.flat_map(|found| &found.rules).filter_map(|rule| rule.selector.as_ref()).collect();
        let failed = selectors.iter().filter(|status| status.error.is_some()).count();
        let error =
            selectors.iter().find_map(|status| status.error.clone()).filter(|_| failed == selectors.len());
        let (error, remedy) = error.unwrap_or_default();
        let [queries, _] = &report.backend.latency;
        let latency = queries.mean().and_then(|mean| SignedDuration::try_from(mean).ok());
        vec![BackendReport {
            name: String::new(),
            address: report.backend.server,
            healthy: error.is_empty(),
            error,
            remedy: remedy.to_owned(),
            last_good: selectors.iter().filter_map(|status| status.last_success).max(),
            metrics: None,
            latency,
        }]
    }

    /// Exports the metrics of prometheus-adapter (docs/spec/metrics-apis.md 5.12) and our own.
    pub fn export(&self, writer: &mut MetricsWriter) {
        let report = self.provider.report();
        writer.written(&report.backend.exposition());
        writer
            .family(
                "counter",
                "plimsoll_prometheus_queries_total",
                "Queries, by whether they were sent or answered from the cache.",
            )
            .value(&[("answered_by", "prometheus")], report.backend.sent)
            .value(&[("answered_by", "an equal query")], report.backend.shared);
        writer
            .family("counter", "plimsoll_prometheus_failures_total", "Requests to Prometheus that failed.")
            .value(&[], report.backend.failed);
        writer
            .family("gauge", "plimsoll_prometheus_queries_in_flight", "Queries to Prometheus in flight.")
            .value(&[], report.backend.in_flight);
        let sections = [("custom", &report.custom), ("external", &report.external)];
        writer.family("gauge", "plimsoll_metrics_known", "Metrics that the rules provide, by API.");
        for (api, section) in sections {
            writer.value(&[("api", api)], section.as_ref().map_or(0, |found| found.metrics));
        }
        let rules = || {
            sections.into_iter().filter_map(|(_, section)| section.as_ref()).flat_map(|found| &found.rules)
        };
        writer.family("gauge", "plimsoll_rule_metrics", "Metrics that each rule provides.");
        for rule in rules() {
            writer.value(&[("rule", &rule.place)], rule.metrics);
        }
        writer.family(
            "gauge",
            "plimsoll_rule_last_success_seconds",
            "Unix time of the last list of the series of each rule.",
        );
        for rule in rules() {
            if let Some(at) = rule.selector.as_ref().and_then(|status| status.last_success) {
                writer.value(&[("rule", &rule.place)], at.as_second());
            }
        }
        let state = self.state();
        writer
            .family(
                "gauge",
                "plimsoll_rules_last_reload_successful",
                "1 if the rules in the file are in use.",
            )
            .value(&[], u8::from(state.refused.is_none()));
        writer
            .family("counter", "plimsoll_rules_reloads_total", "Changes of the rules in the file.")
            .value(&[("success", "true")], state.good)
            .value(&[("success", "false")], state.bad);
        writer
            .family("counter", "plimsoll_prometheus_odd_samples_total", "Samples that were ignored.")
            .value(&[("reason", "duplicate")], report.duplicates)
            .value(&[("reason", "not a number")], report.without_value);
    }
}

fn section(found: &SectionReport) -> MetricsReport {
    let mut problems: Vec<ReportedProblem> = Vec::new();
    for rule in &found.rules {
        let Some(problem) = rule_problem(rule) else { continue };
        match problems.iter_mut().find(|known| known.cause == problem.cause) {
            Some(known) => {
                let names = known.names.drain(..).chain([rule.place.clone()]).collect::<Vec<_>>();
                *known = std::mem::take(known).with(names);
            }
            None => problems.push(problem.with([rule.place.clone()])),
        }
    }
    MetricsReport { metrics: found.metrics as u64, rules: found.rules.len() as u64, rule_problems: problems }
}

fn rule_problem(rule: &RuleReport) -> Option<ReportedProblem> {
    let status = rule.selector.as_ref();
    if let Some((error, remedy)) = status.and_then(|status| status.error.clone()) {
        return Some(ReportedProblem {
            reason: "Failed".to_owned(),
            cause: format!("series cannot be listed: {error}"),
            remedy: remedy.to_owned(),
            last_good: status.and_then(|status| status.last_success),
            ..ReportedProblem::default()
        });
    }
    rule.matches_nothing().then(|| {
        let none = status.is_some_and(|status| status.series == 0);
        ReportedProblem {
            grade: ProblemSeverity::Warning,
            reason: "MatchesNothing".to_owned(),
            cause: if none {
                "no series match seriesQuery"
            } else {
                "series match, and no metric comes of them"
            }
            .to_owned(),
            remedy: if none {
                "compare seriesQuery with the series that Prometheus has, or remove the rule".to_owned()
            } else {
                format!(
                    "plimsoll metrics explain --rule '{}' shows which filter, name or label leaves them out",
                    rule.place
                )
            },
            ..ReportedProblem::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_refusal_is_counted_once() {
        let mut state = ReloadState::default();
        let why = |text: &str| Some(text.to_owned());
        for (second, refused) in [(1, why("no kind")), (2, why("no kind")), (3, why("no query"))] {
            state.set_refused(refused, Timestamp::from_second(second).unwrap_or_default());
        }
        let since = Timestamp::from_second(3).unwrap_or_default();
        assert_eq!((state.bad, state.refused.as_ref()), (2, Some(&("no query".to_owned(), since))));
        state.set_refused(None, since);
        assert_eq!((state.bad, state.refused), (2, None));
    }
}
