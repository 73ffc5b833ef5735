#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod plans;

use serde_json::{Value, json};

use super::commands::Destination;
use super::installed::{InstalledProgram, Program};
use super::plan::plans;
use super::problem::{MigrationProblem, SwitchImpact};
use super::read::{AdapterRules, ClusterState};
use super::report::{MetricsApi, report};
use super::{Peer, page};
use crate::live::page::Page;

const PAGE: Page = Page { width: None, colour: false };
pub(super) const PLACE: Destination<'static> = Destination { namespace: "p", chart: "c" };

pub(super) fn deployment(namespace: &str, name: &str, image: &str, args: &[&str]) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
            {"name": "sidecar", "image": "registry/other:1"},
            {"name": name, "image": image, "args": args}
        ]}}
    }})
}

pub(super) fn service(namespace: &str, name: &str, app: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}, "spec": {"selector": {"app": app}}})
}

pub(super) fn api_service(version: &str, group: &str, namespace: &str, service: &str) -> Value {
    json!({"metadata": {"name": format!("{version}.{group}")}, "spec": {
        "group": group, "version": version, "insecureSkipTLSVerify": true,
        "service": {"namespace": namespace, "name": service, "port": 443}
    }, "status": {"conditions": [{"type": "Available", "status": "True"}]}})
}

fn scaled_object(name: &str, trigger: &Value) -> Value {
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"namespace": "shop", "name": name, "managedFields": [{"manager": "x"}]},
        "spec": {"scaleTargetRef": {"name": name}, "triggers": [trigger]},
        "status": {"hpaName": format!("keda-hpa-{name}")}})
}

/// A cluster with all that is replaced.
pub(super) fn cluster() -> ClusterState {
    let programs = [
        deployment(
            "kube-system",
            "metrics-server",
            "registry.k8s.io/metrics-server/metrics-server:v0.8.0",
            &["--cert-dir=/tmp", "--secure-port=10250", "--kubelet-insecure-tls", "--metric-resolution=30s"],
        ),
        deployment(
            "keda",
            "keda-operator",
            "ghcr.io/kedacore/keda:2.20.2@sha256:abc",
            &["--leader-elect", "--zap-log-level=debug", "--enable-cert-rotation=true"],
        ),
        deployment("keda", "keda-metrics", "ghcr.io/kedacore/keda-metrics-apiserver:2.20.2", &[]),
        deployment("web", "shop", "example.com:5000/shop:1", &[]),
    ];
    ClusterState {
        api_services: vec![
            api_service("v1beta1", "metrics.k8s.io", "kube-system", "metrics-server"),
            api_service("v1beta1", "external.metrics.k8s.io", "keda", "keda-metrics"),
        ],
        services: vec![
            service("kube-system", "metrics-server", "metrics-server"),
            service("keda", "keda-metrics", "keda-metrics"),
        ],
        installed: programs.iter().filter_map(InstalledProgram::of_deployment).collect(),
        hpas: Some(3),
        ..ClusterState::default()
    }
}

fn problems(state: &ClusterState) -> Vec<MigrationProblem> {
    report(state, &[]).problems
}

#[test]
fn programs_are_recognized_by_their_images() {
    let state = cluster();
    let found: Vec<(Program, &str)> =
        state.installed.iter().map(|found| (found.program, found.version.as_str())).collect();
    assert_eq!(
        found,
        [
            (Program::MetricsServer, "v0.8.0"),
            (Program::KedaOperator, "2.20.2"),
            (Program::KedaMetricsAdapter, "2.20.2")
        ]
    );
    assert_eq!(state.installed[0].flag("metric-resolution"), Some("30s"));
    assert_eq!(state.installed[0].flag("metric"), None);
}

