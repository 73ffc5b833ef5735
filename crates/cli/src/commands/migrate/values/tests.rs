#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::{Value, json};

use super::super::Peer;
use super::charts::{complete_adapter, table};
use super::convert::{ConvertedValues, convert};
use super::flags::{keda_arguments, keda_variables, metrics_arguments};
use super::text;

fn lost(converted: &ConvertedValues) -> Vec<&str> {
    converted.lost.iter().map(|lost| lost.path.as_str()).collect()
}

#[test]
fn values_of_keda_are_converted() {
    let given = json!({
        "watchNamespace": "shop",
        "operator": {"replicaCount": 2, "affinity": {"a": 1}},
        "metricsServer": {"replicaCount": 3},
        "webhooks": {"failurePolicy": "Fail"},
        "podIdentity": {"aws": {"irsa": {"enabled": true, "roleArn": "arn:x"}}, "gcp": {"enabled": false}},
        "serviceAccount": {"operator": {"annotations": {"a": "b"}, "name": "mine"}},
        "extraArgs": {"keda": {"act": "direct", "kube-api-qps": 50, "nonsense": true}},
        "env": [{"name": "KEDA_OUTBOUND_FILTER", "value": "https://vault"}, {"name": "KEDA_SCALEDJOB_CTRL_MAX_RECONCILES", "value": "2"}],
        "http": {"timeout": 5000, "keepAlive": {"enabled": true}},
        "resources": {"operator": {"limits": {"memory": "1Gi"}}, "metricServer": {}},
        "logging": {"operator": {"level": "debug", "format": "console"}},
        "nobodyKnows": 1
    });
    let converted = convert(&given, table(Peer::Keda));
    assert_eq!(
        converted.values,
        json!({"operator": {
            "env": [
                {"name": "WATCH_NAMESPACE", "value": "shop"},
                {"name": "KEDA_OUTBOUND_FILTER", "value": "https://vault"},
                {"name": "KEDA_HTTP_DEFAULT_TIMEOUT", "value": "5000"}
            ],
            "replicas": 2,
            "webhook": {"failurePolicy": "Fail"},
            "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:x", "a": "b"}},
            "extraArgs": ["--act=direct", "--zap-log-level=debug"],
            "resources": {"limits": {"memory": "1Gi"}}
        }})
    );
    assert_eq!(
        lost(&converted),
        [
            "operator.affinity",
            "serviceAccount.operator.name",
            "extraArgs.keda: --kube-api-qps",
            "extraArgs.keda: --nonsense",
            "env: KEDA_SCALEDJOB_CTRL_MAX_RECONCILES",
            "resources.metricServer",
            "nobodyKnows"
        ]
    );
}

/// KEDA's chart sets these flags and variables always, and means what the operator does without them.
#[test]
fn defaults_of_kedas_chart_are_left_out() {
    let given = json!({
        "clusterName": "kubernetes-default", "clusterDomain": "cluster.local", "watchNamespace": "",
        "http": {"timeout": 3000, "keepAlive": {"enabled": true}, "minTlsVersion": "TLS12"},
        "logging": {"operator": {"level": "info", "format": "console", "timeEncoding": "rfc3339"}},
        "extraArgs": {"keda": {}}, "env": null
    });
    let converted = convert(&given, table(Peer::Keda));
    assert_eq!(converted.values, json!({}));
    assert_eq!(lost(&converted), [""; 0]);
    let others = json!({
        "clusterName": "east", "http": {"timeout": 3001, "minTlsVersion": "TLS13"},
        "logging": {"operator": {"level": 2}}
    });
    let converted = convert(&others, table(Peer::Keda));
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let env = [variable("KEDA_HTTP_DEFAULT_TIMEOUT", "3001"), variable("KEDA_HTTP_MIN_TLS_VERSION", "TLS13")];
    let flags = ["--k8s-cluster-name=east", "--zap-log-level=2"];
    assert_eq!(converted.values, json!({"operator": {"extraArgs": flags, "env": env}}));
    // The plan reads the Deployment.
    let mut converted = ConvertedValues::default();
    keda_arguments(&mut converted, "args", &["--leader-elect".to_owned(), "--zap-log-level=info".to_owned()]);
    keda_variables(&mut converted, "env", &[variable("KEDA_HTTP_DEFAULT_TIMEOUT", "3000")]);
    assert_eq!(converted.values, json!({}));
}

/// One process has each flag under one name.
#[test]
fn flag_of_the_adapter_for_a_kubeconfig_is_that_of_every_role() {
    let mut converted = ConvertedValues::default();
    metrics_arguments(&mut converted, "args", &["--lister-kubeconfig=/k".to_owned()]);
    assert_eq!(converted.values, json!({"metrics": {"extraArgs": ["--kubeconfig=/k"]}}));
}

