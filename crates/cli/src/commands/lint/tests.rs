use std::sync::atomic::{AtomicU32, Ordering};

use engine::KubernetesVersion;

use super::*;

/// The rules that find something in manifests, with the messages.
fn found(text: &str) -> Vec<(&'static str, String)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("plimsoll-lint-{}-{number}.yaml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let gathered = gather::from_files(std::slice::from_ref(&file), KubernetesVersion::default());
    std::fs::remove_file(&file).unwrap();
    let Gathered { autoscalers, targets } = gathered.map_err(|failure| failure.to_string()).unwrap();
    let (found, _) = lint(&autoscalers, &targets);
    found
        .into_iter()
        .map(|finding| (finding.rule, format!("{} | {}", finding.message, finding.remedy)))
        .collect()
}

fn rules(text: &str) -> Vec<&'static str> {
    found(text).into_iter().map(|(rule, _)| rule).collect()
}

fn deployment(containers: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  \
         template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{containers}]}}}}\n---\n"
    )
}

fn hpa(name: &str, more: &str) -> String {
    format!(
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\nspec:\n  maxReplicas: 9\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}\n{more}---\n"
    )
}

fn cpu(percent: i32) -> String {
    format!(
        "  metrics: [{{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: {percent}}}}}}}]\n"
    )
}

fn container_cpu(container: &str) -> String {
    let target = "target: {type: Utilization, averageUtilization: 50}";
    format!(
        "  metrics: [{{type: ContainerResource, containerResource: {{name: cpu, container: {container}, {target}}}}}]\n"
    )
}

const GOOD: &str = "{name: application, resources: {requests: {cpu: 100m}, limits: {cpu: 1}}}";

#[test]
fn good_autoscaler_has_no_finding() {
    assert_eq!(rules(&(deployment(GOOD) + &hpa("web", &cpu(50)))), [""; 0]);
    assert_eq!(rules(&(deployment(GOOD) + &hpa("web", &container_cpu("application")))), [""; 0]);
    assert_eq!(rules(&hpa("web", &cpu(50))), [""; 0], "its target is not known");
}

#[test]
fn missing_requests_and_limits_are_found() {
    let containers = format!("{GOOD}, {{name: sidecar}}");
    let missing = found(&(deployment(&containers) + &hpa("web", &cpu(50))));
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].0, "MissingRequest");
    assert!(missing[0].1.contains("container sidecar of Deployment/web without cpu request"), "{missing:?}");
    // The container that is measured has one.
    assert_eq!(rules(&(deployment(&containers) + &hpa("web", &container_cpu("application")))), [""; 0]);
    // A limit alone is also a request; requests of the pod as a whole are enough.
    assert_eq!(
        rules(&(deployment("{name: a, resources: {limits: {cpu: 1}}}") + &hpa("web", &cpu(50)))),
        [""; 0]
    );
    let autoscaler = "apiVersion: plimsoll.dev/v1alpha1\nkind: Autoscaler\nmetadata: {name: web}\nspec:\n  maxReplicas: 9\n  \
        scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  metrics: [{type: Resource, resource: {name: cpu, target: \
        {type: Utilization, averageUtilization: 50, percentageOf: limits}}}]\n";
    let unlimited = deployment("{name: a, resources: {requests: {cpu: 1}}}") + autoscaler;
    assert_eq!(rules(&unlimited), ["MissingLimit"]);
    assert_eq!(rules(&(deployment(GOOD) + autoscaler)), [""; 0]);
}

#[test]
fn unknown_container_is_found_with_the_nearest() {
    let unknown = found(&(deployment(GOOD) + &hpa("web", &container_cpu("aplication"))));
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0].0, "UnknownContainer");
    assert!(unknown[0].1.contains("have no container aplication | did you mean application?"), "{unknown:?}");
}