#[test]
fn keda_is_recognized_by_images_of_red_hat_and_by_its_commands() {
    let program = |image: &str, field: &str, words: &[&str]| {
        let mut object = deployment("openshift-keda", "a", image, &[]);
        object["spec"]["template"]["spec"]["containers"][1][field] = json!(words);
        InstalledProgram::of_deployment(&object).map(|found| found.program)
    };
    let red_hat = "registry.redhat.io/custom-metrics-autoscaler/custom-metrics-autoscaler";
    let digest = format!("@sha256:{}", "0".repeat(64));
    for (end, expected) in [
        ("-rhel9", Some(Program::KedaOperator)),
        ("-rhel8", Some(Program::KedaOperator)),
        ("-adapter-rhel9", Some(Program::KedaMetricsAdapter)),
        ("-admission-webhooks-rhel9", Some(Program::KedaWebhooks)),
        // The operator that installs KEDA, and what is no image of KEDA.
        ("-rhel9-operator", None),
        ("-operator", None),
        ("-operator-rhel9", None),
        ("-operator-bundle", None),
        ("-rhel", None),
    ] {
        assert_eq!(program(&format!("{red_hat}{end}{digest}"), "command", &[]), expected, "{end}");
    }
    let mirror = "registry.example.com/team/autoscaling:2.17.2";
    for (first, expected) in [
        ("/keda", Some(Program::KedaOperator)),
        ("/keda-adapter", Some(Program::KedaMetricsAdapter)),
        ("/keda-admission-webhooks", Some(Program::KedaWebhooks)),
        ("/manager", None),
        ("--leader-elect", None),
    ] {
        for field in ["command", "args"] {
            assert_eq!(program(mirror, field, &[first, "--leader-elect"]), expected, "{field}: {first}");
        }
    }
    // Ours takes the command of KEDA, too.
    assert_eq!(program("registry.example.com/plimsoll:1", "args", &["/keda"]), Some(Program::Plimsoll));
    let mut object = deployment("keda", "operator", mirror, &["/keda", "--watch-namespaces=a"]);
    object["spec"]["template"]["spec"]["containers"][1]["env"] = json!([{"name": "A", "value": "1"}]);
    let found = InstalledProgram::of_deployment(&object).unwrap();
    assert_eq!((found.version.as_str(), found.env().len()), ("2.17.2", 1));
}

#[test]
fn operator_that_installs_keda_is_named() {
    let owned = |name: &str| {
        let mut state = cluster();
        let owner = json!([{"apiVersion": "keda.sh/v1alpha1", "kind": "KedaController", "name": name}]);
        let of_keda = state.installed.iter_mut().filter(|found| found.program.peer() == Some(Peer::Keda));
        of_keda.for_each(|found| found.raw["metadata"]["ownerReferences"] = owner.clone());
        state
    };
    let plan = |state: &ClusterState| page::plans(&plans(state, Some(Peer::Keda), &PLACE), false);
    assert!(problems(&cluster()).is_empty() && !plan(&cluster()).contains("KedaController"));
    let state = owned("keda");
    let found = problems(&state);
    let shown: Vec<_> =
        found.iter().map(|one| (one.object.as_str(), one.field.as_str(), one.impact)).collect();
    let field = "metadata.ownerReferences";
    assert_eq!(
        shown,
        [
            ("keda/keda-metrics", field, SwitchImpact::Differs),
            ("keda/keda-operator", field, SwitchImpact::Differs)
        ]
    );
    assert!(found[0].message.contains("KedaController keda/keda "), "{found:?}");
    let text = plan(&state);
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
    // Before anything that it would undo.
    assert!(
        at("KedaController keda/keda,") < at("kubectl -n keda scale deployment keda-operator --replicas=0")
    );
    // The name of an owner is any text.
    let text = plan(&owned("a\nrm -rf /"));
    assert!(text.contains("KedaController keda/,") && !text.contains("\nrm "), "{text}");
}

#[test]
fn variables_of_sidecars_are_not_those_of_the_program() {
    let mut object = deployment("keda", "operator", "x/keda:1", &[]);
    let containers = &mut object["spec"]["template"]["spec"]["containers"];
    containers[0]["env"] = json!([{"name": "A", "value": "1"}]);
    containers[1]["env"] = json!([{"name": "B", "value": "2"}]);
    let program = InstalledProgram::of_deployment(&object).unwrap();
    assert_eq!(program.env(), [json!({"name": "B", "value": "2"})]);
}

#[test]
fn file_of_a_pod_leads_to_its_config_map() {
    let mut object =
        deployment("m", "a", "x/prometheus-adapter:v1", &["--config", "/etc/adapter/config.yaml"]);
    object["spec"]["template"]["spec"]["volumes"] = json!([{"name": "c", "configMap": {"name": "rules"}}]);
    object["spec"]["template"]["spec"]["containers"][1]["volumeMounts"] =
        json!([{"name": "c", "mountPath": "/etc/adapter/"}]);
    let adapter = InstalledProgram::of_deployment(&object).unwrap();
    let file = adapter.flag("config").unwrap();
    assert_eq!(adapter.config_map_of(file), Some(("rules", "config.yaml".to_owned())));
    assert_eq!(adapter.config_map_of("/etc/other.yaml"), None);
}

