//! Plans of whole switches.

use super::*;

#[test]
fn plan_switches_by_one_patch_and_leads_back_to_what_is_there() {
    let state = cluster();
    let place = Destination { namespace: "plimsoll-system", chart: "charts/plimsoll" };
    let plan = plans(&state, Some(Peer::MetricsServer), &place).remove(0);
    let switch = plan.steps.iter().find(|step| step.title.starts_with("Lead ")).unwrap();
    assert_eq!(
        switch.commands[1],
        "kubectl patch apiservice v1beta1.metrics.k8s.io --type=merge -p '{\"spec\":{\"service\":{\"namespace\":\
         \"plimsoll-system\",\"name\":\"plimsoll-metrics\",\"port\":443},\"insecureSkipTLSVerify\":false,\
         \"caBundle\":\"'\"$CA\"'\"}}'"
    );
    assert_eq!(
        switch.back,
        [
            "kubectl patch apiservice v1beta1.metrics.k8s.io --type=merge -p '{\"spec\":{\"service\":{\"namespace\":\
          \"kube-system\",\"name\":\"metrics-server\",\"port\":443},\"insecureSkipTLSVerify\":true,\
          \"caBundle\":null}}'"
        ]
    );
    let install = plan.steps[0].commands.join("\n");
    for expected in ["  metricResolution: 30s\n", "  kubeletInsecureTLS: true\n", "-f plimsoll-metrics.yaml"]
    {
        assert!(install.contains(expected), "{install}");
    }
    // The APIs are switched after the server is ready, and before the old one stops.
    let at = |start: &str| plan.steps.iter().position(|step| step.title.starts_with(start)).unwrap();
    assert!(at("Wait") < at("Lead") && at("Lead") < at("Stop"));
}

#[test]
fn plan_is_about_the_deployment_that_serves_the_api() {
    let mut state = cluster();
    let copy = deployment("a-tenant", "mine", "x/metrics-server:1", &["--mine\nrm -rf /"]);
    let keda = deployment("a-tenant", "keda", "x/keda:1", &[]);
    let copies = [copy, keda];
    let copies: Vec<_> = copies.iter().filter_map(InstalledProgram::of_deployment).collect();
    let mut installed = copies.clone();
    installed.append(&mut state.installed);
    state.installed = installed;
    let text = page::plans(&plans(&state, None, &PLACE), false);
    assert!(text.contains("kubectl -n kube-system scale deployment metrics-server --replicas=0\n"), "{text}");
    assert!(!text.contains("a-tenant"), "{text}");
    // Without the others the copy is meant, and its flags stay in comments.
    let state = ClusterState { installed: copies, ..ClusterState::default() };
    let text = page::plans(&plans(&state, Some(Peer::MetricsServer), &PLACE), false);
    assert!(text.contains("-n a-tenant ") && !text.contains("\nrm "), "{text}");
}

#[test]
fn plan_from_prometheus_adapter_switches_every_api_that_it_serves() {
    let adapter = deployment("m", "adapter", "x/prometheus-adapter:v1", &[]);
    let state = ClusterState {
        installed: InstalledProgram::of_deployment(&adapter).into_iter().collect(),
        api_services: vec![
            api_service("v1beta1", "metrics.k8s.io", "m", "adapter"),
            api_service("v1beta1", "custom.metrics.k8s.io", "m", "adapter"),
            api_service("v1beta1", "external.metrics.k8s.io", "keda", "other"),
        ],
        services: vec![service("m", "adapter", "adapter")],
        ..ClusterState::default()
    };
    let plan =
        |state: &ClusterState| page::plans(&plans(state, Some(Peer::PrometheusAdapter), &PLACE), false);
    let text = plan(&state);
    for api in ["v1beta1.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io"] {
        assert!(text.contains(&format!("\nkubectl patch apiservice {api} ")), "{text}");
    }
    assert!(!text.contains("patch apiservice v1beta1.external.metrics.k8s.io"), "{text}");
    assert!(text.contains("\nkubectl annotate clusterrole system:aggregated-metrics-reader "), "{text}");
    assert!(text.contains("deployment adapter --replicas=0"), "{text}");
    // Nothing is stopped while it is not known what it serves.
    let text = plan(&ClusterState { services: Vec::new(), ..state });
    assert!(!text.contains("--replicas=0"), "{text}");
}

#[test]
fn plans_from_both_metrics_programs_have_the_flags_of_both() {
    let program = |namespace: &str, name: &str, argument: &str| {
        deployment(namespace, name, &format!("x/{name}:1"), &[argument])
    };
    let programs = [
        program("kube-system", "metrics-server", "--kubelet-request-timeout=7s"),
        program("m", "prometheus-adapter", "--prometheus-verb=POST"),
    ];
    let state = ClusterState {
        installed: programs.iter().filter_map(InstalledProgram::of_deployment).collect(),
        ..ClusterState::default()
    };
    let values = |from| {
        let all = plans(&state, from, &PLACE);
        let adapter = all.into_iter().find(|plan| plan.from == Peer::PrometheusAdapter).unwrap();
        adapter.steps[0].commands[0].clone()
    };
    let (both, alone) = (values(None), values(Some(Peer::PrometheusAdapter)));
    // Both plans write the same file, and a list of values is replaced as a whole.
    assert!(
        both.contains("--kubelet-request-timeout=7s") && both.contains("--prometheus-verb=POST"),
        "{both}"
    );
    assert!(!alone.contains("--kubelet-request-timeout=7s"), "{alone}");
}

