//! The sources of the three metrics APIs: checks, report and exported metrics.

use api::provider::Compat;
use api::reports::{
    API_VERSION, BackendReport, CURRENT, KIND, MetricsReport, ProblemSeverity, ReplicaReport, ReportMeta,
    ReportedProblem, ServerIdentity as Identity, ServerReport,
};
use jiff::{SignedDuration, Timestamp};
use runtime::exported_metrics::{self, MetricsWriter};
use sources::federation::{Router, UpstreamCondition, UpstreamReport};
use sources::sharding::Sharding;

use super::check::HealthCheck;
use super::kubelets::Kubelets;
use super::rules::Rules;
use super::watches::ClusterInventory;

/// The sources of a metrics server. Cheap to clone.
#[derive(Clone)]
pub struct Sources {
    /// Name of this replica.
    pub instance: String,
    /// Version of the program.
    pub version: String,
    /// The compatibility mode.
    pub compat: Compat,
    /// The start time.
    pub started: Timestamp,
    /// The inventory of nodes and pods, if they are watched.
    pub cluster_inventory: Option<ClusterInventory>,
    /// Kubelets, if resource metrics come from them.
    pub kubelets: Option<Kubelets>,
    /// Rules for Prometheus, if there are any.
    pub rules: Option<Rules>,
    /// The router of custom and external metrics to rules and upstream servers.
    pub router: Option<Router>,
}

impl Sources {
    fn sharding(&self) -> Option<&Sharding> {
        self.kubelets.as_ref()?.sharding()
    }

    /// The health checks.
    pub fn checks(&self) -> Vec<HealthCheck> {
        let mut checks = self.kubelets.as_ref().map(Kubelets::checks).unwrap_or_default();
        if self.kubelets.is_some() {
            // metrics-server has this check, which always passes.
            checks.push(HealthCheck::all("metadata-informer-sync", || Ok(())));
        } else if let Some(cluster_inventory) = &self.cluster_inventory {
            let watches = cluster_inventory.watches().clone();
            checks.push(HealthCheck::ready("watches", move || watches.check()));
        }
        checks
    }

    /// The report for `plimsoll metrics doctor`.
    pub fn report(&self, now: Timestamp) -> ServerReport {
        let upstreams = self.router.as_ref().map(Router::report).unwrap_or_default();
        let ((custom, external), resource) = match &self.rules {
            Some(rules) => (rules.reports(), rules.resource_report(self.cluster_inventory.as_ref())),
            None => ((None, None), None),
        };
        let of_upstreams = |count: fn(&UpstreamReport) -> usize| {
            let announced: usize = upstreams.iter().map(count).sum();
            (!upstreams.is_empty())
                .then(|| MetricsReport { metrics: announced as u64, ..MetricsReport::default() })
        };
        let mut problems =
            self.cluster_inventory.as_ref().map(ClusterInventory::problems).unwrap_or_default();
        problems.extend(self.rules.as_ref().map(Rules::problems).unwrap_or_default());
        problems.extend(self.sharding().map(silent).unwrap_or_default());
        let refused = self.router.as_ref().and_then(Router::problem);
        problems.extend(refused.map(|why| ReportedProblem {
            reason: "UpstreamsRefused".to_owned(),
            cause: format!("the upstreams as they are now are not used, the old ones stay: {why}"),
            remedy: "correct the file behind --upstreams (docs/federation.md)".to_owned(),
            ..ReportedProblem::default()
        }));
        ServerReport {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            metadata: ReportMeta { name: CURRENT.to_owned() },
            server: Identity {
                instance: self.instance.clone(),
                version: self.version.clone(),
                started: Some(self.started),
                time: Some(now),
                compat: if self.compat.is_strict() { "strict" } else { "better" }.to_owned(),
            },
            resource: self.kubelets.as_ref().map(|kubelets| kubelets.report(now)).or(resource),
            custom: sum(custom, of_upstreams(|found| found.custom)),
            external: sum(external, of_upstreams(|found| found.external)),
            prometheus: self.rules.as_ref().map(Rules::backends).unwrap_or_default(),
            upstreams: upstreams.iter().map(|found| backend(found, now)).collect(),
            replicas: self.sharding().map(replicas).unwrap_or_default(),
            problems,
        }
    }