#[test]
fn healthy_installation_breaks_nothing() {
    let mut state = cluster();
    let trigger = json!({"type": "cron", "metadata":
        {"timezone": "UTC", "start": "0 8 * * *", "end": "0 18 * * *", "desiredReplicas": "3"}});
    state.keda_objects = vec![scaled_object("orders", &trigger)];
    let report = report(&state, &[]);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(!report.breaks());
    let owners: Vec<&str> = report.apis.iter().map(MetricsApi::owner_title).collect();
    assert_eq!(owners, ["metrics-server", "KEDA's metrics adapter"]);
    let text = page::report(&report, PAGE);
    assert!(text.contains("Objects: 3 HorizontalPodAutoscaler, 1 ScaledObject\n"), "{text}");
    assert!(
        text.contains("  APIService v1beta1.metrics.k8s.io leads to plimsoll-metrics instead of kube-system/metrics-server\n"),
        "{text}"
    );
    assert!(text.ends_with("\nnothing would break; the commands: plimsoll migrate plan\n"), "{text}");
}

#[test]
fn broken_triggers_are_named() {
    let mut state = cluster();
    state.keda_objects = vec![
        scaled_object("unknown", &json!({"type": "kafak", "metadata": {}})),
        scaled_object(
            "number",
            &json!({"type": "cpu", "metricType": "Utilization", "metadata": {"value": "many"}}),
        ),
        scaled_object(
            "local",
            &json!({"type": "metrics-api", "metadata":
            {"url": "http://localhost:8080/q", "valueLocation": "a", "targetValue": "1"}}),
        ),
        scaled_object(
            "spare",
            &json!({"type": "cron", "metadata": {"timezone": "UTC", "start": "0 8 * * *", "end": "0 18 * * *",
            "desiredReplicas": "3", "desiredReplica": "1"}}),
        ),
    ];
    let found = problems(&state);
    let of = |name: &str| -> Vec<(SwitchImpact, &str)> {
        let object = format!("ScaledObject shop/{name}");
        found.iter().filter(|one| one.object == object).map(|one| (one.impact, one.field.as_str())).collect()
    };
    assert!(of("unknown").contains(&(SwitchImpact::Breaks, "spec.triggers[0].type")), "{found:?}");
    assert!(of("number").iter().any(|(impact, _)| *impact == SwitchImpact::Breaks), "{found:?}");
    assert!(of("local").contains(&(SwitchImpact::Breaks, "spec.triggers[0].metadata[url]")), "{found:?}");
    assert_eq!(of("spare"), [(SwitchImpact::Differs, "spec.triggers[0].metadata[desiredReplica]")]);
    assert!(report(&state, &[]).breaks());
    assert!(!report(&state, &[Peer::MetricsServer]).breaks());
}

#[test]
fn release_of_keda_decides_about_parameters() {
    let trigger = json!({"type": "temporal", "metadata":
        {"endpoint": "h:7233", "taskQueue": "q", "includeRunningWorkflowCount": "true"}});
    let mut state = cluster();
    state.keda_objects = vec![scaled_object("flow", &trigger)];
    // KEDA 2.20 ignores the parameter, and so do we.
    let found = problems(&state);
    let impacts: Vec<_> = found.iter().map(|one| (one.impact, one.field.as_str())).collect();
    assert_eq!(impacts, [(SwitchImpact::Differs, "spec.triggers[0].metadata[includeRunningWorkflowCount]")]);
    let plan = |state: &ClusterState| page::plans(&plans(state, Some(Peer::Keda), &PLACE), false);
    assert!(!plan(&state).contains("--keda-profile"));
    for program in &mut state.installed {
        program.version = "2.21.0".to_owned();
    }
    assert_eq!(problems(&state).len(), 0, "{:?}", problems(&state));
    assert!(plan(&state).contains("--keda-profile=2.21"));
}

#[test]
fn credentials_of_the_operator_need_settings() {
    let mut state = cluster();
    let auth = |spec: Value| {
        json!({"kind": "TriggerAuthentication", "apiVersion": "keda.sh/v1alpha1",
        "metadata": {"namespace": "shop", "name": "a"}, "spec": spec})
    };
    state.keda_objects = vec![auth(json!({"boundServiceAccountToken":
        [{"parameter": "token", "serviceAccountName": "s"}]}))];
    let is_named =
        |found: &[MigrationProblem]| found.iter().any(|one| one.field == "spec.boundServiceAccountToken");
    assert!(is_named(&problems(&state)));
    let operator = state.installed.iter_mut().find(|found| found.program == Program::KedaOperator).unwrap();
    operator.variables.push("KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES".into());
    assert!(!is_named(&problems(&state)));
}

