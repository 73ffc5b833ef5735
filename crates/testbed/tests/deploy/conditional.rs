//! Permissions, ports, egress rules, definitions and annotations that the chart renders only with some values.

use serde_json::{Value, json};

use crate::chart::{helm, of_kind, rendered};
use crate::shared::manifests::repository;

/// The metrics server registers external metrics, and the operator does not.
pub(crate) const FEDERATED: &str = "--set=metrics.enabled=true,operator.enabled=true,operator.apiService=false,\
     metrics.prometheus.url=http://prometheus:9090,networkPolicies.enabled=true,networkPolicies.apiServerCIDRs={10.0.0.1/32}";
/// Values for objects that no combination of roles has.
pub(crate) const OPTIONAL: &str = "--set=operator.enabled=true,operator.aggregateToDefaultRoles=true,\
     monitoring.serviceMonitor.enabled=true,monitoring.serviceMonitor.token=secret";
const ONE_PROCESS: &str =
    "singleProcess.enabled=true,controller.mode=active,metrics.enabled=true,operator.enabled=true";
const EXTERNAL_METRICS: &str = "v1beta1.external.metrics.k8s.io";

fn with(values: &[&str]) -> Vec<Value> {
    rendered(&values.iter().map(|value| format!("--set={value}")).collect::<Vec<String>>())
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    of_kind(objects, kind).into_iter().find(|object| object["metadata"]["name"] == name)
}

fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    find(objects, kind, name).unwrap_or_else(|| panic!("no {kind} is called {name}"))
}

/// The flags `--operator` of the metrics server.
fn operator_flags(objects: &[Value]) -> Vec<&str> {
    let deployment = named(objects, "Deployment", "plimsoll-metrics");
    let arguments =
        deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().iter();
    arguments
        .map(|argument| argument.as_str().unwrap())
        .filter(|text| text.starts_with("--operator"))
        .collect()
}

/// Whether the roles of an account allow a verb on a resource or path. With a name, the rule must be one for that name.
fn allows(objects: &[Value], account: &str, verb: &str, resource: &str, name: &str) -> bool {
    let holds = |rule: &Value, field: &str, value: &str| {
        rule[field].as_array().is_some_and(|all| all.contains(&json!(value)))
    };
    let bindings = objects.iter().filter(|object| object["subjects"][0]["name"] == account);
    let roles = bindings.flat_map(|binding| {
        let role = &binding["roleRef"];
        let is_bound = move |object: &&Value| {
            object["kind"] == role["kind"] && object["metadata"]["name"] == role["name"]
        };
        objects.iter().filter(is_bound)
    });
    let mut rules = roles.flat_map(|role| role["rules"].as_array().unwrap());
    rules.any(|rule| {
        let is_covered = holds(rule, "resources", resource) || holds(rule, "nonResourceURLs", resource);
        let is_named = name.is_empty() || holds(rule, "resourceNames", name);
        holds(rule, "verbs", verb) && is_covered && is_named
    })
}

#[test]
fn metrics_server_queries_the_operator_where_it_registers_external_metrics() {
    let objects = rendered(&[FEDERATED.to_owned()]);
    assert_eq!(operator_flags(&objects), ["--operator=plimsoll-system/plimsoll-operator"]);
    let service = &named(&objects, "APIService", EXTERNAL_METRICS)["spec"]["service"];
    assert_eq!(service["name"], "plimsoll-metrics");
    for (verb, resource, name) in [
        ("get", "apiservices", "v1alpha1.operator.plimsoll.dev"),
        ("patch", "apiservices", EXTERNAL_METRICS),
        ("get", "namespaces", "kube-system"),
        ("get", "*", ""),
        ("list", "*", ""),
    ] {
        assert!(allows(&objects, "plimsoll-metrics", verb, resource, name), "{verb} {resource} {name}");
    }
    // Addresses of the API server are not those of the metrics server.
    let ingress = &named(&objects, "NetworkPolicy", "plimsoll-operator")["spec"]["ingress"];
    assert!(ingress.to_string().contains("plimsoll-metrics"), "{ingress}");

    // Another operator, which the user names.
    let other = rendered(&[FEDERATED.to_owned(), "--set=metrics.extraArgs={--operator=a/b}".to_owned()]);
    assert_eq!(operator_flags(&other), ["--operator=a/b"]);

    // A switch from KEDA without rules: KEDA's metrics adapter still serves the API, so the release must not register it.
    let switching = with(&["metrics.enabled=true,operator.enabled=true,operator.apiService=false"]);
    assert!(find(&switching, "APIService", EXTERNAL_METRICS).is_none());
    let switching = rendered(&[FEDERATED.to_owned(), "--set=metrics.apiServices.external=false".to_owned()]);
    assert!(find(&switching, "APIService", EXTERNAL_METRICS).is_none());
    assert_eq!(operator_flags(&switching), [""; 0]);
    // The roles of one process need no request for the metrics of each other.
    let one_process = rendered(&[FEDERATED.to_owned(), format!("--set={ONE_PROCESS}")]);
    assert!(!one_process.iter().any(|object| object.to_string().contains("--operator=")));
}

