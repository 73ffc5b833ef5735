//! Resource metrics from kubelets: inventory, store, scraper, and their reports.

use std::sync::Arc;
use std::time::Duration;

use api::provider::{Compat, ResourceMetricsProvider};
use api::reports::{MAX_LISTED_NAMES, ProblemSeverity, ReportedProblem, ResourceReport};
use api::selector::Selector;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use runtime::{CheckFailure, Reflectors};
use sources::inventory::{Inventory, Node};
use sources::kubelet::report::{FailureGroup, ScrapeReport};
use sources::kubelet::scraper::{self, Scraper};
use sources::kubelet::trust::TrustError;
use sources::sharding::{self, Sharding};
use sources::store::{self, KubeletProvider, MissingPods, MissingReason, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::MetricsWriter;
use super::check::HealthCheck;
use super::start::{NodeCounts, StartGate};
use super::watches::ClusterInventory;

/// Settings of the kubelet scraper.
#[derive(Clone, Debug)]
pub struct KubeletSettings {
    /// Settings of scrapes.
    pub scraper: scraper::ScraperSettings,
    /// How long the last sample of a node that cannot be scraped is served.
    pub keep: Duration,
    /// The label selector of nodes.
    pub nodes: Selector,
    /// The sharding of nodes between replicas.
    pub sharding: Option<NodeSharding>,
}

/// The sharding of nodes between replicas.
#[derive(Clone, Debug)]
pub struct NodeSharding {
    /// Namespace of the Service in front of the replicas.
    pub namespace: String,
    /// Its name.
    pub service: String,
    /// Settings of requests between replicas.
    pub settings: sharding::ShardingSettings,
}

/// The provider of resource metrics from kubelets. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Kubelets {
    compat: Compat,
    resolution: Duration,
    inventory: Inventory,
    store: Store,
    served: KubeletProvider,
    report: ScrapeReport,
    nodes: Selector,
    sharding: Option<Sharding>,
    cluster_inventory: ClusterInventory,
    start: Arc<StartGate>,
    _reflectors: Arc<Reflectors>,
}