/// Permissions, identities and labels without which the operator would do more, or less, than KEDA's.
#[test]
fn permissions_and_identities_of_keda_are_kept() {
    let given = json!({
        "rbac": {"create": true, "scaledRefKinds": [{"apiGroup": "argoproj.io", "kind": "rollouts"}]},
        "podIdentity": {
            "aws": {"irsa": {"enabled": true, "roleArn": "arn:x", "audience": "own", "tokenExpiration": 900}},
            "gcp": {"enabled": true}
        },
        "serviceAccount": {"annotations": {"a": "b"}},
        "env": [{"name": "KEDA_RESTRICT_SECRET_ACCESS", "value": "True"}],
        "prometheus": {"operator": {
            "serviceMonitor": {"enabled": true, "interval": "", "additionalLabels": {"release": "prometheus"}},
            "prometheusRules": {"enabled": true, "additionalLabels": {"role": "alerts"}}
        }},
        "metricsServer": {"useHostNetwork": false},
        "webhooks": {"useHostNetwork": true}
    });
    let converted = convert(&given, table(Peer::Keda));
    let resource = |group: &str, name: &str| json!({"apiGroups": [group], "resources": [name]});
    assert_eq!(
        converted.values,
        json!({
            "operator": {
                "scaleTargets": [
                    resource("apps", "deployments/scale"),
                    resource("apps", "statefulsets/scale"),
                    resource("argoproj.io", "rollouts/scale")
                ],
                "readTargets": [resource("argoproj.io", "rollouts")],
                "serviceAccount": {"annotations": {
                    "eks.amazonaws.com/role-arn": "arn:x", "eks.amazonaws.com/audience": "own",
                    "eks.amazonaws.com/token-expiration": "900", "a": "b"
                }},
                "nodeSelector": {"iam.gke.io/gke-metadata-server-enabled": "true"},
                "restrictSecretAccess": true
            },
            "monitoring": {
                "serviceMonitor": {"enabled": true, "labels": {"release": "prometheus"}},
                "prometheusRule": {"enabled": true, "labels": {"role": "alerts"}}
            }
        })
    );
    assert_eq!(lost(&converted), ["webhooks.useHostNetwork"]);

    let targets = |rbac: Value| {
        let converted = convert(&json!({"rbac": rbac}), table(Peer::Keda));
        converted.values.pointer("/operator/scaleTargets").and_then(Value::as_array).map(Vec::len)
    };
    // By default KEDA's chart allows all kinds, as ours does.
    assert_eq!(targets(json!({"scaledRefKinds": [{"apiGroup": "*", "kind": "*"}]})), None);
    assert_eq!(targets(json!({"create": true})), None);
    // An empty list takes the place of that default.
    assert_eq!(targets(json!({"scaledRefKinds": []})), Some(2));
    assert_eq!(targets(json!({"enabledCustomScaledRefKinds": false})), Some(2));
    // Helm removes the default of a value that is null.
    assert_eq!(targets(json!({"scaledRefKinds": null})), Some(2));
    assert_eq!(targets(json!({"enabledCustomScaledRefKinds": null})), Some(2));
    // Our chart allows Kubernetes' HPA controller to read external metrics by its account in kube-system.
    for (namespace, is_lost) in [("kube-system", false), ("other", true)] {
        let given = json!({"rbac": {"controlPlaneServiceAccountsNamespace": namespace}});
        let found = convert(&given, table(Peer::Keda));
        let path = "rbac.controlPlaneServiceAccountsNamespace";
        assert_eq!(lost(&found).contains(&path), is_lost, "{namespace}");
    }
    // The permissions of users for KEDA's kinds.
    for (rbac, expected) in [
        (json!({"create": true, "aggregateToDefaultRoles": true}), json!({"aggregateToDefaultRoles": true})),
        (json!({"aggregateToDefaultRoles": false}), Value::Null),
        (json!({"create": false, "aggregateToDefaultRoles": true}), Value::Null),
        (json!({"create": null, "aggregateToDefaultRoles": true}), Value::Null),
    ] {
        let converted = convert(&json!({"rbac": rbac}), table(Peer::Keda));
        assert_eq!(converted.values["operator"], expected, "{rbac}");
    }
}

/// Helm removes the default of a value that is null, so that templates take a switch for off.
#[test]
fn switches_that_are_null_are_off() {
    let given =
        json!({"webhooks": {"enabled": null}, "crds": {"install": null}, "operator": {"replicaCount": null}});
    let converted = convert(&given, table(Peer::Keda));
    let off = json!({"operator": {"webhook": {"enabled": false}}, "crds": {"keda": false}});
    assert_eq!(converted.values, off);
    assert_eq!(lost(&converted), [""; 0]);
    let converted = convert(&json!({"apiService": {"create": null}}), table(Peer::MetricsServer));
    assert_eq!(converted.values, json!({"metrics": {"apiServices": {"resource": false}}}));
}

