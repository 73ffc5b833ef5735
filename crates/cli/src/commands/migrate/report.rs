//! What a switch would change, and what it would break.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::installed::{InstalledProgram, Program, text};
use super::problem::{MigrationProblem, SwitchImpact};
use super::read::{ClusterState, GROUPS, WEBHOOK, is_named};
use super::{Peer, arguments, deployment, objects, plan};

/// The result of `migrate check`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MigrationReport {
    pub(super) installed: Vec<InstalledProgram>,
    pub(super) apis: Vec<MetricsApi>,
    /// The holder of the lease of kube-controller-manager, which runs Kubernetes' HPA controller; none if it is not visible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) controller_manager_lease: Option<String>,
    /// The number of objects by kind.
    pub(super) objects: BTreeMap<String, usize>,
    /// What a switch would change.
    pub(super) changes: Vec<String>,
    pub(super) problems: Vec<MigrationProblem>,
    /// What could not be read, and why.
    pub(super) unread: Vec<String>,
}

/// An APIService of a metrics API.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetricsApi {
    /// Its name, such as `v1beta1.metrics.k8s.io`.
    pub(super) name: String,
    /// `namespace/name` of its Service.
    pub(super) service: String,
    /// The program behind the Service; none if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Program>,
    pub(super) available: bool,
}

impl MigrationReport {
    /// Whether something would break.
    pub(super) fn breaks(&self) -> bool {
        self.problems.iter().any(|problem| problem.impact == SwitchImpact::Breaks)
    }
}

impl MetricsApi {
    /// The name of its server, for people.
    pub(super) fn owner_title(&self) -> &str {
        match (self.owner, self.service.as_str()) {
            (Some(owner), _) => owner.title(),
            (None, "") => "kube-apiserver",
            (None, service) => service,
        }
    }
}

/// Evaluates what was read; with `only`, what concerns these peers.
pub(super) fn report(state: &ClusterState, only: &[Peer]) -> MigrationReport {
    let apis: Vec<MetricsApi> = state.api_services.iter().map(|api| metrics_api(state, api)).collect();
    let is_concerned = |found: &&InstalledProgram| plan::is_concerned(state, found);
    let concerned: Vec<&InstalledProgram> = state.installed.iter().filter(is_concerned).collect();
    let mut problems: Vec<MigrationProblem> =
        concerned.iter().flat_map(|found| arguments::check(found)).collect();
    problems.extend(concerned.iter().flat_map(|found| deployment::check(found)));
    for (adapter, rules) in &state.rules {
        if concerned.iter().any(|found| found.shown() == *adapter) {
            problems.extend(objects::check_rules(adapter, rules));
        }
    }
    let operator = plan::installed(state, Program::KedaOperator);
    let variables = operator.map(|operator| operator.variables.as_slice()).unwrap_or_default();
    let profile = operator.and_then(InstalledProgram::keda_profile).unwrap_or_default();
    problems.extend(state.keda_objects.iter().flat_map(|object| objects::check(object, variables, profile)));
    problems.extend(apis.iter().filter_map(foreign));
    problems.extend(divided(state, &apis));
    problems.retain(|problem| only.is_empty() || only.contains(&problem.from));
    problems.sort_by(|a, b| (a.from, a.impact, &a.object).cmp(&(b.from, b.impact, &b.object)));
    let mut objects = BTreeMap::new();
    for object in &state.keda_objects {
        *objects.entry(text(object, "/kind").to_owned()).or_insert(0) += 1;
    }
    objects.extend(state.hpas.map(|count| ("HorizontalPodAutoscaler".to_owned(), count)));
    MigrationReport {
        installed: state.installed.clone(),
        changes: changes(state, &apis, only),
        controller_manager_lease: state.manager_lease.clone(),
        apis,
        objects,
        problems,
        unread: state.unread.clone(),
    }
}

