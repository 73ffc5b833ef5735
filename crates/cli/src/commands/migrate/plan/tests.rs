#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::super::tests::{PLACE, api_service, cluster, deployment, service};
use super::*;

/// The plan for one peer.
fn plan(state: &ClusterState, from: Peer) -> SwitchPlan {
    plans(state, Some(from), &PLACE).remove(0)
}

#[test]
fn helm_gets_the_objects_that_the_manifests_of_metrics_server_have_too() {
    let mut state = cluster();
    let owned = |state: &ClusterState| {
        let step = plan(state, Peer::MetricsServer)
            .steps
            .into_iter()
            .find(|step| step.title.starts_with("Let the release own"))
            .unwrap();
        step.commands
    };
    let release = "helm.sh/resource-policy=keep meta.helm.sh/release-name=plimsoll meta.helm.sh/release-namespace=p --overwrite";
    let label = "app.kubernetes.io/managed-by=Helm --overwrite";
    let of = |objects: &str| {
        [format!("kubectl annotate {objects} {release}"), format!("kubectl label {objects} {label}")]
    };
    let api = of("apiservice v1beta1.metrics.k8s.io");
    let role = of("clusterrole system:aggregated-metrics-reader");
    let commands = owned(&state);
    assert!(commands[0].starts_with("# "), "{commands:?}");
    assert_eq!((&commands[1..3], &commands[3..5]), (role.as_slice(), api.as_slice()));
    // The role of its chart has another name.
    state.installed[0].release = "metrics-server".to_owned();
    assert_eq!(owned(&state)[..2], api);
}

#[test]
fn controller_is_left_out_unless_the_release_has_it() {
    let leaves_it_out = |namespace: &str, args: &[&str]| {
        let programs = [
            deployment("m", "adapter", "x/prometheus-adapter:v1", &[]),
            deployment(namespace, "plimsoll", "x/plimsoll:1", args),
        ];
        let mut state = cluster();
        state.installed.extend(programs.iter().filter_map(InstalledProgram::of_deployment));
        [Peer::MetricsServer, Peer::PrometheusAdapter, Peer::Keda].map(|from| {
            let steps = plan(&state, from).steps;
            let mut commands = steps.iter().flat_map(|step| &step.commands);
            let values = commands.find(|command| command.starts_with("cat > ")).unwrap();
            values.contains("controller:\n  enabled: false\n")
        })
    };
    let left_out: [&[&str]; 3] = [&["metrics"], &["operator"], &["run", "--roles=metrics,operator"]];
    for args in left_out {
        assert_eq!(leaves_it_out(PLACE.namespace, args), [true; 3], "{args:?}");
    }
    // The values would remove it.
    let kept: [&[&str]; 3] =
        [&["controller", "--mode=shadow"], &["run", "--roles=controller,metrics"], &["run"]];
    for args in kept {
        assert_eq!(leaves_it_out(PLACE.namespace, args), [false; 3], "{args:?}");
        // It is not in this release.
        assert_eq!(leaves_it_out("other", args), [true; 3], "{args:?}");
    }
    let state = cluster();
    let install = plan(&state, Peer::Hpa).steps.remove(0);
    assert!(install.commands[0].contains("controller:\n  enabled: true\n"), "{install:?}");
}

/// Nobody would scale where Kubernetes' controller is stopped.
#[test]
fn controller_that_acts_does_not_go_back_to_shadow_mode() {
    let steps = |namespace: &str, args: &[&str]| {
        let mut state = cluster();
        let ours = deployment(namespace, "plimsoll", "x/plimsoll:1", args);
        state.installed.extend(InstalledProgram::of_deployment(&ours));
        plan(&state, Peer::Hpa).steps
    };
    let stops = |steps: &[PlanStep]| {
        steps.iter().flat_map(|step| &step.commands).any(|command| command.contains("mode: shadow"))
    };
    let compared: [&[&str]; 3] =
        [&["controller", "--mode=shadow"], &["controller", "--mode", "dry-run"], &["run", "--roles=metrics"]];
    for args in compared {
        assert!(stops(&steps(PLACE.namespace, args)), "{args:?}");
    }
    let acting: [(&[&str], &str); 3] = [
        (&["controller", "--mode=active"], "controller.mode=shadow"),
        (&["controller"], "controller.mode=shadow"),
        // One process has no shadow mode.
        (&["run", "--roles=controller,metrics"], "controller.enabled=false"),
    ];
    for (args, idle) in acting {
        let found = steps(PLACE.namespace, args);
        assert!(!stops(&found), "{args:?}: {found:?}");
        let back: Vec<&String> = found.iter().rev().flat_map(|step| &step.back).collect();
        assert!(back[0].ends_with(&format!("--set {idle}")), "{args:?}: {back:?}");
        assert!(stops(&steps("other", args)), "{args:?}");
    }
}

