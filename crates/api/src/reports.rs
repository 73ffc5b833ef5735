//! `metrics.plimsoll.dev/v1alpha1`: how the metrics server fares, for `plimsoll metrics doctor`.
//!
//! ```text
//! /apis/metrics.plimsoll.dev/v1alpha1/reports            one item
//! /apis/metrics.plimsoll.dev/v1alpha1/reports/current    the report of the replica that answers
//! ```
//!
//! What is wrong is grouped by cause, and every cause has a remedy.

use jiff::Timestamp;
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
/// No more names are listed of those who share a cause; the count is always whole.
pub const MAX_LISTED_NAMES: usize = 20;

/// How the metrics server fares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerReport {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Its name, which is [`CURRENT`].
    pub metadata: ReportMeta,
    /// Who reports.
    pub server: ServerIdentity,
    /// `metrics.k8s.io`; none if we do not serve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceReport>,
    /// `custom.metrics.k8s.io`; none if we do not serve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<MetricsReport>,
    /// `external.metrics.k8s.io`; none if we do not serve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<MetricsReport>,
    /// Prometheus servers that are asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prometheus: Vec<BackendReport>,
    /// Other metrics API servers that are asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<BackendReport>,
    /// Those who divide the nodes with us.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaReport>,
    /// What else is wrong: a configuration that could not be read again, a watch that is interrupted.
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

/// Who reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerIdentity {
    /// Name of this replica: that of its pod.
    pub instance: String,
    /// Version of the program.
    pub version: String,
    /// Since when it runs.
    pub started: Option<Timestamp>,
    /// When the report was made.
    pub time: Option<Timestamp>,
    /// `better` or `strict`.
    pub compat: String,
}

/// How resource metrics fare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceReport {
    /// Where they come from: `kubelets` or `prometheus`.
    pub source: String,
    /// Nodes that should have metrics.
    pub nodes: u64,
    /// Those whose metrics are no older than two periods.
    pub fresh_nodes: u64,
    /// Running pods.
    pub pods: u64,
    /// Those that have metrics.
    pub served_pods: u64,
    /// What is wrong with nodes, by cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_problems: Vec<ReportedProblem>,
    /// Why running pods have no metrics, by cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pod_problems: Vec<ReportedProblem>,
}

/// How custom or external metrics fare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsReport {
    /// How many metrics are known.
    pub metrics: u64,
    /// How many rules there are.
    pub rules: u64,
    /// Rules that find nothing or fail, by cause; names are places in the file: `rules[3]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rule_problems: Vec<ReportedProblem>,
}

/// Something that is wrong, and with whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedProblem {
    /// How bad it is.
    pub grade: ProblemSeverity,
    /// One word for programs: `CertificateName`.
    pub reason: String,
    /// What is wrong, in a sentence.
    pub cause: String,
    /// What to do about it.
    pub remedy: String,
    /// With how many.
    pub count: u64,
    /// With whom: at most [`MAX_LISTED_NAMES`].
    pub names: Vec<String>,
    /// Since when, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// How often in a row, the most among them.
    #[serde(skip_serializing_if = "is_zero")]
    pub times: u64,
    /// When it was last well, the longest ago among them; none if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good: Option<Timestamp>,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    /// Somebody's autoscaler suffers from it.
    #[default]
    Error,
    /// It may be meant so.
    Warning,
}

/// Somebody we ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendReport {
    /// What it is called, if it has a name.
    pub name: String,
    /// Where it is, without credentials.
    pub address: String,
    /// Whether its last answer was good.
    pub healthy: bool,
    /// What went wrong last; empty if nothing did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// When it last answered well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good: Option<Timestamp>,
    /// How many metrics it has, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<u64>,
}

/// Somebody who divides the nodes with us.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaReport {
    /// Its name or address.
    pub name: String,
    /// Whether it is heard from.
    pub alive: bool,
    /// How many nodes it scrapes.
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
    /// Whether something is wrong, and how bad the worst of it is.
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
    /// Of these names, of which only the first are kept.
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
    fn the_worst_counts() {
        let mut report = ServerReport::default();
        assert_eq!(report.grade(), None);
        report.replicas.push(ReplicaReport::default());
        assert_eq!(report.grade(), Some(ProblemSeverity::Warning));
        let problem = ReportedProblem { grade: ProblemSeverity::Error, ..ReportedProblem::default() };
        report.custom = Some(MetricsReport { rule_problems: vec![problem], ..MetricsReport::default() });
        assert_eq!(report.grade(), Some(ProblemSeverity::Error));
    }

    #[test]
    fn names_are_few_but_counted() {
        let problem = ReportedProblem::default().with((0..30).map(|n| format!("node-{n:02}")));
        assert_eq!(
            (problem.count, problem.names.len(), problem.names[0].as_str()),
            (30, MAX_LISTED_NAMES, "node-00")
        );
    }

    #[test]
    fn what_an_older_server_does_not_say_is_nothing() {
        let report: ServerReport =
            serde_json::from_str(r#"{"kind":"Report","resource":{"nodes":3},"new":1}"#).unwrap();
        assert_eq!(report.resource.unwrap().nodes, 3);
    }
}