#[test]
fn check_reads_release_and_variables_of_the_operator_whose_namespace_serves_the_api() {
    let mut state = cluster();
    let flow = json!({"type": "temporal", "metadata":
        {"endpoint": "h:7233", "taskQueue": "q", "includeRunningWorkflowCount": "true"}});
    let bound = json!({"boundServiceAccountToken": [{"parameter": "token", "serviceAccountName": "s"}]});
    let auth = json!({"kind": "TriggerAuthentication", "apiVersion": "keda.sh/v1alpha1",
        "metadata": {"namespace": "shop", "name": "a"}, "spec": bound});
    state.keda_objects = vec![scaled_object("flow", &flow), auth];
    let found = |state: &ClusterState| -> Vec<String> {
        let of_objects = |one: &MigrationProblem| one.object.contains("shop/");
        problems(state).into_iter().filter(of_objects).map(|one| one.field).collect()
    };
    let before = found(&state);
    for field in ["spec.triggers[0].metadata[includeRunningWorkflowCount]", "spec.boundServiceAccountToken"] {
        assert!(before.iter().any(|found| found == field), "{field}: {before:?}");
    }
    // A tenant's copy of the operator, which the list of Deployments has first.
    let mut copy = deployment("a-tenant", "keda", "x/keda:2.21.0", &[]);
    copy["spec"]["template"]["spec"]["containers"][1]["env"] =
        json!([{"name": "KEDA_SERVICE_ACCOUNT_TOKEN_AUDIENCES", "value": "- {audience: a}"}]);
    state.installed.insert(0, InstalledProgram::of_deployment(&copy).unwrap());
    assert_eq!(found(&state), before);
}

#[test]
fn identities_and_targets_that_the_chart_does_not_know_are_named() {
    let mut state = cluster();
    let queue = json!({"type": "aws-sqs-queue", "authenticationRef": {"name": "a"}, "metadata":
        {"queueURL": "https://sqs.eu-west-1.amazonaws.com/1/q", "queueLength": "5", "awsRegion": "eu-west-1"}});
    let mut own = scaled_object("own", &queue);
    own["spec"]["triggers"][0]["metadata"]["identityOwner"] = json!("operator");
    let mut rollout = scaled_object("rollout", &queue);
    rollout["spec"]["scaleTargetRef"] =
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "rollout"});
    rollout["status"]["scaleTargetGVKR"] = json!({"group": "argoproj.io", "resource": "rollouts"});
    let mut plain = scaled_object("plain", &queue);
    plain["status"]["scaleTargetGVKR"] = json!({"group": "apps", "resource": "deployments"});
    let auth = |name: &str, spec: Value| {
        json!({"kind": "TriggerAuthentication", "apiVersion": "keda.sh/v1alpha1",
        "metadata": {"namespace": "shop", "name": name}, "spec": spec})
    };
    state.keda_objects = vec![
        own,
        rollout,
        plain,
        auth("a", json!({"podIdentity": {"provider": "aws"}})),
        auth("none", json!({"podIdentity": {"provider": "none"}})),
        auth(
            "vault",
            json!({"azureKeyVault": {"vaultUri": "https://v.vault.azure.net",
            "podIdentity": {"provider": "azure-workload"}, "secrets": [{"parameter": "p", "name": "n"}]}}),
        ),
    ];
    let all = problems(&state);
    let of = |object: &str, field: &str| {
        let found = all.iter().find(|one| one.object == object && one.field == field);
        found.map(|one| one.impact)
    };
    let (breaks, differs) = (Some(SwitchImpact::Breaks), Some(SwitchImpact::Differs));
    for (object, field, impact) in [
        ("ScaledObject shop/own", "spec.triggers[0].metadata[identityOwner]", breaks),
        ("ScaledObject shop/plain", "spec.triggers[0].metadata[identityOwner]", None),
        ("ScaledObject shop/rollout", "spec.scaleTargetRef", differs),
        ("ScaledObject shop/plain", "spec.scaleTargetRef", None),
        ("TriggerAuthentication shop/a", "spec.podIdentity", breaks),
        ("TriggerAuthentication shop/none", "spec.podIdentity", None),
        ("TriggerAuthentication shop/vault", "spec.azureKeyVault.podIdentity", breaks),
    ] {
        assert_eq!(of(object, field), impact, "{object}: {all:?}");
    }
}