#[test]
fn permissions_of_a_flag_are_granted_with_the_flag() {
    let permissions = [
        ("list", "endpointslices", ""),
        ("get", "/plimsoll/samples", ""),
        ("get", "namespaces", "kube-system"),
        ("patch", "apiservices", "v1beta1.custom.metrics.k8s.io"),
        ("get", "apiservices", "v1alpha1.operator.plimsoll.dev"),
        ("list", "*", ""),
    ];
    let cases = [
        ("metrics.extraArgs={--v=2}", [false, false, false, false, false, false]),
        ("metrics.extraArgs={--shares=a/b}", [true, true, false, false, false, false]),
        ("metrics.extraArgs={--upstreams=/f}", [false, false, true, true, false, false]),
        ("metrics.extraArgs={--operator=a/b}", [false, false, true, true, true, true]),
        ("metrics.prometheus.url=http://p", [false, false, false, true, false, false]),
    ];
    for (values, granted) in cases {
        let objects = with(&["controller.enabled=false,metrics.enabled=true", values]);
        let found = permissions
            .map(|(verb, resource, name)| allows(&objects, "plimsoll-metrics", verb, resource, name));
        assert_eq!(found, granted, "{values}: {permissions:?}");
        // Without this permission, the server would log an error each time when it looks whether the APIService leads to it.
        assert!(allows(&objects, "plimsoll-metrics", "get", "apiservices", "v1beta1.custom.metrics.k8s.io"));
    }
    let shares = |objects: &[Value]| allows(objects, "plimsoll", "get", "/plimsoll/samples", "");
    assert!(shares(&with(&[ONE_PROCESS, "singleProcess.extraArgs={--shares=a/b}"])));
    // Flags of a role that is not enabled are not given.
    let of_operator = "operator.extraArgs={--shares=a/b}";
    assert!(shares(&with(&[ONE_PROCESS, of_operator])));
    assert!(!shares(&with(&[ONE_PROCESS, of_operator, "operator.enabled=false"])));
    // The metrics server does not query an operator of the same process.
    let kube_system = |objects: &[Value]| allows(objects, "plimsoll", "get", "namespaces", "kube-system");
    let given = "metrics.extraArgs={--operator=a/b}";
    assert!(!kube_system(&with(&[ONE_PROCESS, given])));
    assert!(kube_system(&with(&[ONE_PROCESS, given, "operator.enabled=false"])));
}

#[test]
fn restricted_operator_may_read_secrets_in_the_namespace_of_cluster_objects_only() {
    let restricted = "operator.enabled=true,operator.restrictSecretAccess=true";
    let keda = "env[0].name=KEDA_CLUSTER_OBJECT_NAMESPACE";
    let of_operator = format!("operator.{keda},operator.env[0].value=keda");
    let of_process =
        format!("{ONE_PROCESS},{of_operator},singleProcess.{keda},singleProcess.env[0].value=other");
    for (values, namespace, account) in [
        ("operator.replicas=2", "plimsoll-system", "plimsoll-operator"),
        (of_operator.as_str(), "keda", "plimsoll-operator"),
        // Of two variables of one name, the last one counts.
        (of_process.as_str(), "other", "plimsoll"),
    ] {
        let objects = with(&[restricted, values]);
        let reads = objects.iter().filter(|object| {
            let mut rules = object["rules"].as_array().into_iter().flatten();
            rules.any(|rule| {
                let names = |field: &str, value: &str| {
                    rule[field].as_array().is_some_and(|all| all.contains(&json!(value)))
                };
                names("resources", "secrets") && names("verbs", "get") && rule["resourceNames"].is_null()
            })
        });
        let places: Vec<(&Value, &Value)> =
            reads.map(|role| (&role["kind"], &role["metadata"]["namespace"])).collect();
        assert_eq!(places, [(&json!("Role"), &json!(namespace))], "{values}");
        let binding = named(&objects, "RoleBinding", "plimsoll-operator-secrets");
        assert_eq!(binding["metadata"]["namespace"], namespace);
        assert_eq!(binding["subjects"][0]["name"], account);
        assert_eq!(binding["subjects"][0]["namespace"], "plimsoll-system");
    }
}

