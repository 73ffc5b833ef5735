//! The Helm chart: Helm accepts it, both API servers accept what it renders, and `deploy/` is rendered from it.

use std::process::Command;

use serde_json::{Value, json};
use testbed::harness::Failure;
use testbed::program::TempFolder;
use testbed::{Helm, Prometheus};

use crate::conditional::{FEDERATED, OPTIONAL};
use crate::env::on_both;
use crate::shared::manifests::{folder, objects, repository};
use crate::shared::program::program;

/// Kinds whose definitions the clusters of tests do not have.
const FOREIGN_GROUPS: [&str; 2] = ["cert-manager.io/", "monitoring.coreos.com/"];

/// Runs Helm in the repository; an error is its error output.
pub(crate) fn helm(arguments: &[&str]) -> Result<String, String> {
    let helm = Helm::ensure().unwrap().helm;
    let output = Command::new(helm).current_dir(repository()).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// The objects that the chart renders with these values.
pub(crate) fn rendered(values: &[String]) -> Vec<Value> {
    let mut arguments = vec!["template", "plimsoll", "charts/plimsoll", "--namespace", "plimsoll-system"];
    arguments.extend(values.iter().map(String::as_str));
    let text = helm(&arguments).unwrap_or_else(|error| panic!("{values:?}: {error}"));
    objects("the rendered chart", &text).into_iter().filter(|object| !object.is_null()).collect()
}

/// Values of the charts of the replaced programs, and what the chart renders with their conversion.
const PEER_VALUES: [(&str, &str, &str); 3] = [
    (
        "metrics-server",
        "args: [--kubelet-insecure-tls, --node-selector=a=b]\nreplicas: 3\nextraVolumes: [{name: ca, emptyDir: {}}]\n",
        "--node-selector=a=b",
    ),
    (
        "prometheus-adapter",
        "prometheus: {url: http://p.svc, port: 80}\nrules: {default: false, custom: [{seriesQuery: a}]}\nimage: {pullSecrets: [registry]}\n",
        "--prometheus-url=http://p.svc:80",
    ),
    (
        "keda",
        "watchNamespace: shop\nlogging: {operator: {level: debug}}\nhttp: {timeout: 5000}\ncrds: {install: false}\n\
         rbac: {scaledRefKinds: [{apiGroup: argoproj.io, kind: rollouts}]}\n\
         prometheus: {operator: {serviceMonitor: {enabled: true, interval: '', additionalLabels: {release: a}}}}\n",
        "--zap-log-level=debug",
    ),
];

/// Every combination of roles, modes and sources of certificates.
pub(crate) fn combinations() -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for roles in 0..8_u8 {
        for mode in ["shadow", "active"] {
            for certificates in ["self", "cert-manager"] {
                for prometheus in ["", "http://prometheus.monitoring.svc:9090"] {
                    all.push(vec![
                        format!("--set=controller.enabled={}", roles & 1 != 0),
                        format!("--set=metrics.enabled={}", roles & 2 != 0),
                        format!("--set=operator.enabled={}", roles & 4 != 0),
                        format!("--set=controller.mode={mode}"),
                        format!("--set=certificates.mode={certificates}"),
                        format!("--set=metrics.prometheus.url={prometheus}"),
                        "--set=metrics.apiServices.external=false".to_owned(),
                        "--set=networkPolicies.enabled=true".to_owned(),
                        "--set=monitoring.serviceMonitor.enabled=true".to_owned(),
                        "--set=monitoring.prometheusRule.enabled=true".to_owned(),
                        "--set=monitoring.dashboard.enabled=true".to_owned(),
                        "--set=monitoring.opentelemetry.endpoint=http://collector.telemetry.svc:4318"
                            .to_owned(),
                        "--set=monitoring.opentelemetry.metrics=true".to_owned(),
                        "--set=monitoring.opentelemetry.traces=true".to_owned(),
                    ]);
                }
            }
        }
    }
    for roles in 1..8_u8 {
        for certificates in ["self", "cert-manager"] {
            let mut values = vec!["--set=singleProcess.enabled=true,controller.mode=active".to_owned()];
            values.push(format!("--set=controller.enabled={}", roles & 1 != 0));
            values.push(format!("--set=metrics.enabled={}", roles & 2 != 0));
            values.push(format!("--set=operator.enabled={}", roles & 4 != 0));
            values.push(format!("--set=certificates.mode={certificates}"));
            values.push("--set=metrics.prometheus.url=http://prometheus.monitoring.svc:9090".to_owned());
            values
                .push("--set=networkPolicies.enabled=true,monitoring.serviceMonitor.enabled=true".to_owned());
            all.push(values);
        }
    }
    all
}

