use super::*;

/// The result for one document: its problems with their hints.
fn check_text(text: &str) -> (&'static str, Vec<String>) {
    check_by(ValidationRules::default(), text)
}

fn check_by(rules: ValidationRules, text: &str) -> (&'static str, Vec<String>) {
    let source = SourceFile::new("f", text.to_owned());
    let document = yaml::parse(&source).unwrap().pop().unwrap();
    let checked = kinds::check(&document, rules);
    let found = finding(&source, &document, &checked);
    assert_eq!(found.valid, found.checked != "no" && found.problems.is_empty());
    let shown = |problem: &Diagnostic| match &problem.hint {
        Some(hint) => format!("{problem}; {hint}"),
        None => problem.to_string(),
    };
    (found.checked, checked.problems().iter().map(shown).collect())
}

#[test]
fn misspelt_kinds_and_versions_are_not_valid() {
    let rows = [
        (
            "autoscaling/v2",
            "HorizontalPodAutoscalr",
            "autoscaling/v2 has no kind HorizontalPodAutoscalr in kind; did you mean `HorizontalPodAutoscaler`?",
        ),
        ("apps/v1", "Deploymnet", "apps/v1 has no kind Deploymnet in kind; did you mean `Deployment`?"),
        ("v1", "Deployment", "v1 has no kind Deployment in kind; Deployment is in apps/v1"),
        (
            "keda.sh/v1",
            "ScaledObject",
            "ScaledObject has no version keda.sh/v1; known: keda.sh/v1alpha1 in apiVersion",
        ),
        (
            "keda.k8s.io/v1alpha1",
            "ScaledObject",
            "ScaledObject has no version keda.k8s.io/v1alpha1; known: keda.sh/v1alpha1 in apiVersion",
        ),
        (
            "apps/v1",
            "HorizontalPodAutoscaler",
            "HorizontalPodAutoscaler has no version apps/v1; known: autoscaling/v2, autoscaling/v1, autoscaling/v2beta2, autoscaling/v2beta1",
        ),
    ];
    for (version, kind, expected) in rows {
        let (checked, problems) =
            check_text(&format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n"));
        assert_eq!((checked, problems.len()), ("all", 1), "{problems:?}");
        assert!(problems[0].ends_with(expected), "{}", problems[0]);
    }
}

#[test]
fn unknown_kinds_are_not_checked() {
    for (version, kind) in [("v1", "Service"), ("example.com/v1", "Widget"), ("batch/v1", "Job")] {
        let (checked, problems) =
            check_text(&format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n"));
        assert_eq!((checked, problems.len()), ("no", 0), "{kind}");
    }
}

#[test]
fn workloads_are_checked_where_scaling_depends_on_them() {
    let (checked, problems) = check_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: -3\n  selector: {matchLabels: {app: web}}\n  \
         template:\n    metadata: {labels: {app: shop}}\n    spec:\n      containers:\n      - {name: a, image: b, resources: {requests: {cpu: 2}, \
         limits: {cpu: 1}}}\n      - {name: a}\n",
    );
    assert_eq!(checked, "part");
    assert_eq!(
        problems,
        [
            "f:5:13: Invalid value: -3: must be greater than or equal to 0 in spec.replicas",
            "f:8:16: Invalid value: {\"app\":\"shop\"}: `selector` does not match template `labels` in spec.template.metadata.labels",
            "f:11:57: Invalid value: \"2\": must be less than or equal to cpu limit of 1 in spec.template.spec.containers[0].resources.requests[cpu]",
            "f:12:16: Duplicate value: \"a\" in spec.template.spec.containers[1].name",
        ]
    );
    for (kind, named) in [("StatefulSet", "statefulset"), ("ReplicaSet", "deployment")] {
        let text = "metadata: {name: web}\nspec: {selector: {}, template: {spec: {containers: [{name: a}]}}}";
        let (_, problems) = check_text(&format!("apiVersion: apps/v1\nkind: {kind}\n{text}\n"));
        assert!(problems[0].contains(&format!("empty selector is invalid for {named}")), "{problems:?}");
    }
    let (_, problems) = check_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: -3, template: 5}\n",
    );
    assert!(problems.iter().any(|problem| problem.contains("in spec.template")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("Invalid value: -3")), "{problems:?}");
}

