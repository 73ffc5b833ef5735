//! The state of the metrics APIs and its evaluation.

use api::diagnosis::PAGE;
use api::reports::{GROUP as OWN_GROUP, ProblemSeverity, ReportedProblem, ServerReport};
use serde::{Deserialize, Serialize};

use crate::live::RequestError;

/// The groups, in the order in which they are shown.
pub(super) const GROUPS: [&str; 3] = ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"];
/// The group of our operator, by which its Service is recognized.
pub(super) const OPERATOR: &str = "operator.plimsoll.dev";
/// The group of our own report.
pub(super) const OWN: &str = OWN_GROUP;

/// The state of metrics on a cluster.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Findings {
    pub(super) groups: Vec<GroupFinding>,
    /// The Service of our own server, if it is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ours: Option<Reference>,
    /// How many of its pods are ready, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ready_replicas: Option<u64>,
    /// What it reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<ServerReport>,
    /// Problems that are not in the report.
    pub(super) problems: Vec<ReportedProblem>,
    /// What is unknown, and why.
    pub(super) unknown: Vec<String>,
}

/// The state of one API group.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupFinding {
    pub(super) group: &'static str,
    pub(super) served_by: GroupServer,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service: Option<Reference>,
    pub(super) versions: Vec<String>,
    pub(super) problems: Vec<ReportedProblem>,
    /// Suggestions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) advice: String,
}