/// With singleProcess.enabled, the roles have no Deployments of their own.
#[test]
fn plan_waits_for_the_deployment_that_the_release_has() {
    let waits = |namespace: &str, from: Peer| {
        let programs = [
            deployment("m", "adapter", "x/prometheus-adapter:v1", &[]),
            deployment(namespace, "plimsoll", "x/plimsoll:1", &["run", "--roles=metrics"]),
        ];
        let mut state = cluster();
        state.installed.extend(programs.iter().filter_map(InstalledProgram::of_deployment));
        let steps = plan(&state, from).steps;
        let mut commands = steps.into_iter().flat_map(|step| step.commands);
        let wait = commands.find(|command| command.contains(" rollout status ")).unwrap();
        wait.split_whitespace().find_map(|word| word.strip_prefix("deployment/")).unwrap().to_owned()
    };
    for (from, role) in [
        (Peer::MetricsServer, "plimsoll-metrics"),
        (Peer::PrometheusAdapter, "plimsoll-metrics"),
        (Peer::Keda, "plimsoll-operator"),
        (Peer::Hpa, "plimsoll-controller"),
    ] {
        assert_eq!(waits(PLACE.namespace, from), "plimsoll", "{from:?}");
        assert_eq!(waits("other", from), role, "{from:?}");
    }
}

#[test]
fn only_a_webhook_that_exists_is_saved_and_switched() {
    let mut state = cluster();
    let is_named = |state: &ClusterState| {
        let plan = plan(state, Peer::Keda);
        let mut commands = plan.steps.iter().flat_map(|step| &step.commands);
        commands.any(|command| command.contains("validatingwebhookconfiguration"))
    };
    assert!(!is_named(&state));
    state.webhook = Some(json!({}));
    assert!(is_named(&state));
}

/// A webhook with failurePolicy Fail, and the API, need what they lead to.
#[test]
fn parts_of_keda_stop_after_the_switch_and_are_ready_before_the_way_back() {
    let mut state = cluster();
    state.webhook = Some(json!({}));
    let webhooks = deployment("keda", "hooks", "x/keda-admission-webhooks:1", &[]);
    state.installed.extend(InstalledProgram::of_deployment(&webhooks));
    let order = |commands: &[&String], parts: &[&str]| {
        let at = |part: &&str| commands.iter().position(|command| command.contains(*part));
        let found: Vec<Option<usize>> = parts.iter().map(at).collect();
        assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?} {commands:?}");
    };
    let steps = plan(&state, Peer::Keda).steps;
    let commands: Vec<&String> = steps.iter().flat_map(|step| &step.commands).collect();
    order(&commands, &["operator.webhook.enabled=true", "scale deployment hooks --replicas=0"]);
    let back: Vec<&String> = steps.iter().rev().flat_map(|step| &step.back).collect();
    order(
        &back,
        &["scale deployment hooks --replicas=2", "status deployment/hooks ", "apply -f keda-webhook.yaml"],
    );
    order(&back, &["scale deployment keda-metrics ", "status deployment/keda-metrics ", "patch apiservice"]);
    // No step without commands.
    state.installed.retain(|found| found.program == Program::KedaOperator);
    let steps = plan(&state, Peer::Keda).steps;
    assert!(steps.iter().all(|step| !step.commands.is_empty()), "{steps:?}");
}

