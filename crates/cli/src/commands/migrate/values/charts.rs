//! The values of the charts of metrics-server, prometheus-adapter and KEDA.

use serde_json::{Map, Value, json};

use super::super::Peer;
use super::convert::ValueRule::{By, Lost, To, Unneeded};
use super::convert::{ConvertedValues, ValueTable};
use super::flags::{keda_arguments, keda_variables, metrics_arguments};
use super::permissions::keda_permissions;

const IMAGE: &str = "one image is used for all roles";
const NAMES: &str = "names are fixed, because the APIs are registered once in a cluster";
const OWN_ROLES: &str = "every role has a service account and permissions of its own";
const RESTRICTED: &str = "pods always meet the restricted security profile";
const ONE_PROCESS: &str = "the operator serves this API itself, so there is no such pod";
const OWN_PROBES: &str = "probes have a port of their own";
const SPREAD: &str = "use topologySpread.topologyKeys";
const BUDGET: &str = "budgets allow one unavailable pod; podDisruptionBudgets.enabled switches them";
const NO_SIDECARS: &str = "there are no additional containers";
const NETWORK: &str = "pods are on the network of the cluster, where API servers must reach them";
const POD_MONITOR: &str = "there is no PodMonitor; use monitoring.serviceMonitor";
const GENERATED_ISSUER: &str = "KEDA's chart creates it; Plimsoll's chart creates one of its own";
/// The fields of a reference to an issuer of cert-manager.
const ISSUER_FIELDS: [&str; 3] = ["name", "kind", "group"];

/// The table of a chart.
pub(super) fn table(peer: Peer) -> ValueTable {
    match peer {
        Peer::MetricsServer => METRICS_SERVER,
        Peer::PrometheusAdapter => PROMETHEUS_ADAPTER,
        Peer::Keda => KEDA,
        // It has no chart.
        Peer::Hpa => &[],
    }
}

const METRICS_SERVER: ValueTable = &[
    ("image", Lost(IMAGE)),
    ("imagePullSecrets", To(&["imagePullSecrets"])),
    ("nameOverride", Lost(NAMES)),
    ("fullnameOverride", Lost(NAMES)),
    ("serviceAccount.annotations", To(&["metrics.serviceAccount.annotations"])),
    ("serviceAccount", Lost(OWN_ROLES)),
    ("rbac", Unneeded),
    ("apiService.create", To(&["metrics.apiServices.resource"])),
    ("apiService.insecureSkipTLSVerify", Unneeded),
    ("apiService.caBundle", Unneeded),
    ("podLabels", To(&["metrics.podLabels"])),
    ("podAnnotations", To(&["metrics.podAnnotations"])),
    ("podSecurityContext", Lost(RESTRICTED)),
    ("securityContext", Lost(RESTRICTED)),
    ("priorityClassName", To(&["metrics.priorityClassName"])),
    ("containerPort", Unneeded),
    ("hostNetwork.enabled", By(host_network)),
    ("replicas", To(&["metrics.replicas"])),
    ("updateStrategy", Unneeded),
    ("podDisruptionBudget.enabled", To(&["podDisruptionBudgets.enabled"])),
    ("podDisruptionBudget.minAvailable", Lost(BUDGET)),
    ("podDisruptionBudget.maxUnavailable", Lost(BUDGET)),
    ("defaultArgs", By(server_arguments)),
    ("args", By(server_arguments)),
    ("livenessProbe", Lost(OWN_PROBES)),
    ("readinessProbe", Lost(OWN_PROBES)),
    ("metrics.enabled", Unneeded),
    ("serviceMonitor.enabled", To(&["monitoring.serviceMonitor.enabled"])),
    ("serviceMonitor.additionalLabels", To(&["monitoring.serviceMonitor.labels"])),
    ("serviceMonitor.interval", By(scrape_interval)),
    ("resources", To(&["metrics.resources"])),
    ("addonResizer.enabled", By(addon_resizer)),
    ("extraVolumes", To(&["metrics.extraVolumes"])),
    ("extraVolumeMounts", To(&["metrics.extraVolumeMounts"])),
    ("nodeSelector", To(&["metrics.nodeSelector"])),
    ("tolerations", To(&["metrics.tolerations"])),
    ("topologySpreadConstraints", Lost(SPREAD)),
    ("affinity", Lost(SPREAD)),
    ("tmpVolume", Unneeded),
    ("tls.type", By(tls_type)),
];