/// Objects of one kind.
pub(crate) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn roles_in_one_process_share_a_deployment_and_an_account() {
    let all =
        "--set=singleProcess.enabled=true,controller.mode=active,metrics.enabled=true,operator.enabled=true";
    let objects = rendered(&[all.to_owned(), "--set=operator.extraArgs={--act=direct}".to_owned()]);
    let deployments = of_kind(&objects, "Deployment");
    assert_eq!(deployments.len(), 1, "{deployments:#?}");
    let arguments = &deployments[0]["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(
        (&arguments[0], &arguments[1]),
        (&json!("run"), &json!("--roles=controller,metrics,operator"))
    );
    assert!(arguments.as_array().unwrap().contains(&json!("--act=direct")), "{arguments}");
    let collector = "monitoring.opentelemetry.endpoint=http://c:4318,monitoring.opentelemetry.traces=true";
    let observed = rendered(&[format!("{all},{collector},monitoring.opentelemetry.metrics=true")]);
    let arguments = &of_kind(&observed, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["args"];
    for wanted in ["--otlp-traces-endpoint=http://c:4318", "--enable-opentelemetry-metrics"] {
        let given = arguments.as_array().unwrap().iter().filter(|argument| **argument == wanted);
        assert_eq!(given.count(), 1, "{wanted} in {arguments}");
    }
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        let ours =
            of_kind(&objects, kind).into_iter().flat_map(|binding| binding["subjects"].as_array().unwrap());
        let mut ours = ours.filter(|subject| subject["namespace"] == "plimsoll-system");
        assert!(ours.all(|subject| subject["name"] == "plimsoll"), "{kind}");
    }
    let services = of_kind(&objects, "Service");
    assert_eq!(services.len(), 4, "that of the process and those of the roles");
    assert!(
        services
            .iter()
            .all(|service| service["spec"]["selector"] == json!({"app.kubernetes.io/name": "plimsoll"}))
    );
    let external = of_kind(&objects, "APIService")
        .into_iter()
        .filter(|api| api["spec"]["group"] == "external.metrics.k8s.io");
    assert_eq!(external.count(), 1);
    for (values, message) in [
        ("--set=singleProcess.enabled=true", "needs controller.mode=active"),
        ("--set=singleProcess.enabled=true,controller.enabled=false", "needs a role"),
    ] {
        let error = helm(&["template", "plimsoll", "charts/plimsoll", values]).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn network_policy_opens_the_port_of_the_collector() {
    for (endpoint, port) in [
        ("http://collector.telemetry.svc:4318", 4318),
        ("https://collector.telemetry.svc:55681/v1/traces", 55681),
        ("http://collector.telemetry.svc", 80),
    ] {
        let objects = rendered(&[
            "--set=controller.mode=active,networkPolicies.enabled=true".to_owned(),
            format!(
                "--set=monitoring.opentelemetry.endpoint={endpoint},monitoring.opentelemetry.traces=true"
            ),
        ]);
        let policies = of_kind(&objects, "NetworkPolicy");
        let controller = policies.iter().find(|policy| policy["metadata"]["name"] == "plimsoll-controller");
        let rules = controller.unwrap()["spec"]["egress"].as_array().unwrap();
        let mut open = rules.iter().flat_map(|rule| rule["ports"].as_array().into_iter().flatten());
        assert!(open.any(|open| open["port"] == port), "{endpoint}: {rules:#?}");
    }
    for signal in ["metrics", "traces"] {
        let without = format!("--set=monitoring.opentelemetry.{signal}=true");
        let error = helm(&["template", "plimsoll", "charts/plimsoll", &without]).unwrap_err();
        assert!(error.contains("set monitoring.opentelemetry.endpoint"), "{error}");
    }
}

#[test]
fn helm_accepts_the_chart() {
    helm(&["lint", "--strict", "charts/plimsoll"]).unwrap();
    let unknown = ["template", "plimsoll", "charts/plimsoll", "--set=controler.mode=active"];
    let error = helm(&unknown).unwrap_err();
    assert!(error.contains("controler"), "{error}");
    let both = "--set=metrics.enabled=true,operator.enabled=true,metrics.prometheus.url=http://p:9090";
    let error = helm(&["template", "plimsoll", "charts/plimsoll", both]).unwrap_err();
    assert!(error.contains("external.metrics.k8s.io has one server"), "{error}");
}

#[test]
fn both_api_servers_accept_every_combination() -> Result<(), Failure> {
    // Many combinations share most of their objects, so each object is tried once.
    let mut tried: Vec<Value> = Vec::new();
    let others = [FEDERATED, OPTIONAL].map(|values| vec![values.to_owned()]);
    for values in combinations().into_iter().chain(others) {
        for object in rendered(&values) {
            let version = object["apiVersion"].as_str().unwrap_or_default();
            if FOREIGN_GROUPS.iter().any(|group| version.starts_with(group)) {
                continue;
            }
            if !tried.contains(&object) {
                tried.push(object);
            }
        }
    }
    assert!(tried.iter().filter(|object| object["kind"] == "Deployment").count() >= 6, "{}", tried.len());
    on_both(async |env| {
        env.apply(&folder("deploy"), |kind| kind == "Namespace").await;
        env.apply(&tried, |_| false).await;
    })
}

#[test]
fn chart_accepts_converted_values_of_the_replaced_programs() {
    for (peer, theirs, rendered_text) in PEER_VALUES {
        let temp_folder = TempFolder::new().unwrap();
        let file = temp_folder.write("theirs.yaml", theirs).unwrap();
        let converted = Command::new(program())
            .args(["migrate", "values", "--strict", "--from", peer])
            .arg(file)
            .output()
            .unwrap();
        assert!(converted.status.success(), "{peer}: {converted:?}");
        let ours = temp_folder.write("ours.yaml", &String::from_utf8_lossy(&converted.stdout)).unwrap();
        let objects = rendered(&[format!("--values={}", ours.display())]);
        let deployments: Vec<&Value> =
            objects.iter().filter(|object| object["kind"] == "Deployment").collect();
        assert!(
            deployments.iter().any(|object| object.to_string().contains(rendered_text)),
            "{peer}: {deployments:#?}"
        );
    }
}

#[test]
fn with_cert_manager_no_role_may_write_secrets_or_ca_bundles() {
    let values = [
        "certificates.mode=cert-manager",
        "metrics.enabled=true",
        "operator.enabled=true",
        "controller.mode=active",
    ];
    for object in rendered(&values.map(|value| format!("--set={value}"))) {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let holds = |field: &str, value: &str| {
                rule[field].as_array().is_some_and(|all| all.contains(&json!(value)))
            };
            let writes = ["create", "update", "patch"].iter().any(|verb| holds("verbs", verb));
            let guarded = ["secrets", "apiservices", "validatingwebhookconfigurations"];
            let guarded = guarded.iter().any(|resource| holds("resources", resource));
            assert!(!(writes && guarded), "{} {}: {rule}", object["kind"], object["metadata"]["name"]);
        }
    }
}

#[test]
fn each_alert_fires_and_none_where_nothing_is_wrong() {
    let tests = repository().join("crates/testbed/tests/deploy/alerts.test.yaml");
    let [alerts, down] =
        ["alerts.yaml", "alerts-down.yaml"].map(|name| repository().join("charts/plimsoll/files").join(name));
    let names = [&alerts, &down].map(|file| std::fs::read_to_string(file).unwrap()).concat();
    let tested = std::fs::read_to_string(&tests).unwrap();
    for name in names.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tested.contains(&format!("alertname=\"{name}\"")), "{name} is not tested");
    }
    let promtool = Prometheus::ensure().unwrap().promtool;
    for (command, file) in [("check", alerts), ("check", down), ("test", tests)] {
        let output = Command::new(&promtool).args([command, "rules"]).arg(file).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&printed));
    }
}