#[test]
fn operator_keeps_what_clouds_webhooks_and_custom_targets_need() {
    let mut state = cluster();
    let values = |state: &ClusterState| {
        let steps = plan(state, Peer::Keda).steps;
        let mut commands = steps.into_iter().flat_map(|step| step.commands);
        commands.find(|command| command.starts_with("cat > ")).unwrap()
    };
    let wanted = [
        "eks.amazonaws.com/role-arn",
        "azure.workload.identity/use",
        "failurePolicy: Fail",
        "readTargets:",
        "rollouts",
        "restrictSecretAccess: true",
    ];
    let without = values(&state);
    assert!(!wanted.iter().any(|text| without.contains(text)), "{without}");

    let operator = state.installed.iter_mut().find(|found| found.program == Program::KedaOperator).unwrap();
    let pod = &mut operator.raw["spec"]["template"];
    pod["metadata"]["labels"]["azure.workload.identity/use"] = json!("true");
    pod["spec"]["serviceAccountName"] = json!("keda-operator");
    pod["spec"]["containers"][1]["env"] = json!([{"name": "KEDA_RESTRICT_SECRET_ACCESS", "value": "true"}]);
    let annotations = json!({"eks.amazonaws.com/role-arn": "arn:x", "meta.helm.sh/release-name": "keda"});
    let account = |namespace: &str, name: &str, annotations: &Value| json!({"metadata": {"namespace": namespace, "name": name, "annotations": annotations}});
    state.keda_accounts = vec![
        // A tenant's copy of the operator, whose namespace comes first, has an account, too.
        account("a", "keda-operator", &json!({})),
        // So has a second operator in the same namespace.
        account("keda", "keda-next", &json!({"eks.amazonaws.com/role-arn": "arn:other"})),
        account("keda", "keda-operator", &annotations),
    ];
    state.webhook = Some(json!({"webhooks": [{"failurePolicy": "Fail"}]}));
    let target = |group: &str, resource: &str| json!({"kind": "ScaledObject", "status": {"scaleTargetGVKR": {"group": group, "resource": resource}}});
    state.keda_objects = vec![
        target("argoproj.io", "rollouts"),
        target("argoproj.io", "rollouts"),
        target("apps", "deployments"),
        target("a.b", "*"),
        target("", "secrets"),
    ];
    let kept = values(&state);
    assert!(wanted.iter().all(|text| kept.contains(text)), "{kept}");
    assert_eq!(kept.matches("rollouts").count(), 1, "{kept}");
    for text in ["meta.helm.sh", "deployments", "a.b", "secrets", "arn:other"] {
        assert!(!kept.contains(text), "{text}: {kept}");
    }
    // The chart sets the variable.
    assert!(!kept.contains("KEDA_RESTRICT_SECRET_ACCESS"), "{kept}");

    // An account of another installation.
    state.keda_accounts[2]["metadata"]["namespace"] = json!("other");
    assert!(!values(&state).contains("role-arn"));
}

#[test]
fn resource_metrics_of_an_unknown_server_stay_with_it() {
    let adapter = deployment("m", "adapter", "x/prometheus-adapter:v1", &[]);
    let leaves_it = |service_name: &str, from: Option<Peer>| {
        let state = ClusterState {
            installed: InstalledProgram::of_deployment(&adapter).into_iter().collect(),
            api_services: vec![
                api_service("v1beta1", "metrics.k8s.io", "p", service_name),
                api_service("v1beta1", "custom.metrics.k8s.io", "m", "adapter"),
            ],
            services: vec![service("m", "adapter", "adapter")],
            ..ClusterState::default()
        };
        let mut all = plans(&state, from, &PLACE).into_iter();
        let plan = all.find(|plan| plan.from == Peer::PrometheusAdapter).unwrap();
        plan.steps[0].commands[0].contains("    resource: false\n")
    };
    assert!(leaves_it("managed", Some(Peer::PrometheusAdapter)) && leaves_it("managed", None));
    assert!(!leaves_it("plimsoll-metrics", Some(Peer::PrometheusAdapter)), "Helm would delete it");
}
