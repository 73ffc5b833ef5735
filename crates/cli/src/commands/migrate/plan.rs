//! The steps of a switch, each with its way back.

mod keda;

use api::yaml;
use serde::Serialize;
use serde_json::{Value, json};

use super::Peer;
use super::arguments::hpa_arguments;
use super::commands::{Destination, adoption, helm, scale, start};
use super::installed::{InstalledProgram, Program, text};
use super::read::{ClusterState, GROUPS};
use super::values::{ConvertedValues, LostValue, metrics_arguments};

/// The default namespace of Plimsoll.
pub(super) const NAMESPACE: &str = "plimsoll-system";
/// The APIServices by which the roles are known, and which have their CA.
const METRICS_REPORT: &str = "v1alpha1.metrics.plimsoll.dev";
const OPERATOR_DECISIONS: &str = "v1alpha1.operator.plimsoll.dev";
/// The API of metrics-server.
const RESOURCE_METRICS: &str = "metrics.k8s.io";
/// The API of KEDA's metrics.
const EXTERNAL_METRICS: &str = "external.metrics.k8s.io";
/// The role with which users read `metrics.k8s.io`.
const READER_ROLE: &str = "clusterrole system:aggregated-metrics-reader";
/// The switch from one peer.
#[derive(Debug, Serialize)]
pub(super) struct SwitchPlan {
    pub(super) from: Peer,
    pub(super) steps: Vec<PlanStep>,
}

/// One step.
#[derive(Debug, Serialize)]
pub(super) struct PlanStep {
    pub(super) title: String,
    pub(super) commands: Vec<String>,
    /// The commands that undo it; none if there is nothing to undo.
    pub(super) back: Vec<String>,
}

/// The plans for what is installed, or for one peer.
pub(super) fn plans(state: &ClusterState, from: Option<Peer>, place: &Destination<'_>) -> Vec<SwitchPlan> {
    let wanted = Peer::ALL.into_iter().filter(|peer| from.is_none_or(|from| from == *peer));
    wanted
        .filter_map(|peer| Some(SwitchPlan { from: peer, steps: steps(state, peer, from.is_some(), place)? }))
        .collect()
}

/// The steps from one peer; `alone` if no other is switched before.
fn steps(state: &ClusterState, peer: Peer, alone: bool, place: &Destination<'_>) -> Option<Vec<PlanStep>> {
    match peer {
        Peer::MetricsServer => Some(metrics_server(state, installed(state, Program::MetricsServer)?, place)),
        Peer::PrometheusAdapter => {
            Some(adapter(state, installed(state, Program::PrometheusAdapter)?, alone, place))
        }
        Peer::Keda => Some(keda::steps(state, installed(state, Program::KedaOperator)?, place)),
        // Every cluster has the controller, but not every cluster shows it.
        Peer::Hpa => Some(hpa(state, place)),
    }
}

/// The Deployment of a program. Tenants may run copies, so one that is used comes first.
pub(super) fn installed(state: &ClusterState, program: Program) -> Option<&InstalledProgram> {
    let all = || state.installed.iter().filter(move |found| found.program == program);
    all().find(|found| is_used(state, found)).or_else(|| all().next())
}

/// Whether a switch may concern a Deployment: where one of its program is used, the others are copies of tenants.
pub(super) fn is_concerned(state: &ClusterState, found: &InstalledProgram) -> bool {
    let is_same = |other: &&InstalledProgram| other.program == found.program;
    is_used(state, found) || !state.installed.iter().filter(is_same).any(|other| is_used(state, other))
}

/// Whether an API of the cluster leads to a Deployment, or to another one of the same peer in its namespace.
fn is_used(state: &ClusterState, found: &InstalledProgram) -> bool {
    let serves = |other: &InstalledProgram| GROUPS.iter().any(|group| leads_to(state, group, other));
    let is_beside = |other: &InstalledProgram| {
        (other.program.peer(), &other.namespace) == (found.program.peer(), &found.namespace)
    };
    state.installed.iter().any(|other| is_beside(other) && serves(other))
}

fn step(title: &str, commands: Vec<String>, back: Vec<String>) -> PlanStep {
    PlanStep { title: title.to_owned(), commands, back }
}