impl Kubelets {
    /// Starts the scraper, which ends with `tasks`.
    pub fn start(
        client: &Client,
        cluster_inventory: &ClusterInventory,
        settings: KubeletSettings,
        stop: watch::Receiver<bool>,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self, TrustError> {
        let KubeletSettings { scraper: scraper_settings, keep, nodes, sharding } = settings;
        let (resolution, compat) = (scraper_settings.resolution, scraper_settings.compat);
        let inventory = cluster_inventory.inventory.clone();
        let store = Store::new(store::StoreSettings { resolution, keep, compat }, inventory.clone());
        let scraper = Scraper::new(scraper_settings, inventory.clone(), Arc::new(store.clone()))?;
        let served = KubeletProvider::new(store.clone(), inventory.clone(), nodes.clone());
        let report = scraper.report();
        let wanted = nodes.clone();
        let filter = move |node: &Node| node.labels.are_selected(&wanted);
        let mut reflectors = Reflectors::reporting_to(cluster_inventory.watches());
        let sharding = sharding.map(|NodeSharding { namespace, service, settings }| {
            let sharding = Sharding::new(settings, inventory.clone(), store.clone());
            super::replicas::follow(client, &namespace, &service, &sharding, &mut reflectors, tasks);
            sharding
        });
        let scraper = match &sharding {
            Some(sharding) => sharding.shard_scraper(scraper, filter),
            None => scraper.only(Arc::new(filter)),
        };
        tasks.spawn(scraper.run(stop));
        Ok(Self {
            compat,
            resolution,
            inventory,
            store,
            served,
            report,
            nodes,
            sharding,
            cluster_inventory: cluster_inventory.clone(),
            start: Arc::new(StartGate::new(resolution * 2)),
            _reflectors: Arc::new(reflectors),
        })
    }

    /// The provider of `metrics.k8s.io`.
    pub fn provider(&self) -> Arc<dyn ResourceMetricsProvider> {
        Arc::new(self.served.clone())
    }

    /// Nodes and running pods.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// The sharding, if nodes are divided between replicas.
    pub fn sharding(&self) -> Option<&Sharding> {
        self.sharding.as_ref()
    }

    /// The checks of metrics-server (docs/spec/metrics-apis.md 1.12), with reasons.
    pub fn checks(&self) -> Vec<HealthCheck> {
        let (ready, timely, known) = (self.clone(), self.clone(), self.cluster_inventory.clone());
        vec![
            HealthCheck::ready("metric-storage-ready", move || ready.is_ready()),
            HealthCheck::live("metric-collection-timely", move || timely.is_timely()),
            HealthCheck::ready("metric-informer-sync", move || known.is_synced()),
        ]
    }

    /// Whether samples can be served; the error is that of the report: `12/12 nodes: certificate signed by unknown authority`.
    fn is_ready(&self) -> Result<(), CheckFailure> {
        if self.store.is_ready() {
            // In strict mode, as in metrics-server, the samples of all nodes are stored together.
            return if self.compat.is_strict() || self.start.is_open(|| self.node_counts()) {
                Ok(())
            } else {
                Err(CheckFailure("not all nodes have two scrapes since the start".to_owned()))
            };
        }
        let reasons = self.report.problems().lines();
        let why = match (reasons.is_empty(), self.inventory.is_complete(), self.inventory.nodes().len()) {
            (false, ..) => reasons.join("; "),
            (true, false, _) => "nodes and pods are not known yet".to_owned(),
            (true, true, 0) => "there are no nodes".to_owned(),
            (true, true, _) => "a rate needs two scrapes".to_owned(),
        };
        Err(CheckFailure(format!("no metrics to serve: {why}")))
    }

    /// The nodes that are scraped here and by other replicas.
    fn selected_nodes(&self) -> usize {
        let nodes = self.inventory.nodes();
        nodes.iter().filter(|node| node.labels.are_selected(&self.nodes)).count()
    }

    fn node_counts(&self) -> NodeCounts {
        let problems = self.report.problems();
        NodeCounts {
            selected: self.selected_nodes(),
            served: usize::try_from(self.store.points().nodes).unwrap_or(usize::MAX),
            failing: problems.groups.iter().map(|group| group.nodes.len()).sum(),
        }
    }

    fn is_timely(&self) -> Result<(), CheckFailure> {
        let timely = self.report.is_timely(tokio::time::Instant::now());
        if timely { Ok(()) } else { Err(CheckFailure("metric collection didn't finish on time".to_owned())) }
    }

    /// The report of nodes and pods.
    pub fn report(&self, now: Timestamp) -> ResourceReport {
        let missing = self.served.missing(usize::MAX);
        let without: u64 = missing.counts.values().sum();
        let problems = self.report.problems();
        let pods = self.inventory.pod_count() as u64;
        let nodes = self.selected_nodes() as u64;
        let points = self.store.points().nodes;
        ResourceReport {
            source: "kubelets".to_owned(),
            nodes,
            fresh_nodes: points.saturating_sub(self.store.stale_nodes(now)).min(nodes),
            pods,
            served_pods: pods.saturating_sub(without),
            latency: self
                .report
                .counters()
                .durations
                .mean()
                .and_then(|mean| SignedDuration::try_from(mean).ok()),
            node_problems: problems.groups.iter().map(|group| node_problem(group, &self.inventory)).collect(),
            pod_problems: pod_problems(&missing, now),
        }
    }

    /// Exports the metrics of metrics-server (docs/spec/metrics-apis.md 1.14) and our own.
    pub fn export(&self, writer: &mut MetricsWriter, now: Timestamp) {
        let numbers = self.report.counters();
        let points = self.store.points();
        writer
            .family(
                "histogram",
                "metrics_server_manager_tick_duration_seconds",
                "[ALPHA] The total time spent collecting and storing metrics in seconds.",
            )
            .histogram(&[], numbers.ticks.cumulative(), numbers.ticks.sum());
        writer.family(
            "histogram",
            "metrics_server_kubelet_request_duration_seconds",
            "[ALPHA] Duration of requests to Kubelet API in seconds",
        );
        for (node, durations) in &numbers.by_node {
            writer.histogram(&[("node", node)], durations.cumulative(), durations.sum());
        }
        if numbers.by_node.is_empty() {
            // One histogram for all nodes: fourteen series per node would be megabytes.
            writer.histogram(&[], numbers.durations.cumulative(), numbers.durations.sum());
        }
        writer
            .family(
                "counter",
                "metrics_server_kubelet_request_total",
                "[ALPHA] Number of requests sent to Kubelet API",
            )
            .value(&[("success", "true")], numbers.good)
            .value(&[("success", "false")], numbers.failed);
        writer.family(
            "gauge",
            "metrics_server_kubelet_last_request_time_seconds",
            "[ALPHA] Time of last request performed to Kubelet API since unix epoch in seconds",
        );
        for (node, second) in &numbers.last_request {
            writer.value(&[("node", node)], second);
        }
        writer
            .family("gauge", "metrics_server_storage_points", "[ALPHA] Number of metrics points stored.")
            .value(&[("type", "node")], points.nodes)
            .value(&[("type", "container")], points.containers);
        writer.family(
            "counter",
            "plimsoll_kubelet_failures_total",
            "Requests to kubelets that failed, by cause.",
        );
        for (cause, count) in &numbers.causes {
            writer.value(&[("cause", cause)], count);
        }
        writer
            .family("gauge", "plimsoll_nodes", "Scraped nodes, by result of the last scrape.")
            .value(&[("state", "good")], numbers.healthy)
            .value(&[("state", "failing")], numbers.nodes.saturating_sub(numbers.healthy));
        writer
            .family(
                "gauge",
                "plimsoll_stale_nodes",
                "Nodes whose last sample is older than one and a half scrape intervals.",
            )
            .value(&[], self.store.stale_nodes(now));
        writer
            .family(
                "histogram",
                "plimsoll_scrape_lateness_seconds",
                "Delay between the planned and the actual start of a scrape.",
            )
            .histogram(&[], numbers.lateness.cumulative(), numbers.lateness.sum());
        writer
            .family("gauge", "plimsoll_running_pods", "Running pods.")
            .value(&[], self.inventory.pod_count());
        let missing = self.served.missing(0);
        writer.family("gauge", "plimsoll_pods_without_metrics", "Running pods without metrics, by reason.");
        for code in MissingReason::CODES {
            writer.value(&[("reason", code)], missing.counts.get(code).copied().unwrap_or_default());
        }
    }

    /// The compatibility mode.
    pub fn compat(&self) -> Compat {
        self.compat
    }

    /// Time between two scrapes of a node.
    pub fn resolution(&self) -> Duration {
        self.resolution
    }
}

/// Groups failing nodes by error. Nodes that are not ready are expected to fail.
fn node_problem(group: &FailureGroup, inventory: &Inventory) -> ReportedProblem {
    let ready = group.nodes.iter().any(|(name, _)| inventory.node(name).is_none_or(|node| node.ready));
    let statuses = || group.nodes.iter().map(|(_, status)| status);
    ReportedProblem {
        grade: if ready { ProblemSeverity::Error } else { ProblemSeverity::Warning },
        reason: group.cause.label().to_owned(),
        cause: group.message.clone(),
        remedy: group.cause.remedy(),
        since: statuses().filter_map(|status| status.failing_since).min(),
        times: statuses().map(|status| u64::from(status.failures)).max().unwrap_or_default(),
        last_good: if statuses().all(|status| status.good.is_some()) {
            statuses().filter_map(|status| status.good).min()
        } else {
            None
        },
        ..ReportedProblem::default()
    }
    .with(group.nodes.iter().map(|(name, _)| name.to_string()))
}

/// Running pods without metrics, by reason.
fn pod_problems(missing: &MissingPods, _: Timestamp) -> Vec<ReportedProblem> {
    let problem = |code: &&'static str| {
        let of_code = || missing.pods.iter().filter(|pod| pod.reason.code() == *code);
        let count = missing.counts.get(code).copied()?;
        let (cause, remedy, grade) = match *code {
            "NodeNotScraped" => {
                ("its node cannot be scraped", "see what is wrong with the node", ProblemSeverity::Error)
            }
            "Incomplete" => (
                "the kubelet reports no cpu or memory of one of its containers",
                "if it lasts: check the container runtime of the node, and containers that never ran",
                ProblemSeverity::Warning,
            ),
            "OnePoint" => ("a rate needs two points", "wait for the next scrape", ProblemSeverity::Warning),
            "Backwards" => ("a counter went backwards", "wait for the next scrape", ProblemSeverity::Warning),
            _ => (
                "no kubelet has reported it",
                "if it lasts: check the kubelet of its node",
                ProblemSeverity::Warning,
            ),
        };
        // A single reason is shown in full.
        let cause = match (count, of_code().next()) {
            (1, Some(pod)) => pod.reason.to_string(),
            _ => cause.to_owned(),
        };
        let mut problem = ReportedProblem {
            grade,
            reason: (*code).to_owned(),
            cause,
            remedy: remedy.to_owned(),
            ..ReportedProblem::default()
        }
        .with(of_code().take(MAX_LISTED_NAMES).map(|pod| format!("{}/{}", pod.namespace, pod.name)));
        problem.count = count;
        Some(problem)
    };
    MissingReason::CODES.iter().filter_map(problem).collect()
}