#[test]
fn alerts_on_missing_targets_name_the_installed_services() {
    let monitored = "--set=monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true";
    let cases: [(&str, &[&str]); 4] = [
        ("controller.enabled=true", &["plimsoll-shadow"]),
        (
            "controller.mode=active,metrics.enabled=true,operator.enabled=true",
            &["plimsoll-controller", "plimsoll-metrics", "plimsoll-operator"],
        ),
        ("controller.enabled=false,operator.enabled=true", &["plimsoll-operator"]),
        ("singleProcess.enabled=true,controller.mode=active,metrics.enabled=true", &["plimsoll"]),
    ];
    for (values, jobs) in cases {
        let objects = rendered(&[format!("{monitored},{values}")]);
        let rules = &of_kind(&objects, "PrometheusRule")[0]["spec"]["groups"];
        let groups = rules.as_array().unwrap().iter();
        let down = groups.filter(|group| group["rules"][0]["alert"] == "PlimsollDown");
        let down: Vec<&str> =
            down.map(|group| group["rules"][0]["labels"]["job"].as_str().unwrap()).collect();
        assert_eq!(down, jobs, "{values}");
        let mut scraped: Vec<&str> = of_kind(&objects, "ServiceMonitor")
            .into_iter()
            .map(|object| {
                object["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"].as_str().unwrap()
            })
            .collect();
        scraped.sort_unstable();
        assert_eq!(scraped, jobs, "{values}");
    }
}