/// Values without the controller, which the chart installs by default, unless the release has it already.
fn role_values(state: &ClusterState, place: &Destination<'_>) -> ConvertedValues {
    let mut values = ConvertedValues::default();
    let is_ours = |found: &InstalledProgram| found.namespace == place.namespace && found.has_controller();
    if !state.installed.iter().any(is_ours) {
        values.set("controller.enabled", json!(false));
    }
    values
}

fn metrics_server(state: &ClusterState, server: &InstalledProgram, place: &Destination<'_>) -> Vec<PlanStep> {
    let mut values = role_values(state, place);
    metrics_arguments(&mut values, "args", &server.arguments);
    values.set("metrics.enabled", json!(true));
    values.set("metrics.apiServices", json!({"resource": false}));
    let mut steps = vec![
        install(
            "Start the metrics server beside metrics-server; no API leads to it yet",
            "metrics",
            &values,
            place,
        ),
        ready(state, "plimsoll-metrics", METRICS_REPORT, place),
    ];
    steps.extend(switches(state, &[RESOURCE_METRICS], "plimsoll-metrics", METRICS_REPORT, place));
    steps.push(step(
        "See that it answers",
        vec!["kubectl top nodes".into(), "plimsoll metrics doctor".into()],
        Vec::new(),
    ));
    steps.push(stop(&[server]));
    steps.extend(owned(state, server, &[RESOURCE_METRICS], &["metrics.apiServices.resource"], place));
    steps.push(removal(&[server]));
    steps
}

fn adapter(
    state: &ClusterState,
    adapter: &InstalledProgram,
    alone: bool,
    place: &Destination<'_>,
) -> Vec<PlanStep> {
    let server = installed(state, Program::MetricsServer);
    let mut values = role_values(state, place);
    if let Some(server) = server.filter(|_| !alone) {
        // The plan before this one wrote the same file. Helm replaces lists, so the flags of both are needed.
        metrics_arguments(&mut values, "args", &server.arguments);
        // That plan says what is lost.
        values.lost.clear();
    }
    metrics_arguments(&mut values, "args", &adapter.arguments);
    let rules = state.rules.iter().find(|(name, _)| *name == adapter.shown());
    let parsed =
        rules.and_then(|(_, rules)| yaml::parse(&yaml::SourceFile::new("rules", rules.text.as_str())).ok());
    if let Some(document) = parsed.as_ref().and_then(|documents| documents.first()) {
        values.set("metrics.prometheus.rules", document.root.to_json());
    }
    values.set("metrics.enabled", json!(true));
    values.set("metrics.apiServices", json!({"custom": false, "external": false}));
    let is_of_server = server.is_some_and(|server| leads_to(state, RESOURCE_METRICS, server));
    // With `resourceRules` the adapter serves all three, unless there is a metrics-server.
    let is_own =
        |group: &&str| leads_to(state, group, adapter) && !(is_of_server && *group == RESOURCE_METRICS);
    let own: Vec<&str> = GROUPS.into_iter().filter(is_own).collect();
    // Without a switch from metrics-server, the API stays with the server that there is, also an unknown one.
    let is_of_other = |api: &Value| {
        text(api, "/spec/group") == RESOURCE_METRICS
            && !text(api, "/spec/service/name").starts_with("plimsoll-")
    };
    let is_switched_before = server.is_some() && !alone;
    if own.contains(&RESOURCE_METRICS) || (!is_switched_before && state.api_services.iter().any(is_of_other))
    {
        values.set("metrics.apiServices.resource", json!(false));
    }
    let mut steps = vec![
        install(
            "Start the metrics server beside prometheus-adapter; no API leads to it yet",
            "metrics",
            &values,
            place,
        ),
        ready(state, "plimsoll-metrics", METRICS_REPORT, place),
    ];
    steps.extend(switches(state, &own, "plimsoll-metrics", METRICS_REPORT, place));
    let list = "kubectl get --raw /apis/custom.metrics.k8s.io/v1beta1".to_owned();
    steps.push(step("See that it answers", vec![list, "plimsoll metrics doctor".into()], Vec::new()));
    if own.is_empty() {
        // No API is known to lead to it, so none was switched, and stopping it could end one.
        return steps;
    }
    steps.push(stop(&[adapter]));
    let taken: Vec<&str> = own
        .iter()
        .map(|group| match *group {
            RESOURCE_METRICS => "metrics.apiServices.resource",
            "custom.metrics.k8s.io" => "metrics.apiServices.custom",
            _ => "metrics.apiServices.external",
        })
        .collect();
    steps.extend(owned(state, adapter, &own, &taken, place));
    steps.push(removal(&[adapter]));
    steps
}