/// `generate` is a value of KEDA's chart and no field of cert-manager's `issuerRef`.
#[test]
fn issuer_that_kedas_chart_does_not_create_becomes_a_reference() {
    let converted = |issuer: &Value| {
        let given = json!({"certificates": {"certManager": {"enabled": true, "issuer": issuer}}});
        convert(&given, table(Peer::Keda))
    };
    let reference = json!({"name": "corporate", "kind": "ClusterIssuer", "group": "cert-manager.io"});
    let with_generate = |generate: bool| {
        let mut issuer = reference.clone();
        issuer["generate"] = json!(generate);
        issuer
    };
    let existing = converted(&with_generate(false));
    let expected = json!({"certificates": {"mode": "cert-manager", "issuerRef": reference}});
    assert_eq!(existing.values, expected);
    assert_eq!(lost(&existing), [""; 0]);
    // `generate` is true by default.
    for issuer in [with_generate(true), reference.clone()] {
        let created = converted(&issuer);
        assert_eq!(created.values, json!({"certificates": {"mode": "cert-manager"}}));
        assert_eq!(lost(&created), ["certificates.certManager.issuer"]);
    }
}

#[test]
fn values_of_metrics_server_are_converted() {
    let given = json!({
        "args": ["--kubelet-insecure-tls", "--kubelet-preferred-address-types=InternalIP,Hostname", "--node-selector=a=b"],
        "defaultArgs": ["--cert-dir=/tmp", "--metric-resolution=15s"],
        "replicas": 2, "resources": null, "hostNetwork": {"enabled": true}, "image": {"tag": "v1"}
    });
    let converted = convert(&given, table(Peer::MetricsServer));
    assert_eq!(
        converted.values,
        json!({"metrics": {
            "kubeletInsecureTLS": true, "kubeletPreferredAddressTypes": "InternalIP,Hostname",
            "extraArgs": ["--node-selector=a=b"], "metricResolution": "15s", "replicas": 2
        }})
    );
    assert_eq!(lost(&converted), ["hostNetwork.enabled", "image"]);
    assert!(text(&converted).ends_with(
        "\n# Without an equivalent:\n# - hostNetwork.enabled: pods are on the network of the cluster, \
         where API servers must reach them\n# - image: one image is used for all roles\n"
    ));
}

#[test]
fn values_of_prometheus_adapter_are_converted() {
    let given = json!({"prometheus": {"url": "http://p.svc", "port": 80, "path": "/x"}, "logLevel": 4,
        "rules": {"default": false, "custom": [{"seriesQuery": "a"}], "external": []}});
    let mut converted = convert(&given, table(Peer::PrometheusAdapter));
    complete_adapter(&mut converted, &given, None);
    let prometheus = json!({"url": "http://p.svc:80/x", "rules": {"rules": [{"seriesQuery": "a"}]}});
    assert_eq!(converted.values, json!({"metrics": {"extraArgs": ["--v=4"], "prometheus": prometheus}}));
    assert_eq!(lost(&converted), [""; 0]);

    // The chart lists names of Secrets, and evaluates the address as a template.
    let given = json!({"image": {"pullSecrets": ["registry"]}, "rules": {"default": false},
        "prometheus": {"url": "http://{{ .Release.Name }}.svc"}});
    let mut converted = convert(&given, table(Peer::PrometheusAdapter));
    complete_adapter(&mut converted, &given, None);
    assert_eq!(converted.values, json!({"imagePullSecrets": [{"name": "registry"}]}));
    assert_eq!(lost(&converted), ["prometheus.url"]);

    // The default rules are not in the values.
    let mut converted = convert(&json!({}), table(Peer::PrometheusAdapter));
    complete_adapter(&mut converted, &json!({}), None);
    assert_eq!(converted.values["metrics"]["prometheus"]["url"], "http://prometheus.default.svc:9090");
    assert_eq!(lost(&converted), ["rules.default"]);
    let mut converted = ConvertedValues::default();
    complete_adapter(&mut converted, &json!({}), Some(json!({"rules": []})));
    assert_eq!(converted.values["metrics"]["prometheus"]["rules"], json!({"rules": []}));
    assert_eq!(lost(&converted), [""; 0]);
}

/// Every path that the tables write is a value of our chart.
#[test]
fn converted_values_are_values_of_the_chart() {
    use super::convert::ValueRule;
    let schema = include_str!("../../../../../../charts/plimsoll/values.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    for peer in [Peer::MetricsServer, Peer::PrometheusAdapter, Peer::Keda] {
        for (from, rule) in table(peer) {
            let ValueRule::To(paths) = rule else { continue };
            for path in *paths {
                let pointer = format!("/properties/{}", path.replace('.', "/properties/"));
                assert!(
                    schema.pointer(&pointer).is_some(),
                    "{from} becomes {path}, which the chart does not have"
                );
            }
        }
    }
}