#[test]
fn metrics_of_alerts_and_dashboards_are_exported() {
    let mut sources = String::new();
    for part in ["cli", "controllers", "runtime", "serve"] {
        read_sources(&repository().join("crates").join(part).join("src"), &mut sources);
    }
    let alerts = std::fs::read_to_string(repository().join("charts/plimsoll/files/alerts.yaml")).unwrap();
    let alerts = alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let mut expressions: Vec<String> = alerts.map(str::to_owned).collect();
    for (name, dashboard) in dashboards() {
        let panels = dashboard["panels"].as_array().unwrap();
        assert!((8..=13).contains(&panels.len()), "{name}: {} panels", panels.len());
        collect_expressions(&dashboard, &mut expressions);
    }
    let names: Vec<&str> = expressions.iter().flat_map(|expression| metrics_in(expression)).collect();
    for &name in &names {
        let ends = ["_bucket", "_sum", "_count"];
        let name = ends.iter().find_map(|end| name.strip_suffix(*end)).unwrap_or(name);
        let own = name.strip_prefix("horizontal_pod_autoscaler_controller_").unwrap_or(name);
        assert!(sources.contains(&format!("\"{own}\"")), "{name} is not exported");
    }
    assert!(names.len() >= 20, "{names:?}");
}

/// The dashboards that the chart renders, by name.
fn dashboards() -> Vec<(String, Value)> {
    let objects = rendered(&["--set=monitoring.dashboard.enabled=true".to_owned()]);
    let dashboards = of_kind(&objects, "ConfigMap")
        .into_iter()
        .find(|object| object["metadata"]["name"] == "plimsoll-dashboard")
        .unwrap();
    let files = dashboards["data"].as_object().unwrap();
    files
        .iter()
        .map(|(name, text)| (name.clone(), serde_json::from_str(text.as_str().unwrap()).unwrap()))
        .collect()
}