fn hpa(state: &ClusterState, place: &Destination<'_>) -> Vec<PlanStep> {
    let Destination { namespace, .. } = place;
    let mut steps = Vec::new();
    // In shadow mode a controller that acts already would stop, and nobody would scale where Kubernetes' own is stopped.
    if !state.installed.iter().any(|found| found.namespace == *namespace && found.acts()) {
        steps.extend(shadow(installed(state, Program::ControllerManager), place));
    }
    let deployment = deployment_of(state, "plimsoll-controller", place);
    // One process has no shadow mode.
    let idle = if deployment == "plimsoll-controller" {
        "controller.mode=shadow"
    } else {
        "controller.enabled=false"
    };
    steps.extend([
        step(
            "Stop Kubernetes' own controller: add this flag to kube-controller-manager on every control plane node",
            vec!["# --controllers=*,-horizontal-pod-autoscaler-controller   (/etc/kubernetes/manifests/kube-controller-manager.yaml)".into()],
            vec!["# remove --controllers=*,-horizontal-pod-autoscaler-controller from kube-controller-manager".into()],
        ),
        step(
            "Let the controller act",
            vec![
                helm(place, "--set controller.mode=active"),
                format!("kubectl -n {namespace} rollout status deployment/{deployment} --timeout=5m"),
                "plimsoll get -A".into(),
            ],
            vec![helm(place, &format!("--set {idle}"))],
        ),
    ]);
    steps
}

/// Compares the controller with Kubernetes' own.
fn shadow(manager: Option<&InstalledProgram>, place: &Destination<'_>) -> [PlanStep; 2] {
    let mut values = ConvertedValues::default();
    values.set("controller", json!({"enabled": true, "mode": "shadow"}));
    for word in manager.map(hpa_arguments).unwrap_or_default() {
        values.push("controller.extraArgs", json!(word));
    }
    [
        install(
            "Start the controller in shadow mode: it decides, and writes nothing but events",
            "controller",
            &values,
            place,
        ),
        step(
            "Compare for as long as your load needs to change; exit code 0 means no difference, 3 means differences",
            vec!["plimsoll shadow report".into(), "plimsoll shadow report --html shadow.html".into()],
            Vec::new(),
        ),
    ]
}

fn install(title: &str, role: &str, values: &ConvertedValues, place: &Destination<'_>) -> PlanStep {
    let file = format!("plimsoll-{role}.yaml");
    let mut commands = vec![format!("cat > {file} <<'EOF'\n{}EOF", yaml::to_yaml(&values.values))];
    // A line break in a flag would end the comment, and the rest of the flag would be a command.
    let on_one_line = |text: &str| text.replace(char::is_control, " ");
    let lost =
        |lost: &LostValue| on_one_line(&format!("# without an equivalent: {}: {}", lost.path, lost.why));
    commands.extend(values.lost.iter().map(lost));
    commands.push(helm(place, &format!("-f {file}")));
    step(title, commands, vec![helm(place, &format!("--set {role}.enabled=false"))])
}

/// The Deployment of a role, which is that of the one process where the release has one.
fn deployment_of<'a>(state: &'a ClusterState, role: &'a str, place: &Destination<'_>) -> &'a str {
    let is_ours = |found: &&InstalledProgram| found.namespace == place.namespace && found.is_one_process();
    state.installed.iter().find(is_ours).map_or(role, |found| found.name.as_str())
}

/// Waits until a role can serve requests of the API server.
fn ready(state: &ClusterState, role: &str, api: &str, place: &Destination<'_>) -> PlanStep {
    let deployment = deployment_of(state, role, place);
    let commands = vec![
        format!("kubectl -n {} rollout status deployment/{deployment} --timeout=5m", place.namespace),
        format!("kubectl wait --for=condition=Available apiservice/{api} --timeout=2m"),
    ];
    step("Wait until it is ready", commands, Vec::new())
}