#[test]
fn networks_of_nodes_and_owners_of_deployments_are_named() {
    let named = |change: &dyn Fn(&mut Value)| {
        let mut object = deployment("kube-system", "metrics-server", "x/metrics-server:1", &[]);
        change(&mut object);
        let installed = InstalledProgram::of_deployment(&object).into_iter().collect();
        let found = problems(&ClusterState { installed, ..ClusterState::default() });
        assert!(found.iter().all(|one| one.impact == SwitchImpact::Differs), "{found:?}");
        found.into_iter().map(|one| one.field).collect::<Vec<String>>()
    };
    let owned = |field: &str, key: &str, value: &str| {
        named(&|object| object["metadata"][field] = json!({key: value}))
    };
    assert_eq!(named(&|_| {}), [""; 0]);
    let on_node = |object: &mut Value| object["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    assert_eq!(named(&on_node), ["spec.template.spec.hostNetwork"]);
    let addon = "addonmanager.kubernetes.io/mode";
    assert_eq!(owned("labels", addon, "Reconcile"), [format!("metadata.labels[{addon}]")]);
    assert_eq!(owned("labels", addon, "EnsureExists"), [""; 0]);
    let argo = "argocd.argoproj.io/tracking-id";
    assert_eq!(owned("annotations", argo, "a:b"), [format!("metadata.annotations[{argo}]")]);
}

#[test]
fn unknown_flags_and_rules_that_do_not_compile_break() {
    let mut state = cluster();
    let adapter = deployment(
        "m",
        "adapter",
        "x/prometheus-adapter:v1",
        &["--no-such-flag", "--prometheus-ca-file=/ca.pem"],
    );
    state.installed.push(InstalledProgram::of_deployment(&adapter).unwrap());
    let text =
        "rules:\n- seriesQuery: 'a'\n  metricsQuery: '<<.Series'\n  resources: {template: '<<.Resource>>'}\n"
            .to_owned();
    let rules = AdapterRules { config_map: "c".into(), key: "config.yaml".into(), text };
    state.rules.push(("m/adapter".into(), rules));
    let found = problems(&state);
    let has =
        |impact, field: &str| found.iter().any(|one| one.impact == impact && one.field.starts_with(field));
    assert!(has(SwitchImpact::Breaks, "--no-such-flag"), "{found:?}");
    assert!(has(SwitchImpact::Differs, "--prometheus-ca-file"), "{found:?}");
    assert!(has(SwitchImpact::Breaks, "c/config.yaml:"), "{found:?}");
}

/// A switch leaves them as they are.
#[test]
fn copies_of_tenants_break_nothing() {
    let state = |namespace: &str| {
        let mut state = cluster();
        let adapter = deployment("m", "adapter", "x/prometheus-adapter:v1", &[]);
        let copies = [
            deployment("a", "adapter", "x/prometheus-adapter:v1", &["--no-such-flag"]),
            deployment("a", "server", "x/metrics-server:1", &["--no-such-flag"]),
        ];
        let programs = copies.iter().chain([&adapter]).filter_map(InstalledProgram::of_deployment);
        state.installed.splice(0..0, programs);
        state.services.push(service(namespace, "adapter", "adapter"));
        state.api_services.push(api_service("v1beta1", "custom.metrics.k8s.io", namespace, "adapter"));
        let text =
            "rules:\n- {seriesQuery: a, metricsQuery: '<<.Series', resources: {template: '<<.Resource>>'}}\n";
        let rules = AdapterRules { config_map: "c".into(), key: "config.yaml".into(), text: text.to_owned() };
        state.rules.push(("a/adapter".into(), rules));
        state
    };
    let found = problems(&state("m"));
    assert!(found.is_empty(), "{found:?}");
    // The API leads to the copy.
    let found = problems(&state("a"));
    assert!(found.iter().all(|one| one.from == Peer::PrometheusAdapter), "{found:?}");
    let has = |field: &str| found.iter().any(|one| one.field.starts_with(field));
    assert!(has("--no-such-flag") && has("c/config.yaml:"), "{found:?}");
}

#[test]
fn api_of_another_server_would_be_lost() {
    let mut state = cluster();
    state.api_services.push(api_service("v1beta1", "custom.metrics.k8s.io", "dd", "datadog"));
    let found = problems(&state);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].impact, found[0].object.as_str()),
        (SwitchImpact::Breaks, "APIService v1beta1.custom.metrics.k8s.io")
    );
}