const SCALED: &str = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: orders}\nspec:\n  scaleTargetRef: {name: orders}\n";

#[test]
fn triggers_are_checked_with_their_parameters() {
    let (checked, problems) = check_text(&format!(
        "{SCALED}  minReplicaCount: 9\n  maxReplicaCount: 3\n  pollInterval: 5\n  triggers:\n  - type: kafkaa\n    metadata: {{}}\n  - type: prometheus\n    \
         metadata: {{serverAddress: 'http://p', quer: up, threshold: many}}\n  - {{type: rabbitmq, metadata: {{queueName: q, host: 'amqp://h', mode: QueueLength, value: '5'}}}}\n"
    ));
    assert_eq!(checked, "all");
    let expected = [
        "MinReplicaCount=9 must be less than MaxReplicaCount=3 in spec.minReplicaCount",
        "unknown field `pollInterval` in spec; did you mean `pollingInterval`?",
        "there is no trigger type \"kafkaa\" in spec.triggers[0].type; did you mean `kafka`?",
        "prometheus has no parameter \"quer\" in spec.triggers[1].metadata[quer]; did you mean `query`?",
        "missing required parameter \"query\" in [triggerMetadata] in spec.triggers[1].metadata[query]",
        "unable to set param \"threshold\" value \"many\"",
    ];
    for text in expected {
        assert!(problems.iter().any(|problem| problem.contains(text)), "{text}: {problems:#?}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
}

#[test]
fn parameters_of_authentications_are_not_missing() {
    let (_, problems) = check_text(&format!(
        "{SCALED}  triggers:\n  - type: rabbitmq\n    metadata: {{queueName: q, mode: QueueLength, value: '5'}}\n    authenticationRef: {{name: a}}\n  - type: postgresql\n    metadata: {{query: SELECT 1, targetQueryValue: '5', connectionFromEnv: DSN}}\n"
    ));
    assert_eq!(problems, [""; 0]);
    // What an authentication cannot complete is a problem.
    let (_, problems) = check_text(&format!(
        "{SCALED}  triggers:\n  - type: prometheus\n    metadata: {{serverAddress: 'http://p', threshold: many}}\n    authenticationRef: {{name: a}}\n"
    ));
    for field in ["query", "threshold"] {
        let field = format!("in spec.triggers[0].metadata[{field}]");
        assert!(problems.iter().any(|problem| problem.ends_with(&field)), "{field}: {problems:?}");
    }
    assert_eq!(problems.len(), 2, "{problems:?}");
    let (_, problems) = check_text(&format!("{SCALED}  triggers: []\n"));
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn parameters_are_those_of_the_release_of_keda() {
    let check = |keda: KedaProfile, trigger: &str| {
        let rules = ValidationRules { keda, ..ValidationRules::default() };
        check_by(rules, &format!("{SCALED}  triggers:\n  - {trigger}\n")).1
    };
    // Refused since 2.21.
    let old = "{type: temporal, metadata: {endpoint: 'h:7233', taskQueue: q, buildId: b}}";
    assert_eq!(check(KedaProfile::V2_20, old), [""; 0]);
    let problems = check(KedaProfile::V2_21, old);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("is removed in v2.21"), "{problems:?}");
    // Ignored before 2.21.
    let new =
        "{type: temporal, metadata: {endpoint: 'h:7233', taskQueue: q, includeRunningWorkflowCount: 'true'}}";
    assert_eq!(check(KedaProfile::V2_21, new), [""; 0]);
    let problems = check(KedaProfile::V2_20, new);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let text = "KEDA 2.20 ignores \"includeRunningWorkflowCount\" in spec.triggers[0].metadata[includeRunningWorkflowCount]; \
                it exists since KEDA 2.21 (`--keda-profile 2.21`)";
    assert!(problems[0].ends_with(text), "{problems:?}");
}

#[test]
fn scaled_objects_beside_a_scenario_are_checked() {
    let checked = |triggers: &str| {
        let scenario = include_str!("../../../../../examples/php-apache.yaml");
        let source = SourceFile::new("f", format!("{scenario}---\n{SCALED}  triggers:\n  - {triggers}\n"));
        let (mut findings, mut problems) = (Vec::new(), Vec::new());
        check(&source, ValidationRules::default(), &mut findings, &mut problems).unwrap();
        let kinds: Vec<String> = findings.iter().map(|finding| finding.kind.clone()).collect();
        assert_eq!(kinds, ["Scenario", "ScaledObject"]);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(checked("{type: cpu, metricType: Utilization, metadata: {value: '50'}}"), [""; 0]);
    let problems = checked("{type: kafkaa, metadata: {}}");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("there is no trigger type"), "{problems:?}");
}

#[test]
fn authentications_and_jobs_are_checked() {
    let (checked, problems) = check_text(
        "apiVersion: keda.sh/v1alpha1\nkind: TriggerAuthentication\nmetadata: {name: a}\nspec:\n  secretTargetReff: []\n",
    );
    assert_eq!((checked, problems.len()), ("all", 1), "{problems:?}");
    assert!(
        problems[0].contains("unknown field `secretTargetReff` in spec; did you mean `secretTargetRef`?")
    );
    let (_, problems) = check_text(
        "apiVersion: keda.sh/v1alpha1\nkind: TriggerAuthentication\nmetadata: {name: a}\nspec:\n  oauth2: {type: password}\n",
    );
    assert!(
        problems
            .iter()
            .any(|problem| problem.contains("oauth2.type must be 'clientCredentials', got 'password'")),
        "{problems:?}"
    );
    let (_, problems) = check_text(
        "apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {name: a}\nspec:\n  triggers:\n  - {type: cron, metadata: {}}\n",
    );
    assert!(
        problems.iter().any(|problem| problem.contains("Required value in spec.jobTargetRef")),
        "{problems:?}"
    );
    assert!(problems.iter().any(|problem| problem.contains("missing required parameter")), "{problems:?}");
}

const HPA: &str = "kind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n";

#[test]
fn all_problems_of_a_document_are_reported_at_once() {
    let (_, problems) = check_text(&format!(
        "apiVersion: autoscaling/v2\n{HPA}  minReplicas: 5\n  maxReplicas: 2\n  behaviour: {{}}\n"
    ));
    assert_eq!(
        problems,
        [
            "f:7:16: Invalid value: 2: must be greater than or equal to `minReplicas` in spec.maxReplicas",
            "f:8:3: unknown field `behaviour` in spec; did you mean `behavior`?",
        ]
    );
    // What follows from a misspelt field is not reported.
    let (_, problems) = check_text(&format!("apiVersion: autoscaling/v2\n{HPA}  maxReplica: 2\n"));
    assert_eq!(problems, ["f:6:3: unknown field `maxReplica` in spec; did you mean `maxReplicas`?"]);
}

#[test]
fn the_version_whose_shape_a_file_has_is_named() {
    let flat = "  maxReplicas: 3\n  metrics:\n  - {type: Resource, resource: {name: cpu, targetAverageUtilization: 60}}\n";
    let (_, problems) = check_text(&format!("apiVersion: autoscaling/v2\n{HPA}{flat}"));
    assert_eq!(
        problems,
        [
            "f:1:13: the fields of this object are those of autoscaling/v2beta1, not of autoscaling/v2 in apiVersion; write \
          autoscaling/v2beta1; `plimsoll convert --to autoscaling/v2` converts it"
        ]
    );
    let draft = "  maxReplicas: 3\n  metrics:\n  - {type: ContainerResource, resource: {name: cpu, container: app, target: {type: Utilization, averageUtilization: 5}}}\n";
    let (_, problems) = check_text(&format!("apiVersion: autoscaling/v2\n{HPA}{draft}"));
    let named = |problem: &String| {
        problem.contains("unknown field `container`") && problem.ends_with("`containerResource:`")
    };
    assert!(problems.iter().any(named), "{problems:?}");
}