#[test]
fn operator_may_read_targets_of_the_given_kinds() {
    let targets =
        "operator.readTargets[0].apiGroups={argoproj.io},operator.readTargets[0].resources={rollouts}";
    let (usual, changed) = (with(&["operator.enabled=true"]), with(&["operator.enabled=true", targets]));
    let may_get = |objects: &[Value]| allows(objects, "plimsoll-operator", "get", "rollouts", "");
    assert!(!may_get(&usual) && may_get(&changed));
}

#[test]
fn network_policies_open_the_given_ports_and_addresses() {
    let policies = "controller.mode=active,operator.enabled=true,networkPolicies.enabled=true";
    let given = "networkPolicies.apiServerPorts={8443,16443},networkPolicies.extraEgress[0].to[0].ipBlock.cidr=169.254.170.23/32";
    let egress = |objects: &[Value], name: &str| {
        named(objects, "NetworkPolicy", name)["spec"]["egress"].as_array().unwrap().clone()
    };
    let (usual, changed) = (with(&[policies]), with(&[policies, given]));
    let ports = |ports: [u16; 2]| json!({"ports": ports.map(|port| json!({"port": port}))});
    assert!(egress(&usual, "plimsoll-controller").contains(&ports([443, 6443])));
    assert!(egress(&changed, "plimsoll-controller").contains(&ports([8443, 16443])));
    let metadata = json!({"to": [{"ipBlock": {"cidr": "169.254.170.23/32"}}]});
    assert!(egress(&changed, "plimsoll-operator").contains(&metadata));
    assert!(!egress(&changed, "plimsoll-controller").contains(&metadata));
    let one_process = with(&[ONE_PROCESS, "networkPolicies.enabled=true", given]);
    assert!(egress(&one_process, "plimsoll").contains(&metadata));
}

/// For networks such as Cilium, an `ipBlock` has neither pods nor nodes.
#[test]
fn network_policies_open_pods_and_nodes_of_the_cluster_without_their_addresses() {
    let given = "networkPolicies.enabled=true,networkPolicies.apiServerPorts={443,8443}";
    let roles = with(&["controller.mode=active,metrics.enabled=true,operator.enabled=true", given]);
    let one_process = with(&[ONE_PROCESS, given]);
    let without_metrics = with(&[ONE_PROCESS, "metrics.enabled=false", given]);
    let api_servers = [443, 8443].as_slice();
    let with_kubelets = [443, 8443, 10250].as_slice();
    for (objects, name, ports) in [
        (&roles, "plimsoll-metrics", with_kubelets),
        (&roles, "plimsoll-operator", api_servers),
        (&one_process, "plimsoll", with_kubelets),
        (&without_metrics, "plimsoll", api_servers),
    ] {
        let egress = &named(objects, "NetworkPolicy", name)["spec"]["egress"];
        let rules = egress.as_array().unwrap();
        let ports: Vec<Value> = ports.iter().map(|port| json!({"port": port})).collect();
        assert!(rules.contains(&json!({"ports": ports})), "{name}: {egress}");
        let mut peers = rules.iter().filter_map(|rule| rule["to"].as_array()).flatten();
        assert!(peers.any(|peer| *peer == json!({"namespaceSelector": {}})), "{name}: {egress}");
    }
}

#[test]
fn one_process_has_the_labels_and_annotations_of_its_roles() {
    let of_roles =
        "operator.serviceAccount.annotations.role=arn,metrics.podLabels.team=a,controller.podAnnotations.x=y";
    let objects = with(&[ONE_PROCESS, of_roles]);
    let annotations =
        |objects: &[Value]| named(objects, "ServiceAccount", "plimsoll")["metadata"]["annotations"].clone();
    assert_eq!(annotations(&objects), json!({"role": "arn"}));
    let pod =
        |objects: &[Value]| named(objects, "Deployment", "plimsoll")["spec"]["template"]["metadata"].clone();
    assert_eq!(pod(&objects)["labels"]["team"], "a");
    assert_eq!(pod(&objects)["annotations"], json!({"x": "y"}));

    let changed = with(&[ONE_PROCESS, of_roles, "singleProcess.podAnnotations.x=z,operator.enabled=false"]);
    assert_eq!(pod(&changed)["annotations"], json!({"x": "z"}));
    assert_eq!(annotations(&changed), Value::Null, "the operator does not run");

    let values = format!("--set={ONE_PROCESS},controller.podLabels.team=a,operator.podLabels.team=b");
    let error = helm(&["template", "plimsoll", "charts/plimsoll", &values]).unwrap_err();
    assert!(error.contains("controller.podLabels and operator.podLabels differ in team"), "{error}");
    let chosen = rendered(&[values, "--set=singleProcess.podLabels.team=c".to_owned()]);
    assert_eq!(pod(&chosen)["labels"]["team"], "c");
}

