//! The steps of a switch from KEDA.

use std::collections::BTreeSet;

use api::keda::KedaProfile;
use serde_json::{Value, json};

use super::{
    EXTERNAL_METRICS, OPERATOR_DECISIONS, PlanStep, install, leads_to, owned, ready, removal, role_values,
    step, stop, switches,
};
use crate::commands::migrate::Peer;
use crate::commands::migrate::commands::{Destination, gone, helm, scale, start};
use crate::commands::migrate::installed::{InstalledProgram, Program, text};
use crate::commands::migrate::objects::custom_target;
use crate::commands::migrate::read::{ClusterState, WEBHOOK, is_named};
use crate::commands::migrate::values::{ConvertedValues, keda_arguments, keda_variables};

/// The variable with the namespace of the Secrets of ClusterTriggerAuthentications.
const CLUSTER_OBJECTS: &str = "KEDA_CLUSTER_OBJECT_NAMESPACE";
/// How annotations of service accounts and labels of pods begin by which clouds give an identity to pods.
const IDENTITY_PREFIXES: [&str; 3] = ["azure.workload.identity/", "eks.amazonaws.com/", "iam.gke.io/"];
/// KEDA's definitions.
const KEDA_DEFINITIONS: &str = "scaledobjects.keda.sh scaledjobs.keda.sh triggerauthentications.keda.sh \
     clustertriggerauthentications.keda.sh cloudeventsources.eventing.keda.sh clustercloudeventsources.eventing.keda.sh";

pub(super) fn steps(
    state: &ClusterState,
    operator: &InstalledProgram,
    place: &Destination<'_>,
) -> Vec<PlanStep> {
    let mut values = role_values(state, place);
    keda_arguments(&mut values, "args", &operator.arguments);
    let variables = operator.env();
    keda_variables(&mut values, "env", &variables);
    // The Secrets of ClusterTriggerAuthentications stay where KEDA's operator reads them.
    let is_given = |one: &Value| {
        text(one, "/name") == CLUSTER_OBJECTS
            && (one.get("valueFrom").is_some() || !text(one, "/value").is_empty())
    };
    if operator.namespace != place.namespace && !variables.iter().any(is_given) {
        values.push("operator.env", json!({"name": CLUSTER_OBJECTS, "value": operator.namespace}));
    }
    for source in operator.env_from() {
        values.lose(&format!("envFrom: {source}"), "list the variables that you need in operator.env");
    }
    let profile = operator.keda_profile().unwrap_or_default();
    if profile != KedaProfile::default() {
        values.push("operator.extraArgs", json!(format!("--keda-profile={profile}")));
    }
    values.set("operator.enabled", json!(true));
    values.set("operator.apiService", json!(false));
    values.set("operator.webhook", json!({"enabled": false}));
    if state.webhook.as_ref().is_some_and(must_answer) {
        values.set("operator.webhook.failurePolicy", json!("Fail"));
    }
    values.set("crds.keda", json!(false));
    let targets: BTreeSet<(&str, &str)> = state.keda_objects.iter().filter_map(custom_target).collect();
    for (group, resource) in targets {
        values.push("operator.readTargets", json!({"apiGroups": [group], "resources": [resource]}));
    }
    set_identity(&mut values, state, operator);
    let is_part = |found: &&InstalledProgram| {
        found.program.peer() == Some(Peer::Keda) && found.namespace == operator.namespace
    };
    let parts: Vec<&InstalledProgram> = state.installed.iter().filter(is_part).collect();
    // The metrics of another program would be lost by a switch.
    let is_of_other = |found: &&InstalledProgram| {
        found.program.peer() != Some(Peer::Keda) && leads_to(state, EXTERNAL_METRICS, found)
    };
    let other = state.installed.iter().find(is_of_other);
    let groups: Vec<&str> = if other.is_some() { Vec::new() } else { vec![EXTERNAL_METRICS] };
    let mut save = vec![
        "kubectl get scaledobjects,scaledjobs,triggerauthentications -A -o yaml > keda-objects.yaml"
            .to_owned(),
        "echo --- >> keda-objects.yaml".to_owned(),
        "kubectl get clustertriggerauthentications -o yaml >> keda-objects.yaml".to_owned(),
    ];
    if state.webhook.is_some() {
        save.push(format!(
            "kubectl get validatingwebhookconfiguration {WEBHOOK} -o yaml > keda-webhook.yaml"
        ));
    }
    let mut steps = vec![step("Save KEDA's objects", save, Vec::new())];
    steps.extend(operator.keda_controller().map(|controller| uninstall_installer(&controller)));
    steps.extend([
        step(
            "Stop KEDA's operator; until the next two steps are done, counts stay as they are and nothing is activated",
            vec![scale(operator, 0), gone(operator)],
            vec![start(operator)],
        ),
        install("Start the operator; it adopts the HPAs that are there", "operator", &values, place),
        ready(state, "plimsoll-operator", OPERATOR_DECISIONS, place),
    ]);
    steps.extend(switches(state, &groups, "plimsoll-operator", OPERATOR_DECISIONS, place));
    if let Some(other) = other {
        let remedy = format!(
            "# {} ({}) serves it; docs/federation.md says how one server serves the metrics of both",
            other.program.title(),
            other.shown()
        );
        steps.push(step("Decide who serves external.metrics.k8s.io", vec![remedy], Vec::new()));
    }
    let watch = vec!["kubectl get scaledobjects,scaledjobs -A".into(), "plimsoll get -A".into()];
    steps.push(step("See that objects are ready", watch, Vec::new()));
    if state.webhook.is_some() {
        steps.push(step(
            "Lead the webhook to the operator",
            vec![
                format!("kubectl delete validatingwebhookconfiguration {WEBHOOK}"),
                helm(place, "--set operator.webhook.enabled=true"),
            ],
            vec![
                helm(place, "--set operator.webhook.enabled=false"),
                "kubectl apply -f keda-webhook.yaml".into(),
            ],
        ));
    }
    // KEDA's webhooks stop after the switch of the webhook, because until then the API server may refuse objects without them.
    let rest: Vec<&InstalledProgram> =
        parts.iter().copied().filter(|part| part.program != Program::KedaOperator).collect();
    if !rest.is_empty() {
        steps.push(stop(&rest));
    }
    steps.extend(owned(state, operator, &groups, &["operator.apiService"], place));
    let keep = format!("kubectl annotate crd {KEDA_DEFINITIONS} helm.sh/resource-policy=keep --overwrite");
    let mut removed = removal(&parts);
    removed.title.push_str(
        ". Do not use helm uninstall: it deletes KEDA's definitions, and with them every ScaledObject and its HPA",
    );
    removed.commands.insert(0, keep);
    steps.push(removed);
    steps
}