const PROMETHEUS_ADAPTER: ValueTable = &[
    ("image", Lost(IMAGE)),
    ("image.pullSecrets", By(pull_secrets)),
    ("nameOverride", Lost(NAMES)),
    ("fullnameOverride", Lost(NAMES)),
    ("namespaceOverride", Lost(NAMES)),
    ("prometheus", Unneeded),
    ("rules", Unneeded),
    ("replicas", To(&["metrics.replicas"])),
    ("logLevel", By(log_level)),
    ("metricsRelistInterval", To(&["metrics.prometheus.relistInterval"])),
    ("listenPort", Unneeded),
    ("extraArguments", By(server_arguments)),
    ("env", To(&["metrics.env"])),
    ("rbac", Unneeded),
    ("psp", Unneeded),
    ("serviceAccount.annotations", To(&["metrics.serviceAccount.annotations"])),
    ("serviceAccount", Lost(OWN_ROLES)),
    ("resources", To(&["metrics.resources"])),
    ("priorityClassName", To(&["metrics.priorityClassName"])),
    ("podLabels", To(&["metrics.podLabels"])),
    ("podAnnotations", To(&["metrics.podAnnotations"])),
    ("nodeSelector", To(&["metrics.nodeSelector"])),
    ("tolerations", To(&["metrics.tolerations"])),
    ("affinity", Lost(SPREAD)),
    ("topologySpreadConstraints", Lost(SPREAD)),
    ("extraVolumes", To(&["metrics.extraVolumes"])),
    ("extraVolumeMounts", To(&["metrics.extraVolumeMounts"])),
    ("extraContainers", Lost(NO_SIDECARS)),
    ("podDisruptionBudget.enabled", To(&["podDisruptionBudgets.enabled"])),
    ("podDisruptionBudget.minAvailable", Lost(BUDGET)),
    ("podDisruptionBudget.maxUnavailable", Lost(BUDGET)),
    ("podSecurityContext", Lost(RESTRICTED)),
    ("securityContext", Lost(RESTRICTED)),
    ("hostNetwork.enabled", By(host_network)),
    ("certManager.enabled", By(cert_manager)),
    ("tls.enable", By(own_certificate)),
    ("strategy", Unneeded),
];