/// The server of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GroupServer {
    #[default]
    Nobody,
    Plimsoll,
    /// Plimsoll's operator, which answers for ScaledObjects.
    Operator,
    Other,
}

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Reference {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The fields of an APIService that are used.
#[derive(Clone, Debug, Default)]
pub(super) struct ApiService {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) service: Option<Reference>,
    pub(super) available: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Findings {
    /// The highest severity; none if all is well.
    pub(super) fn grade(&self) -> Option<ProblemSeverity> {
        let groups = self.groups.iter().flat_map(|group| &group.problems);
        let grades = groups.chain(&self.problems).map(|problem| problem.grade);
        grades.chain(self.report.as_ref().and_then(ServerReport::grade)).min()
    }
}

/// Evaluates what was read.
pub(super) fn findings(
    services: &[ApiService],
    report: Option<Result<ServerReport, RequestError>>,
) -> Findings {
    let own: Vec<&ApiService> = services.iter().filter(|service| service.group == OWN).collect();
    let ours = own.iter().find_map(|service| service.service.clone());
    let mut findings = Findings { ours: ours.clone(), ..Findings::default() };
    let operator = services.iter().find(|service| service.group == OPERATOR);
    let operator = operator.and_then(|service| service.service.as_ref());
    for group in GROUPS {
        let of_group: Vec<&ApiService> = services.iter().filter(|service| service.group == group).collect();
        findings.groups.push(group_finding(group, &of_group, ours.as_ref(), operator));
    }
    match report {
        None => {}
        Some(Ok(report)) => findings.report = Some(report),
        Some(Err(error)) => match own.iter().find(|service| !service.available) {
            // An unreachable server is reported once.
            Some(service) if findings.groups.iter().all(|group| group.served_by != GroupServer::Plimsoll) => {
                findings.problems.push(unavailable(service));
            }
            Some(_) => {}
            None => findings.unknown.push(format!(
                "the report of plimsoll cannot be read: {error}{}",
                match error.code() {
                    Some(403) => "\n  remedy: ask for `get` on reports.metrics.plimsoll.dev (ClusterRole plimsoll-metrics-report)",
                    Some(404) => "\n  remedy: the server behind the APIService is older than this program, or not plimsoll; update it",
                    _ => "",
                }
            )),
        },
    }
    findings
}

fn group_finding(
    group: &'static str,
    services: &[&ApiService],
    ours: Option<&Reference>,
    operator: Option<&Reference>,
) -> GroupFinding {
    let versions = services.iter().map(|service| service.version.clone()).collect();
    let service = services.iter().find_map(|service| service.service.clone());
    let mut finding = GroupFinding { group, service: service.clone(), versions, ..GroupFinding::default() };
    let Some(service) = service else {
        if group == "metrics.k8s.io" {
            finding.problems.push(ReportedProblem {
                reason: "NotServed".into(),
                cause: "it is not served: `kubectl top` and every autoscaler on cpu or memory fail".into(),
                remedy: documented("kubectl apply -f deploy/metrics/", "metrics-api-not-served"),
                ..ReportedProblem::default()
            });
        }
        return finding;
    };
    finding.served_by = match Some(&service) {
        known if known == ours => GroupServer::Plimsoll,
        known if known == operator => GroupServer::Operator,
        _ => GroupServer::Other,
    };
    if let Some(other) =
        services.iter().find(|found| found.service.as_ref().is_some_and(|found| *found != service))
    {
        let shown = other.service.as_ref().map(Reference::shown).unwrap_or_default();
        finding.problems.push(ReportedProblem {
            reason: "Divided".into(),
            cause: format!("{} leads to another server than {}: {shown}", other.version, service.shown()),
            remedy: format!(
                "let all versions lead to one: kubectl edit apiservice {}.{group}",
                other.version
            ),
            ..ReportedProblem::default()
        });
    }
    finding
        .problems
        .extend(services.iter().filter(|service| !service.available).map(|service| unavailable(service)));
    if finding.served_by == GroupServer::Operator && ours.is_some() {
        finding.advice = format!(
            "to serve rules or upstreams there, too, start `plimsoll metrics` with --operator {} (docs/federation.md)",
            service.shown()
        );
    }
    if finding.served_by == GroupServer::Other && ours.is_some() {
        finding.advice = if group == "metrics.k8s.io" {
            "let its APIService lead to plimsoll to have both in one place (docs/metrics.md)".into()
        } else {
            "add it as an upstream to have both (docs/federation.md)".into()
        };
    }
    finding
}

/// An APIService that kube-apiserver cannot use.
fn unavailable(found: &ApiService) -> ReportedProblem {
    let service = found.service.clone().unwrap_or_default();
    let (namespace, name) = (&service.namespace, &service.name);
    let message = found.message.to_ascii_lowercase();
    let contains_any = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let remedy = match found.reason.as_str() {
        "ServiceNotFound" => format!("create the Service, or remove the APIService: kubectl delete apiservice {}.{}", found.version, found.group),
        "ServicePortError" | "ServiceAccessError" => format!("compare spec.service.port with the ports of the Service: kubectl -n {namespace} get service {name}"),
        "EndpointsNotFound" | "MissingEndpoints" | "EndpointsAccessError" => format!(
            "no pod behind the Service is ready: kubectl -n {namespace} get pods, then their log; /readyz?verbose says which check fails"
        ),
        _ if contains_any(&["x509", "certificate", "tls:"]) => {
            "kube-apiserver does not trust its certificate: correct spec.caBundle of the APIService, or set insecureSkipTLSVerify".into()
        }
        _ if contains_any(&["401", "403", "unauthorized", "forbidden"]) => {
            "it does not know kube-apiserver: bind its service account to extension-apiserver-authentication-reader in kube-system and to system:auth-delegator".into()
        }
        "FailedDiscoveryCheck" => format!(
            "kube-apiserver cannot reach the pods of {namespace}/{name}: open their port for the control plane (firewall, security group), or run them with hostNetwork on a port of their own"
        ),
        _ => format!("kubectl describe apiservice {}.{}", found.version, found.group),
    };
    let message = if found.message.is_empty() {
        "kube-apiserver has not checked it yet"
    } else {
        found.message.as_str()
    };
    let reason = if found.reason.is_empty() { "Unavailable" } else { found.reason.as_str() };
    ReportedProblem {
        reason: reason.to_owned(),
        cause: format!("{} is not available ({reason}): {message}", found.version),
        remedy: documented(&remedy, "metrics-api-unavailable"),
        ..ReportedProblem::default()
    }
}

/// A remedy with the entry of the catalogue that `why` names for autoscalers with this problem.
fn documented(remedy: &str, id: &str) -> String {
    format!("{remedy} ({PAGE}#{id})")
}

impl Reference {
    /// `namespace/name`.
    pub(super) fn shown(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}