#[test]
fn two_autoscalers_on_one_target_are_found() {
    let two = deployment(GOOD) + &hpa("web", &cpu(50)) + &hpa("too", &cpu(50));
    assert_eq!(rules(&two), ["TwoAutoscalers"; 2]);
    let dry = two
        .replace("metadata: {name: too}", "metadata: {name: too, annotations: {plimsoll.dev/mode: dry-run}}");
    assert_eq!(rules(&dry), [""; 0]);
    let scaled = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: orders}\nspec:\n  scaleTargetRef: {name: web}\n  \
        triggers: [{type: cpu, metricType: Utilization, metadata: {value: '50'}}]\n---\n";
    assert_eq!(rules(&(deployment(GOOD) + scaled)), [""; 0]);
    assert_eq!(rules(&(deployment("{name: a}") + scaled)), ["MissingRequest"]);
    assert_eq!(rules(&(deployment(GOOD) + &hpa("web", &cpu(50)) + scaled)), ["TwoAutoscalers"; 2]);
}

#[test]
fn counts_and_behavior_of_a_scaled_object_are_checked() {
    let scaled = |more: &str| {
        format!(
            "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: orders}}\nspec:\n  scaleTargetRef: {{name: web}}\n  \
             triggers: [{{type: cpu, metricType: Utilization, metadata: {{value: '50'}}}}]\n{more}"
        )
    };
    let with = |more: &str| rules(&(deployment(GOOD) + &scaled(more)));
    assert_eq!(with("  minReplicaCount: 5\n  maxReplicaCount: 5\n"), ["NeverActs"]);
    assert_eq!(
        with("  idleReplicaCount: 0\n  minReplicaCount: 5\n  maxReplicaCount: 5\n"),
        [""; 0],
        "it scales from 0 to 5"
    );
    let disabled = "behavior: {scaleUp: {selectPolicy: Disabled}}";
    let advanced = format!("  advanced: {{horizontalPodAutoscalerConfig: {{{disabled}}}}}\n");
    assert_eq!(with(&advanced), ["NeverActs"]);
}

#[test]
fn behavior_that_can_never_act_is_found() {
    let with = |more: &str| rules(&(deployment(GOOD) + &hpa("web", &(cpu(50) + more))));
    let disabled = "selectPolicy: Disabled";
    assert_eq!(
        with(&format!("  behavior: {{scaleUp: {{{disabled}}}, scaleDown: {{{disabled}}}}}\n")),
        ["NeverActs"]
    );
    assert_eq!(with(&format!("  behavior: {{scaleUp: {{{disabled}}}}}\n")), ["NeverActs"]);
    assert_eq!(with(&format!("  behavior: {{scaleDown: {{{disabled}}}}}\n")), [""; 0], "it may only grow");
    assert_eq!(with("  behavior: {scaleDown: {tolerance: 1}}\n"), ["NeverActs"]);
    assert_eq!(with("  minReplicas: 9\n"), ["NeverActs"]);
    // The limit is the request: usage never exceeds 100 %.
    let tight = deployment("{name: a, resources: {requests: {cpu: 1}, limits: {cpu: 1}}}");
    assert_eq!(rules(&(tight.clone() + &hpa("web", &cpu(95)))), ["NeverActs"]);
    assert_eq!(rules(&(tight + &hpa("web", &cpu(80)))), [""; 0]);
}

#[test]
fn target_below_idle_usage_is_found_where_it_is_known() {
    let scenario = |idle: &str| {
        format!(
            "apiVersion: plimsoll.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: s}}\nspec:\n  workloads:\n  - target: {{name: web}}\n    \
             containers: [{{name: application, cpu: {{idle: {idle}}}}}]\n"
        )
    };
    let with = |idle: &str| rules(&(deployment(GOOD) + &hpa("web", &cpu(50)) + &scenario(idle)));
    assert_eq!(with("60m"), ["TargetBelowIdle"]);
    assert_eq!(with("10m"), [""; 0]);
}

#[test]
fn text_names_rule_place_and_remedy() {
    let finding = LintFinding {
        autoscaler: "hpa/web".into(),
        namespace: "shop".into(),
        place: "f.yaml:3".into(),
        rule: "MissingRequest",
        field: "spec.metrics[0].resource".into(),
        message: "no request".into(),
        remedy: "give one".into(),
    };
    let page = Page { width: None, colour: false };
    assert_eq!(
        text(page, &[finding], &["so/a: Deployment/b is not known, so it was not compared".into()], 2),
        "\
✗ f.yaml:3: shop/hpa/web: no request (MissingRequest)
    spec.metrics[0].resource
    remedy: give one
· so/a: Deployment/b is not known, so it was not compared
1 finding in 2 autoscalers
"
    );
}