const KEDA: ValueTable = &[
    ("image", Lost(IMAGE)),
    ("imagePullSecrets", To(&["imagePullSecrets"])),
    ("crds.install", To(&["crds.keda"])),
    ("watchNamespace", By(watch_namespace)),
    ("networkPolicy.enabled", To(&["networkPolicies.enabled"])),
    ("clusterName", By(cluster_name)),
    ("clusterDomain", By(cluster_domain)),
    ("operator.replicaCount", To(&["operator.replicas"])),
    ("operator.extraContainers", Lost(NO_SIDECARS)),
    ("operator.extraInitContainers", Lost(NO_SIDECARS)),
    ("operator.livenessProbe", Lost(OWN_PROBES)),
    ("operator.readinessProbe", Lost(OWN_PROBES)),
    ("operator.affinity", Lost(SPREAD)),
    ("operator.name", Lost(NAMES)),
    ("operator.disableCompression", Unneeded),
    ("operator.revisionHistoryLimit", Unneeded),
    ("metricsServer", Lost(ONE_PROCESS)),
    ("metricsServer.replicaCount", Unneeded),
    ("metricsServer.useHostNetwork", By(host_network)),
    ("webhooks.enabled", To(&["operator.webhook.enabled"])),
    ("webhooks.failurePolicy", To(&["operator.webhook.failurePolicy"])),
    ("webhooks.replicaCount", Unneeded),
    ("webhooks.useHostNetwork", By(host_network)),
    ("podIdentity.aws.irsa", By(irsa)),
    ("podIdentity.gcp", By(gcp)),
    ("podIdentity.azureWorkload", By(azure)),
    // Older releases of the chart have one service account.
    ("serviceAccount.annotations", To(&["operator.serviceAccount.annotations"])),
    ("serviceAccount.operator.annotations", To(&["operator.serviceAccount.annotations"])),
    ("serviceAccount", Lost(OWN_ROLES)),
    ("rbac", By(keda_permissions)),
    ("permissions.operator.restrict.secret", To(&["operator.restrictSecretAccess"])),
    ("extraArgs.keda", By(keda_extra)),
    ("extraArgs.metricsAdapter", Lost(ONE_PROCESS)),
    ("env", By(keda_env)),
    ("http.timeout", By(http_timeout)),
    ("http.keepAlive.enabled", By(http_keep_alive)),
    ("http.minTlsVersion", By(http_tls)),
    ("podAnnotations.keda", To(&["operator.podAnnotations"])),
    ("podAnnotations.metricsAdapter", Lost(ONE_PROCESS)),
    ("podAnnotations.webhooks", Lost(ONE_PROCESS)),
    ("podLabels.keda", To(&["operator.podLabels"])),
    ("podLabels.metricsAdapter", Lost(ONE_PROCESS)),
    ("podLabels.webhooks", Lost(ONE_PROCESS)),
    ("resources.operator", To(&["operator.resources"])),
    ("resources.metricServer", Lost(ONE_PROCESS)),
    ("resources.webhooks", Lost(ONE_PROCESS)),
    ("nodeSelector", To(&["operator.nodeSelector"])),
    ("tolerations", To(&["operator.tolerations"])),
    ("affinity", Lost(SPREAD)),
    ("topologySpreadConstraints", Lost(SPREAD)),
    ("priorityClassName", To(&["operator.priorityClassName"])),
    ("podSecurityContext", Lost(RESTRICTED)),
    ("securityContext", Lost(RESTRICTED)),
    ("logging.operator.level", By(keda_log_level)),
    ("logging.operator.format", Unneeded),
    ("logging.operator.timeEncoding", Unneeded),
    ("logging.metricServer", Lost(ONE_PROCESS)),
    ("logging.webhooks", Lost(ONE_PROCESS)),
    ("prometheus.operator.enabled", Unneeded),
    ("prometheus.operator.serviceMonitor.enabled", To(&["monitoring.serviceMonitor.enabled"])),
    ("prometheus.operator.serviceMonitor.interval", By(scrape_interval)),
    ("prometheus.operator.serviceMonitor.additionalLabels", To(&["monitoring.serviceMonitor.labels"])),
    ("prometheus.operator.podMonitor", Lost(POD_MONITOR)),
    ("prometheus.operator.prometheusRules.enabled", To(&["monitoring.prometheusRule.enabled"])),
    ("prometheus.operator.prometheusRules.additionalLabels", To(&["monitoring.prometheusRule.labels"])),
    ("prometheus.metricServer", Lost(ONE_PROCESS)),
    ("prometheus.webhooks", Lost(ONE_PROCESS)),
    ("certificates.autoGenerated", Unneeded),
    ("certificates.certManager.enabled", By(cert_manager)),
    ("certificates.certManager.issuer", By(certificate_issuer)),
    ("certificates.operator.caDirs", By(ca_folders)),
    ("volumes.keda.extraVolumes", To(&["operator.extraVolumes"])),
    ("volumes.keda.extraVolumeMounts", To(&["operator.extraVolumeMounts"])),
    ("volumes.metricsApiServer", Lost(ONE_PROCESS)),
    ("volumes.webhooks", Lost(ONE_PROCESS)),
    ("opentelemetry.collector.uri", To(&["monitoring.opentelemetry.endpoint"])),
    ("opentelemetry.operator.enabled", To(&["monitoring.opentelemetry.metrics"])),
    ("profiling", Lost("there is no Go runtime to profile")),
    ("upgradeStrategy", Unneeded),
    ("asciiArt", Unneeded),
];