fn metrics_api(state: &ClusterState, api: &Value) -> MetricsApi {
    let (namespace, name) = (text(api, "/spec/service/namespace"), text(api, "/spec/service/name"));
    let service = state.services.iter().find(|service| is_named(service, namespace, name));
    let owner = service.and_then(|service| state.installed.iter().find(|found| found.is_behind(service)));
    let conditions = api.pointer("/status/conditions").and_then(Value::as_array);
    let is_available =
        |condition: &Value| (text(condition, "/type"), text(condition, "/status")) == ("Available", "True");
    MetricsApi {
        name: text(api, "/metadata/name").to_owned(),
        service: if name.is_empty() { String::new() } else { format!("{namespace}/{name}") },
        owner: owner.map(|owner| owner.program),
        available: conditions.is_some_and(|all| all.iter().any(is_available)),
    }
}

/// Whose switch takes an API over.
fn peer_of(group: &str) -> Peer {
    match group {
        "metrics.k8s.io" => Peer::MetricsServer,
        "custom.metrics.k8s.io" => Peer::PrometheusAdapter,
        _ => Peer::Keda,
    }
}

/// An API of a server that is not replaced: its metrics would be lost.
fn foreign(api: &MetricsApi) -> Option<MigrationProblem> {
    let group =
        GROUPS.iter().find(|group| api.name.split_once('.').is_some_and(|(_, rest)| rest == **group))?;
    // Without access to Deployments, our own Services are known by their names.
    if api.owner.is_some() || api.service.is_empty() || api.service.contains("/plimsoll-") {
        return None;
    }
    Some(MigrationProblem {
        impact: SwitchImpact::Breaks,
        from: peer_of(group),
        object: format!("APIService {}", api.name),
        field: "spec.service".to_owned(),
        message: format!("is served by {}, which is none of the replaced programs: its metrics would be lost", api.service),
        remedy: "make it an upstream (docs/federation.md), or do not take this API over (metrics.apiServices, operator.apiService)"
            .to_owned(),
    })
}

/// Both KEDA and prometheus-adapter have external metrics, but only one can serve them.
fn divided(state: &ClusterState, apis: &[MetricsApi]) -> Option<MigrationProblem> {
    let has_keda = state.installed.iter().any(|found| found.program == Program::KedaOperator);
    let with_rules = state.rules.iter().find(|(_, rules)| rules.text.contains("externalRules"));
    let api = apis.iter().find(|api| api.name.ends_with(".external.metrics.k8s.io"))?;
    let (adapter, _) = with_rules.filter(|_| has_keda)?;
    Some(MigrationProblem {
        impact: SwitchImpact::Differs,
        from: Peer::Keda,
        object: format!("APIService {}", api.name),
        field: "spec.service".to_owned(),
        message: format!("{adapter} has externalRules, too, and this API leads to {}", api.owner_title()),
        remedy: "with Plimsoll both are served: operator.apiService=false and \
                 metrics.apiServices.external=true (docs/federation.md)"
            .to_owned(),
    })
}

/// What a switch would change, one sentence each.
fn changes(state: &ClusterState, apis: &[MetricsApi], only: &[Peer]) -> Vec<String> {
    let is_wanted = |peer: Peer| only.is_empty() || only.contains(&peer);
    let mut found = Vec::new();
    for api in apis {
        let replaced = api.owner.and_then(Program::peer).filter(|peer| is_wanted(*peer));
        if let Some(peer) = replaced {
            let role = if peer == Peer::Keda { "plimsoll-operator" } else { "plimsoll-metrics" };
            found.push(format!("APIService {} leads to {role} instead of {}", api.name, api.service));
        }
    }
    let keda = state.installed.iter().any(|found| found.program == Program::KedaOperator);
    if keda && is_wanted(Peer::Keda) {
        found.push("the HPAs that KEDA created are adopted as they are, byte for byte".to_owned());
        if state.webhook.is_some() {
            found.push(format!("ValidatingWebhookConfiguration {WEBHOOK} leads to plimsoll-operator"));
        }
    }
    if is_wanted(Peer::Hpa) && state.hpas.is_some_and(|count| count > 0) {
        found.push(
            "HPAs are reconciled by plimsoll-controller once it is active; shadow mode changes nothing"
                .to_owned(),
        );
    }
    found
}