#[test]
fn flags_of_two_words_and_variables_of_other_objects_are_named() {
    let command = [
        "kube-controller-manager",
        "--horizontal-pod-autoscaler-sync-period",
        "30s",
        "--horizontal-pod-autoscaler-tolerance=0.2",
        "--feature-gates=AllBeta=false,HPAScaleToZero=true,NobodyKnows=true",
        "--v=2",
    ];
    let manager = json!({"metadata": {"namespace": "kube-system", "name": "m"}, "spec": {"containers":
        [{"image": "registry.k8s.io/kube-controller-manager:v1.36.4", "command": command}]}});
    let mut keda = deployment("keda", "keda-operator", "x/keda:2.20.2", &[]);
    keda["spec"]["template"]["spec"]["containers"][1]["envFrom"] =
        json!([{"secretRef": {"name": "proxy"}}, {"configMapRef": {"name": "settings"}}]);
    let programs = [InstalledProgram::of_pod(&manager), InstalledProgram::of_deployment(&keda)];
    let state =
        ClusterState { installed: programs.into_iter().flatten().collect(), ..ClusterState::default() };
    let text = page::plans(&plans(&state, None, &PLACE), false);
    for wanted in [
        "--horizontal-pod-autoscaler-sync-period=30s",
        "--horizontal-pod-autoscaler-tolerance=0.2",
        "--feature-gates=AllBeta=false,HPAScaleToZero=true",
        "# without an equivalent: envFrom: Secret proxy: ",
        "# without an equivalent: envFrom: ConfigMap settings: ",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
    assert!(!text.contains("NobodyKnows"), "{text}");
    let found = problems(&state);
    let fields: Vec<&str> = found.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(fields.iter().filter(|field| **field == "envFrom").count(), 2, "{fields:?}");
    assert!(fields.contains(&"--horizontal-pod-autoscaler-sync-period"), "{fields:?}");
}

#[test]
fn plan_from_keda_leaves_the_api_of_another_program() {
    let mut state = cluster();
    let mut adapter = deployment("m", "adapter", "x/prometheus-adapter:v1", &[]);
    adapter["spec"]["replicas"] = json!(0);
    state.installed.extend(InstalledProgram::of_deployment(&adapter));
    state.services.push(service("m", "adapter", "adapter"));
    state.api_services = vec![api_service("v1beta1", "external.metrics.k8s.io", "m", "adapter")];
    let text = page::plans(&plans(&state, Some(Peer::Keda), &PLACE), false);
    assert!(
        !text.contains("kubectl patch apiservice") && !text.contains("operator.apiService=true"),
        "{text}"
    );
    assert!(text.contains("\n# prometheus-adapter (m/adapter) serves it; "), "{text}");
    // It was stopped before the plan was made.
    let back = page::plans(&plans(&state, Some(Peer::PrometheusAdapter), &PLACE), true);
    let start = "\nkubectl -n m scale deployment adapter --replicas=1\nkubectl -n m rollout status deployment/adapter ";
    assert!(back.contains(start), "{back}");
    // Only the way there installs something.
    assert!(
        text.starts_with("# If Plimsoll is not installed yet, ") && !back.contains("image.tag"),
        "{back}"
    );
}

#[test]
fn plan_from_keda_never_deletes_its_definitions() {
    let mut state = cluster();
    state.webhook = Some(json!({}));
    let all = plans(&state, None, &PLACE);
    assert_eq!(
        all.iter().map(|plan| plan.from).collect::<Vec<_>>(),
        [Peer::MetricsServer, Peer::Keda, Peer::Hpa]
    );
    let text = page::plans(&all, false);
    assert!(text.contains("--zap-log-level=debug"), "{text}");
    assert!(text.contains("\nkubectl -n keda scale deployment keda-operator --replicas=0\n"), "{text}");
    // The Secrets of ClusterTriggerAuthentications stay in KEDA's namespace.
    assert!(
        text.contains("name: KEDA_CLUSTER_OBJECT_NAMESPACE\n") && text.contains("value: keda\n"),
        "{text}"
    );
    // The definition of Autoscaler is installed and updated all the same.
    assert!(text.contains("keda: false\n") && !text.contains("install: false"), "{text}");
    assert!(!text.contains("\nhelm uninstall"), "{text}");
    let back = page::plans(&all, true);
    assert!(back.contains("\nkubectl -n keda scale deployment keda-operator --replicas=2\n"), "{back}");
    assert!(plans(&state, Some(Peer::PrometheusAdapter), &PLACE).is_empty());
}