/// The step for the operator of a KedaController, which OLM has installed.
fn uninstall_installer(controller: &str) -> PlanStep {
    step(
        &format!(
            "Uninstall the operator of KedaController {controller}, which would start KEDA again and lead the API back to it"
        ),
        vec![
            "# delete its Subscription and ClusterServiceVersion; keep the KedaController, whose deletion deletes the APIService, too"
                .to_owned(),
        ],
        vec!["# install that operator again".to_owned()],
    )
}

/// Whether objects are refused while a webhook does not answer.
fn must_answer(configuration: &Value) -> bool {
    let webhooks = configuration.pointer("/webhooks").and_then(Value::as_array);
    webhooks.is_some_and(|all| all.iter().any(|webhook| text(webhook, "/failurePolicy") == "Fail"))
}

/// Gives the operator the annotations and labels by which a cloud gives KEDA's operator its identity.
fn set_identity(values: &mut ConvertedValues, state: &ClusterState, operator: &InstalledProgram) {
    // Two operators in one namespace may have an account each.
    let name = text(&operator.raw, "/spec/template/spec/serviceAccountName");
    let mut accounts = state.keda_accounts.iter();
    let account = accounts.find(|account| is_named(account, &operator.namespace, name));
    let annotations = account.and_then(|account| account.pointer("/metadata/annotations"));
    let labels = operator.raw.pointer("/spec/template/metadata/labels");
    for (path, found) in
        [("operator.serviceAccount.annotations", annotations), ("operator.podLabels", labels)]
    {
        for (key, value) in found.and_then(Value::as_object).into_iter().flatten() {
            if IDENTITY_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
                values.set(path, json!({key.as_str(): value}));
            }
        }
    }
}