/// Address and rules of prometheus-adapter, which are in several values. Rules in a file take precedence.
pub(super) fn complete_adapter(converted: &mut ConvertedValues, given: &Value, file: Option<Value>) {
    let text = |pointer: &str| given.pointer(pointer).and_then(Value::as_str);
    let url = text("/prometheus/url").unwrap_or("http://prometheus.default.svc");
    let port = match given.pointer("/prometheus/port") {
        None => ":9090".to_owned(),
        Some(Value::Number(port)) if port.as_i64() != Some(0) => format!(":{port}"),
        Some(Value::String(port)) if !port.is_empty() => format!(":{port}"),
        Some(_) => String::new(),
    };
    let path = text("/prometheus/path").unwrap_or_default();
    let address = format!("{url}{port}{path}");
    if address.contains("{{") {
        converted.lose("prometheus.url", "it is a template of that chart: set metrics.prometheus.url");
    } else {
        converted.set("metrics.prometheus.url", json!(address));
    }
    if let Some(rules) = file {
        converted.set("metrics.prometheus.rules", rules);
        return;
    }
    let rules = given.pointer("/rules");
    let existing = text("/rules/existing").filter(|name| !name.is_empty());
    let has_default = rules.and_then(|rules| rules.get("default")).and_then(Value::as_bool).unwrap_or(true);
    if let Some(name) = existing {
        converted.lose("rules.existing", &format!("give the text of ConfigMap {name} with --rules"));
    } else if has_default {
        converted.lose(
            "rules.default",
            "the default rules are in the chart: give config.yaml of the adapter's ConfigMap with --rules",
        );
    }
    for (from, to) in [("custom", "rules"), ("external", "externalRules"), ("resource", "resourceRules")] {
        let found = rules.and_then(|rules| rules.get(from)).filter(|found| !found.is_null());
        let is_empty = |found: &Value| found == &json!([]) || found == &json!({});
        if let Some(found) = found.filter(|found| !is_empty(found)) {
            converted.set(&format!("metrics.prometheus.rules.{to}"), found.clone());
        }
    }
}