#[test]
fn each_role_has_a_dashboard_and_causes_in_queries_exist() {
    let names: Vec<String> = dashboards().into_iter().map(|(name, _)| name).collect();
    let expected = ["controller", "metrics", "operator", "why"].map(|name| format!("plimsoll-{name}.json"));
    assert_eq!(names, expected);
    let catalogue = std::fs::read_to_string(repository().join("docs/diagnosis.md")).unwrap();
    let why =
        std::fs::read_to_string(repository().join("charts/plimsoll/files/dashboards/why.yaml")).unwrap();
    let selectors: Vec<&str> =
        why.split("cause=~\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    // The samples of a node that stays down are dropped after --keep, so that it is not a stale one any more.
    assert!(!why.contains("plimsoll_stale_nodes"), "{why}");
    assert!(selectors.len() >= 6, "{selectors:?}");
    for cause in selectors.iter().flat_map(|selector| selector.split('|')) {
        // Only the literal prefix of a pattern can be looked up.
        let known = match cause.split_once(".*") {
            Some((start, _)) => catalogue.contains(&format!("<a id=\"{start}")),
            None => catalogue.contains(&format!("<a id=\"{cause}\"></a>")),
        };
        assert!(known, "docs/diagnosis.md has no cause {cause}");
    }
}

/// All queries in a dashboard.
fn collect_expressions(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            into.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect_expressions(field, into));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_expressions(item, into)),
        _ => {}
    }
}

/// The names of metrics in a query: words outside of selectors and label lists that are neither functions nor operators.
fn metrics_in(query: &str) -> Vec<&str> {
    const LISTS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
    const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut names = Vec::new();
    let mut rest = query;
    while let Some(start) = rest.find(|c: char| is_word(c) || "{[\"'".contains(c)) {
        let closing = match rest.as_bytes()[start] {
            b'{' => Some('}'),
            b'[' => Some(']'),
            quote @ (b'"' | b'\'') => Some(char::from(quote)),
            _ => None,
        };
        if let Some(closing) = closing {
            let inside = &rest[start + 1..];
            rest = &inside[inside.find(closing).unwrap() + 1..];
            continue;
        }
        let word = &rest[start..];
        let (word, after) = word.split_at(word.find(|c: char| !is_word(c)).unwrap_or(word.len()));
        rest = after;
        if LISTS.contains(&word) {
            rest = after.split_once(')').map_or("", |(_, rest)| rest);
        } else if !OPERATORS.contains(&word)
            && !word.starts_with(|c: char| c.is_ascii_digit())
            && !after.trim_start().starts_with('(')
            && !is_aggregation(after)
        {
            names.push(word);
        }
    }
    names
}

/// Whether labels follow, as in `sum by (le) (…)`.
fn is_aggregation(after: &str) -> bool {
    ["by", "without"].iter().any(|word| {
        after.trim_start().strip_prefix(*word).is_some_and(|rest| rest.trim_start().starts_with('('))
    })
}

#[test]
fn metrics_are_found_in_queries() {
    let query =
        "histogram_quantile(0.99, sum by (le, job) (rate(a_bucket{b=\"c\"}[5m]))) > 3 and on (job) d == 0";
    assert_eq!(metrics_in(query), ["a_bucket", "d"]);
    assert_eq!(metrics_in("topk(10, e)"), ["e"]);
    assert_eq!(metrics_in("f > 0 unless f offset 15m"), ["f", "f"]);
}

fn read_sources(folder: &std::path::Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn plain_manifests_are_rendered_from_the_chart() {
    let mut xtask = Command::new(program().with_file_name("xtask"));
    let output = xtask.args(["chart", "--check"]).current_dir(repository()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
