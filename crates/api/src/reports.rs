//! `metrics.plimsoll.dev/v1alpha1`: health reports of the metrics server, for `plimsoll metrics doctor`.
//!
//! ```text
//! /apis/metrics.plimsoll.dev/v1alpha1/reports            one item
//! /apis/metrics.plimsoll.dev/v1alpha1/reports/current    the report of the replica that answers
//! ```
//!
//! Problems are grouped by cause, and every cause has a remedy.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The group.
pub const GROUP: &str = "metrics.plimsoll.dev";
/// The version.
pub const VERSION: &str = "v1alpha1";
/// Group and version.
pub const API_VERSION: &str = "metrics.plimsoll.dev/v1alpha1";
/// Kind of a report.
pub const KIND: &str = "Report";
/// The resource, in paths.
pub const RESOURCE: &str = "reports";
/// Name of the only object.
pub const CURRENT: &str = "current";
/// Maximum number of listed names per cause; the count is always complete.
pub const MAX_LISTED_NAMES: usize = 20;

/// Report of the metrics server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerReport {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Its name, which is [`CURRENT`].
    pub metadata: ReportMeta,
    /// The reporting server.
    pub server: ServerIdentity,
    /// `metrics.k8s.io`; absent if it is not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceReport>,
    /// `custom.metrics.k8s.io`; absent if it is not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<MetricsReport>,
    /// `external.metrics.k8s.io`; absent if it is not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<MetricsReport>,
    /// Prometheus servers that are queried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prometheus: Vec<BackendReport>,
    /// Other metrics API servers that are queried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<BackendReport>,
    /// Replicas that share the nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaReport>,
    /// Other problems: a configuration that could not be reloaded, an interrupted watch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ReportedProblem>,
}

/// Names an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportMeta {
    /// Name.
    pub name: String,
}

/// The reporting server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerIdentity {
    /// Name of this replica: that of its pod.
    pub instance: String,
    /// Version of the program.
    pub version: String,
    /// Start time.
    pub started: Option<Timestamp>,
    /// When the report was made.
    pub time: Option<Timestamp>,
    /// `better` or `strict`.
    pub compat: String,
}

/// Health of resource metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceReport {
    /// Source: `kubelets` or `prometheus`.
    pub source: String,
    /// Nodes that should have metrics.
    pub nodes: u64,
    /// Nodes whose metrics are not older than two scrape periods.
    pub fresh_nodes: u64,
    /// Running pods.
    pub pods: u64,
    /// Pods with metrics.
    pub served_pods: u64,
    /// Mean duration of a scrape, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<SignedDuration>,
    /// Problems of nodes, by cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_problems: Vec<ReportedProblem>,
    /// Why running pods have no metrics, by cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pod_problems: Vec<ReportedProblem>,
}

/// Health of custom or external metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsReport {
    /// Number of metrics.
    pub metrics: u64,
    /// Number of rules.
    pub rules: u64,
    /// Rules that fail or find no series, by cause. Names are positions in the file: `rules[3]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rule_problems: Vec<ReportedProblem>,
}

/// A problem and the objects that have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedProblem {
    /// Severity.
    pub grade: ProblemSeverity,
    /// Reason in CamelCase: `CertificateName`.
    pub reason: String,
    /// Cause in one sentence.
    pub cause: String,
    /// Remedy.
    pub remedy: String,
    /// Number of affected objects.
    pub count: u64,
    /// Names of affected objects, at most [`MAX_LISTED_NAMES`].
    pub names: Vec<String>,
    /// Start, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Maximum number of consecutive failures of one object.
    #[serde(skip_serializing_if = "is_zero")]
    pub times: u64,
    /// Earliest time of a last success; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good: Option<Timestamp>,
}

/// Severity of a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    /// It affects autoscalers.
    #[default]
    Error,
    /// It can be intended.
    Warning,
}

/// A queried backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendReport {
    /// Name, if it has one.
    pub name: String,
    /// Address without credentials.
    pub address: String,
    /// Whether the last query succeeded.
    pub healthy: bool,
    /// Last error; empty if there was none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Remedy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Time of the last success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good: Option<Timestamp>,
    /// Number of metrics, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<u64>,
    /// Duration of a query, if there was one: the mean for Prometheus, the 99th percentile for a metrics API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<SignedDuration>,
}

/// Another replica.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaReport {
    /// Its name or address.
    pub name: String,
    /// Whether it is alive.
    pub alive: bool,
    /// Number of nodes that it scrapes.
    pub nodes: u64,
}

/// A list with one report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportList {
    /// [`API_VERSION`].
    pub api_version: String,
    /// `ReportList`.
    pub kind: String,
    /// The reports.
    pub items: Vec<ServerReport>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ServerReport {
    /// The highest severity of all problems; absent if there are none.
    pub fn grade(&self) -> Option<ProblemSeverity> {
        let resource =
            self.resource.iter().flat_map(|found| found.node_problems.iter().chain(&found.pod_problems));
        let rules = self.custom.iter().chain(&self.external).flat_map(|found| &found.rule_problems);
        let ill = self.prometheus.iter().chain(&self.upstreams).any(|backend| !backend.healthy);
        let lost = self.replicas.iter().any(|replica| !replica.alive);
        let others =
            ill.then_some(ProblemSeverity::Error).into_iter().chain(lost.then_some(ProblemSeverity::Warning));
        resource.chain(rules).chain(&self.problems).map(|problem| problem.grade).chain(others).min()
    }
}

impl ReportedProblem {
    /// Sets names and count. Only the first names are kept.
    pub fn with(mut self, names: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<String> = names.into_iter().collect();
        self.count = u64::try_from(names.len()).unwrap_or(u64::MAX);
        names.sort_unstable();
        names.truncate(MAX_LISTED_NAMES);
        self.names = names;
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn grade_is_the_highest_severity() {
        let mut report = ServerReport::default();
        assert_eq!(report.grade(), None);
        report.replicas.push(ReplicaReport::default());
        assert_eq!(report.grade(), Some(ProblemSeverity::Warning));
        let problem = ReportedProblem { grade: ProblemSeverity::Error, ..ReportedProblem::default() };
        report.custom = Some(MetricsReport { rule_problems: vec![problem], ..MetricsReport::default() });
        assert_eq!(report.grade(), Some(ProblemSeverity::Error));
    }

    #[test]
    fn names_are_truncated_but_counted() {
        let problem = ReportedProblem::default().with((0..30).map(|n| format!("node-{n:02}")));
        assert_eq!(
            (problem.count, problem.names.len(), problem.names[0].as_str()),
            (30, MAX_LISTED_NAMES, "node-00")
        );
    }

    #[test]
    fn missing_and_unknown_fields_are_accepted() {
        let report: ServerReport =
            serde_json::from_str(r#"{"kind":"Report","resource":{"nodes":3},"new":1}"#).unwrap();
        assert_eq!(report.resource.unwrap().nodes, 3);
    }
}