#[test]
fn definitions_of_keda_are_left_out_by_a_value_of_their_own() {
    for (values, count) in [("crds.keep=true", 7), ("crds.keda=false", 1), ("crds.install=false", 0)] {
        let objects = with(&["operator.enabled=true", values]);
        let definitions = of_kind(&objects, "CustomResourceDefinition");
        assert_eq!(definitions.len(), count, "{values}");
        let ours = find(&objects, "CustomResourceDefinition", "autoscalers.plimsoll.dev");
        assert_eq!(ours.is_some(), count > 0, "{values}");
    }
}

#[test]
fn shadow_mode_has_no_certificate_of_cert_manager() {
    for (mode, has_certificate) in [("shadow", false), ("active", true)] {
        let objects = with(&["certificates.mode=cert-manager", &format!("controller.mode={mode}")]);
        let api = named(&objects, "APIService", "v1alpha1.decisions.plimsoll.dev");
        let injected = &api["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        assert_eq!(injected.is_string(), has_certificate, "{api}");
    }
}

#[test]
fn one_process_has_no_port_of_the_metrics_service_with_cert_manager() {
    for (mode, is_open) in [("self", true), ("cert-manager", false)] {
        let certificates = format!("certificates.mode={mode}");
        let objects = with(&[ONE_PROCESS, "networkPolicies.enabled=true", &certificates]);
        for kind in ["Deployment", "NetworkPolicy"] {
            let text = named(&objects, kind, "plimsoll").to_string();
            assert_eq!(text.contains("9666"), is_open, "{mode}: {text}");
        }
    }
}

#[test]
fn one_process_has_each_variable_and_volume_of_its_roles_once() {
    let variable = |role: &str, value: &str| format!("{role}.env[0].name=A,{role}.env[0].value={value}");
    let volume = |role: &str| {
        format!(
            "{role}.extraVolumes[0].name=ca,{role}.extraVolumes[0].configMap.name=ca,\
             {role}.extraVolumeMounts[0].name=ca,{role}.extraVolumeMounts[0].mountPath=/ca"
        )
    };
    let objects = with(&[
        ONE_PROCESS,
        &variable("metrics", "x"),
        &variable("operator", "y"),
        &volume("metrics"),
        &volume("operator"),
    ]);
    let pod = &named(&objects, "Deployment", "plimsoll")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let given: Vec<&Value> =
        container["env"].as_array().unwrap().iter().filter(|variable| variable["name"] == "A").collect();
    // Server-side apply refuses a list with two of one name.
    assert_eq!(given, [&json!({"name": "A", "value": "y"})], "the last one counts");
    assert_eq!(pod["volumes"], json!([{"name": "ca", "configMap": {"name": "ca"}}]));
    assert_eq!(container["volumeMounts"], json!([{"name": "ca", "mountPath": "/ca"}]));
}

#[test]
fn variable_of_a_user_takes_the_place_of_that_of_the_chart() {
    let objects = with(&["controller.env[0].name=POD_IP,controller.env[0].value=x"]);
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    let field =
        |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let own = [field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace")];
    let given = json!({"name": "POD_IP", "value": "x"});
    assert_eq!(pod["containers"][0]["env"], json!([own[0], own[1], given]));
}

/// The security context constraints of OpenShift give pods users of its own.
#[test]
fn pods_name_no_user() {
    let roles = with(&["controller.mode=active,metrics.enabled=true,operator.enabled=true"]);
    for deployment in of_kind(&roles, "Deployment") {
        let pod = &deployment["spec"]["template"]["spec"];
        let context = &pod["securityContext"];
        assert_eq!(context["runAsNonRoot"], true, "{context}");
        for context in [context, &pod["containers"][0]["securityContext"]] {
            for field in ["runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"] {
                assert!(context[field].is_null(), "{field}: {context}");
            }
        }
    }
}

/// User workload monitoring of OpenShift ignores a ServiceMonitor that names a file.
#[test]
fn prometheus_gets_a_token_from_a_secret_where_files_are_refused() {
    const SCRAPER: &str = "plimsoll-metrics-scrape";
    let (usual, changed) =
        (with(&["monitoring.serviceMonitor.enabled=true"]), rendered(&[OPTIONAL.to_owned()]));
    for kind in ["ServiceAccount", "Secret", "ClusterRoleBinding"] {
        assert!(find(&usual, kind, SCRAPER).is_none(), "{kind}");
    }
    let endpoints = |objects: &[Value]| -> Vec<Value> {
        let monitors = of_kind(objects, "ServiceMonitor").into_iter();
        monitors.map(|monitor| monitor["spec"]["endpoints"][0].clone()).collect()
    };
    for endpoint in endpoints(&usual) {
        assert_eq!(endpoint["bearerTokenFile"], "/var/run/secrets/kubernetes.io/serviceaccount/token");
        assert!(endpoint["authorization"].is_null(), "{endpoint}");
    }
    let credentials = json!({"name": SCRAPER, "key": "token"});
    for endpoint in endpoints(&changed) {
        assert!(endpoint["bearerTokenFile"].is_null(), "{endpoint}");
        assert_eq!(endpoint["authorization"]["credentials"], credentials, "{endpoint}");
    }
    assert_eq!((endpoints(&usual).len(), endpoints(&changed).len()), (1, 2));
    let secret = named(&changed, "Secret", SCRAPER);
    // Kubernetes writes the token of this account. Prometheus reads Secrets in the namespace of the ServiceMonitor.
    assert_eq!(secret["type"], "kubernetes.io/service-account-token");
    assert_eq!(secret["metadata"]["annotations"]["kubernetes.io/service-account.name"], SCRAPER);
    for (kind, name) in [("ServiceAccount", SCRAPER), ("ServiceMonitor", "plimsoll-operator")] {
        let namespace = &named(&changed, kind, name)["metadata"]["namespace"];
        assert_eq!(*namespace, secret["metadata"]["namespace"], "{kind}");
    }
    assert!(allows(&changed, SCRAPER, "get", "/metrics", ""));
}

#[test]
fn users_may_use_the_kinds_of_keda_with_a_value() {
    const VIEWER: &str = "plimsoll-operator-keda-view";
    const EDITOR: &str = "plimsoll-operator-keda-edit";
    let (usual, changed) = (with(&["operator.enabled=true"]), rendered(&[OPTIONAL.to_owned()]));
    assert!([VIEWER, EDITOR].iter().all(|name| find(&usual, "ClusterRole", name).is_none()));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let definitions = of_kind(&changed, "CustomResourceDefinition").into_iter().map(|object| &object["spec"]);
    let mut kinds: Vec<(String, String)> = definitions
        .map(|spec| (text(&spec["group"]), text(&spec["names"]["plural"])))
        .filter(|(group, _)| group != "plimsoll.dev")
        .collect();
    kinds.sort();
    assert_eq!(kinds.len(), 6, "{kinds:?}");
    for (name, roles, verbs) in [
        (VIEWER, json!(["view", "edit", "admin"]), json!(["get", "list", "watch"])),
        (
            EDITOR,
            json!(["edit", "admin"]),
            json!(["create", "update", "patch", "delete", "deletecollection"]),
        ),
    ] {
        let role = named(&changed, "ClusterRole", name);
        let is_added = |to: &str| {
            role["metadata"]["labels"][format!("rbac.authorization.k8s.io/aggregate-to-{to}")] == "true"
        };
        let added: Vec<&str> = ["view", "edit", "admin"].into_iter().filter(|to| is_added(to)).collect();
        assert_eq!(json!(added), roles, "{name}");
        let mut covered = Vec::new();
        for rule in role["rules"].as_array().unwrap() {
            assert_eq!(rule["verbs"], verbs, "{name}");
            let resources = rule["resources"].as_array().unwrap().iter();
            covered.extend(resources.map(|resource| (text(&rule["apiGroups"][0]), text(resource))));
        }
        covered.sort();
        assert_eq!(covered, kinds, "{name}");
    }
}

#[test]
fn page_of_the_chart_names_the_roles_that_need_the_key_of_a_collector() {
    let page = std::fs::read_to_string(repository().join("charts/plimsoll/README.md")).unwrap();
    let paragraph = page.split("\n\n").find(|text| text.contains("OTEL_EXPORTER_OTLP_HEADERS")).unwrap();
    let objects = with(&[
        "controller.mode=active,metrics.enabled=true,operator.enabled=true",
        "monitoring.opentelemetry.endpoint=http://c:4318,monitoring.opentelemetry.traces=true",
    ]);
    for deployment in of_kind(&objects, "Deployment") {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let mut arguments = container["args"].as_array().unwrap().iter().filter_map(Value::as_str);
        let sends = arguments.any(|argument| argument.starts_with("--otlp-traces-endpoint="));
        let value = format!("`{}.env`", container["name"].as_str().unwrap());
        assert_eq!(paragraph.contains(&value), sends, "{value}: {paragraph}");
    }
}