/// One patch per APIService, so that no request fails in between.
fn switches(
    state: &ClusterState,
    groups: &[&str],
    service: &str,
    ca_of: &str,
    place: &Destination<'_>,
) -> Vec<PlanStep> {
    let apis = state.api_services.iter().filter(|api| groups.contains(&text(api, "/spec/group")));
    let one = |api: &Value| {
        let name = text(api, "/metadata/name");
        let to = json!({"spec": {
            "service": {"namespace": place.namespace, "name": service, "port": 443},
            "insecureSkipTLSVerify": false, "caBundle": "CA"
        }});
        let to = to.to_string().replace("\"CA\"", "\"'\"$CA\"'\"");
        let ca = format!("CA=$(kubectl get apiservice {ca_of} -o jsonpath='{{.spec.caBundle}}')");
        let spec = |field: &str| api.pointer(&format!("/spec/{field}")).cloned().unwrap_or(Value::Null);
        let before = json!({"spec": {
            "service": spec("service"), "insecureSkipTLSVerify": spec("insecureSkipTLSVerify"), "caBundle": spec("caBundle")
        }});
        step(
            &format!("Lead {name} to {service}; requests are answered at every moment"),
            vec![ca, format!("kubectl patch apiservice {name} --type=merge -p '{to}'")],
            vec![format!("kubectl patch apiservice {name} --type=merge -p '{before}'")],
        )
    };
    apis.map(one).collect()
}

/// Whether the API of a group leads to a program. An API whose Service is not known does not.
fn leads_to(state: &ClusterState, group: &str, program: &InstalledProgram) -> bool {
    let apis = state.api_services.iter().filter(|api| text(api, "/spec/group") == group);
    let mut services = apis.filter_map(|api| {
        let (namespace, name) = (text(api, "/spec/service/namespace"), text(api, "/spec/service/name"));
        state.services.iter().find(|service| super::read::is_named(service, namespace, name))
    });
    services.any(|service| program.is_behind(service))
}

/// Lets Helm own the APIServices of a program that were patched, so that upgrades keep them.
fn owned(
    state: &ClusterState,
    program: &InstalledProgram,
    groups: &[&str],
    values: &[&str],
    place: &Destination<'_>,
) -> Option<PlanStep> {
    let apis = state.api_services.iter().filter(|api| groups.contains(&text(api, "/spec/group")));
    let names: Vec<&str> = apis.map(|api| text(api, "/metadata/name")).collect();
    if names.is_empty() {
        return None;
    }
    let set = |to: bool| {
        let options: Vec<String> = values.iter().map(|value| format!("--set {value}={to}")).collect();
        helm(place, &options.join(" "))
    };
    let mut commands = Vec::new();
    if groups.contains(&RESOURCE_METRICS) && program.release.is_empty() {
        // The manifests of metrics-server, and those of kube-prometheus for prometheus-adapter, have a role of the same name.
        commands.push("# If this role is not found, go on: Helm creates it.".to_owned());
        commands.extend(adoption(READER_ROLE, place));
    }
    commands.extend(adoption(&format!("apiservice {}", names.join(" ")), place));
    commands.push(set(true));
    Some(step(
        "Let the release own what now leads to it",
        commands,
        // The annotation keeps the APIService although the release has it no more.
        vec![set(false)],
    ))
}

/// Stops programs. On the way back an API or a webhook leads to them again, as soon as they are ready.
fn stop(programs: &[&InstalledProgram]) -> PlanStep {
    let commands = programs.iter().map(|program| scale(program, 0)).collect();
    let starts = programs.iter().map(|program| start(program));
    let waits = programs.iter().map(|InstalledProgram { namespace, name, .. }| {
        format!("kubectl -n {namespace} rollout status deployment/{name} --timeout=5m")
    });
    step("Stop what is not asked any more", commands, starts.chain(waits).collect())
}

/// Removes the Deployments for good.
fn removal(programs: &[&InstalledProgram]) -> PlanStep {
    let mut commands = Vec::new();
    let mut releases: Vec<(&str, &str)> =
        programs.iter().map(|program| (program.namespace.as_str(), program.release.as_str())).collect();
    releases.retain(|(_, release)| !release.is_empty());
    releases.dedup();
    for (namespace, release) in releases {
        commands.push(format!(
            "kubectl -n {namespace} delete secret -l owner=helm,name={release}   # Helm forgets the release and deletes nothing"
        ));
    }
    for InstalledProgram { namespace, name, .. } in programs {
        commands.push(format!("kubectl -n {namespace} delete deployment {name}"));
    }
    step("When you do not want to go back any more, remove it", commands, Vec::new())
}

#[cfg(test)]
mod tests;