    /// Exports the metrics.
    pub fn export(&self, writer: &mut MetricsWriter, now: Timestamp) {
        if let Some(kubelets) = &self.kubelets {
            kubelets.export(writer, now);
        }
        if let Some(rules) = &self.rules {
            rules.export(writer);
        }
        if let Some(router) = &self.router {
            export_upstreams(writer, &router.report());
        }
        if let Some(sharding) = self.sharding() {
            writer.family("gauge", "plimsoll_replica_nodes", "Nodes that each replica scrapes.");
            for replica in sharding.report() {
                writer.value(&[("replica", &replica.id)], replica.nodes);
            }
        }
        if let Some(cluster_inventory) = &self.cluster_inventory {
            cluster_inventory.watches().export(writer);
        }
        exported_metrics::process(writer);
    }
}

/// The sum of two reports of one API.
fn sum(own: Option<MetricsReport>, others: Option<MetricsReport>) -> Option<MetricsReport> {
    match (own, others) {
        (Some(own), Some(others)) => Some(MetricsReport { metrics: own.metrics + others.metrics, ..own }),
        (own, others) => own.or(others),
    }
}

fn backend(found: &UpstreamReport, now: Timestamp) -> BackendReport {
    let ago = |duration: std::time::Duration| {
        SignedDuration::try_from(duration).ok().and_then(|duration| now.checked_sub(duration).ok())
    };
    let (healthy, error, remedy, last_good) = match &found.condition {
        UpstreamCondition::Unknown => (true, String::new(), String::new(), None),
        UpstreamCondition::Healthy(_) => (true, String::new(), String::new(), Some(now)),
        UpstreamCondition::Failing { duration, cause, remedy } => {
            (false, cause.clone(), remedy.clone(), ago(*duration))
        }
    };
    BackendReport {
        name: found.name.clone(),
        address: found.url.clone(),
        healthy,
        error,
        remedy,
        last_good,
        metrics: Some((found.custom + found.external) as u64),
        latency: found.p99.and_then(|latency| SignedDuration::try_from(latency).ok()),
    }
}

fn replicas(sharding: &Sharding) -> Vec<ReplicaReport> {
    let replica = |found: sources::sharding::ReplicaReport| ReplicaReport {
        name: found.id,
        alive: found.alive,
        nodes: found.nodes,
    };
    sharding.report().into_iter().map(replica).collect()
}

/// Problems of replicas.
fn silent(sharding: &Sharding) -> Vec<ReportedProblem> {
    let problem = |found: sources::sharding::ReplicaReport| {
        let (cause, remedy) = found.problem?;
        let cause = format!("replica {} ({}): {cause}", found.id, found.address);
        let reason = "ReplicaSilent".to_owned();
        Some(ReportedProblem {
            grade: ProblemSeverity::Warning,
            reason,
            cause,
            remedy,
            ..ReportedProblem::default()
        })
    };
    sharding.report().into_iter().filter_map(problem).collect()
}

fn export_upstreams(writer: &mut MetricsWriter, upstreams: &[UpstreamReport]) {
    if upstreams.is_empty() {
        return;
    }
    writer.family("gauge", "plimsoll_upstream_up", "1 if an upstream metrics server answers.");
    for found in upstreams {
        let up = !matches!(found.condition, UpstreamCondition::Failing { .. });
        writer.value(&[("upstream", &found.name)], u8::from(up));
    }
    writer.family("counter", "plimsoll_upstream_requests_total", "Requests to upstream metrics servers.");
    for found in upstreams {
        writer.value(
            &[("upstream", &found.name), ("success", "true")],
            found.requests.saturating_sub(found.errors),
        );
        writer.value(&[("upstream", &found.name), ("success", "false")], found.errors);
    }
}