fn words(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A scalar as Helm prints it.
fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value that KEDA's chart makes a flag of its operator.
fn keda_flag(converted: &mut ConvertedValues, path: &str, name: &str, value: &Value) {
    let value = scalar(value);
    if !value.is_empty() {
        keda_arguments(converted, path, &[format!("--{name}={value}")]);
    }
}

/// A value that KEDA's chart makes a variable of its operator.
fn variable(converted: &mut ConvertedValues, path: &str, name: &str, value: &str) {
    keda_variables(converted, path, &[json!({"name": name, "value": value})]);
}

fn server_arguments(converted: &mut ConvertedValues, path: &str, value: &Value) {
    metrics_arguments(converted, path, &words(value));
}

/// prometheus-adapter's chart lists the names of Secrets, and not references to them.
fn pull_secrets(converted: &mut ConvertedValues, _path: &str, value: &Value) {
    for name in words(value) {
        converted.push("imagePullSecrets", json!({"name": name}));
    }
}

/// An empty interval is that of Prometheus, as in the values of KEDA's chart.
fn scrape_interval(converted: &mut ConvertedValues, _path: &str, value: &Value) {
    if !scalar(value).is_empty() {
        converted.set("monitoring.serviceMonitor.interval", value.clone());
    }
}

fn host_network(converted: &mut ConvertedValues, path: &str, value: &Value) {
    if value == &json!(true) {
        converted.lose(path, NETWORK);
    }
}

fn addon_resizer(converted: &mut ConvertedValues, path: &str, value: &Value) {
    if value == &json!(true) {
        converted.lose(path, "memory is small and grows little with nodes; set metrics.resources");
    }
}

fn tls_type(converted: &mut ConvertedValues, path: &str, value: &Value) {
    match value.as_str() {
        Some("metrics-server" | "helm") | None => {}
        Some("cert-manager") => converted.set("certificates.mode", json!("cert-manager")),
        Some(_) => converted.lose(path, "use certificates.mode: self makes and renews certificates"),
    }
}

fn cert_manager(converted: &mut ConvertedValues, _path: &str, value: &Value) {
    if value == &json!(true) {
        converted.set("certificates.mode", json!("cert-manager"));
    }
}

/// The issuer of KEDA's certificates. Unless `generate` is false, KEDA's chart creates it and ignores the name.
fn certificate_issuer(converted: &mut ConvertedValues, path: &str, value: &Value) {
    if value.get("generate") != Some(&json!(false)) {
        converted.lose(path, GENERATED_ISSUER);
        return;
    }
    let field = |name: &str| value.get(name).filter(|field| !field.is_null()).cloned();
    let fields = ISSUER_FIELDS.into_iter().filter_map(|name| Some((name.to_owned(), field(name)?)));
    converted.set("certificates.issuerRef", Value::Object(fields.collect::<Map<String, Value>>()));
}

fn own_certificate(converted: &mut ConvertedValues, path: &str, value: &Value) {
    if value == &json!(true) {
        converted.lose(path, "use certificates.mode: self makes and renews certificates");
    }
}

fn log_level(converted: &mut ConvertedValues, path: &str, value: &Value) {
    let value = scalar(value);
    if !value.is_empty() {
        metrics_arguments(converted, path, &[format!("--v={value}")]);
    }
}

fn keda_log_level(converted: &mut ConvertedValues, path: &str, value: &Value) {
    keda_flag(converted, path, "zap-log-level", value);
}

fn watch_namespace(converted: &mut ConvertedValues, path: &str, value: &Value) {
    variable(converted, path, "WATCH_NAMESPACE", &scalar(value));
}

fn cluster_name(converted: &mut ConvertedValues, path: &str, value: &Value) {
    keda_flag(converted, path, "k8s-cluster-name", value);
}

fn cluster_domain(converted: &mut ConvertedValues, path: &str, value: &Value) {
    keda_flag(converted, path, "k8s-cluster-domain", value);
}

fn ca_folders(converted: &mut ConvertedValues, path: &str, value: &Value) {
    for folder in words(value) {
        keda_flag(converted, path, "ca-dir", &json!(folder));
    }
}

fn keda_extra(converted: &mut ConvertedValues, path: &str, value: &Value) {
    let arguments = value.as_object().into_iter().flatten();
    let words: Vec<String> = arguments.map(|(name, value)| format!("--{name}={}", scalar(value))).collect();
    keda_arguments(converted, path, &words);
}

fn keda_env(converted: &mut ConvertedValues, path: &str, value: &Value) {
    keda_variables(converted, path, value.as_array().map(Vec::as_slice).unwrap_or_default());
}

fn http_timeout(converted: &mut ConvertedValues, path: &str, value: &Value) {
    variable(converted, path, "KEDA_HTTP_DEFAULT_TIMEOUT", &scalar(value));
}

fn http_keep_alive(converted: &mut ConvertedValues, path: &str, value: &Value) {
    if value == &json!(false) {
        variable(converted, path, "KEDA_HTTP_DISABLE_KEEP_ALIVE", "true");
    }
}

fn http_tls(converted: &mut ConvertedValues, path: &str, value: &Value) {
    variable(converted, path, "KEDA_HTTP_MIN_TLS_VERSION", &scalar(value));
}

/// An annotation of the operator's service account, by which a cloud knows it.
fn annotation(converted: &mut ConvertedValues, name: &str, value: Option<&Value>) {
    let value = value.filter(|value| !value.is_null()).map(scalar).unwrap_or_default();
    if !value.is_empty() {
        converted.set("operator.serviceAccount.annotations", json!({name: value}));
    }
}

fn is_enabled(value: &Value) -> bool {
    value.get("enabled") == Some(&json!(true))
}

fn irsa(converted: &mut ConvertedValues, _path: &str, value: &Value) {
    if is_enabled(value) {
        annotation(converted, "eks.amazonaws.com/role-arn", value.get("roleArn"));
        annotation(converted, "eks.amazonaws.com/audience", value.get("audience"));
        annotation(converted, "eks.amazonaws.com/sts-regional-endpoints", value.get("stsRegionalEndpoints"));
        annotation(converted, "eks.amazonaws.com/token-expiration", value.get("tokenExpiration"));
    }
}

fn gcp(converted: &mut ConvertedValues, _path: &str, value: &Value) {
    if is_enabled(value) {
        annotation(converted, "iam.gke.io/gcp-service-account", value.get("gcpIAMServiceAccount"));
        // KEDA's chart selects the nodes with a metadata server, which gives the identity.
        converted.set("operator.nodeSelector", json!({"iam.gke.io/gke-metadata-server-enabled": "true"}));
    }
}

fn azure(converted: &mut ConvertedValues, _path: &str, value: &Value) {
    if is_enabled(value) {
        annotation(converted, "azure.workload.identity/client-id", value.get("clientId"));
        annotation(converted, "azure.workload.identity/tenant-id", value.get("tenantId"));
        let expiration = value.get("tokenExpiration");
        annotation(converted, "azure.workload.identity/service-account-token-expiration", expiration);
        converted.set("operator.podLabels", json!({"azure.workload.identity/use": "true"}));
    }
}
