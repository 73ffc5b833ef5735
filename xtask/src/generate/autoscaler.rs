//! `autoscalers.plimsoll.dev`: every field of `api::plimsoll` and of the status it shares with `autoscaling/v2`.
//!
//! Defaults are those of `api::plimsoll` that do not depend on other fields; the controller fills in the rest when it
//! reads an object.

use api::autoscaling::Defaults;
use api::autoscaling::v2::HorizontalPodAutoscalerBehavior;
use api::plimsoll::{AutoscalerSpec, GROUP, KIND};
use serde_json::{Value, json};

use super::schema::{Schema, flag, labels, list, metadata, number, object, quantity, text, word};
use super::status::status;

const PLURAL: &str = "autoscalers";
const TARGETS: [&str; 3] = ["Utilization", "Value", "AverageValue"];
/// Each type of metric with the field that holds its source.
const SOURCES: [(&str, &str); 6] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Metric", "metric"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// The definition, for `kubectl apply`.
pub(super) fn definition() -> Value {
    let column = |name: &str, kind: &str, path: &str, about: &str| {
        // What is not plain to everybody is shown to those who ask for more.
        let priority = i32::from(name == "Kind");
        json!({"name": name, "type": kind, "jsonPath": path, "description": about, "priority": priority})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND, "listKind": format!("{KIND}List"), "plural": PLURAL, "singular": "autoscaler",
                "shortNames": ["pas"],
            },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "additionalPrinterColumns": [
                    column("Kind", "string", ".spec.scaleTargetRef.kind", "Kind of what is scaled."),
                    column("Reference", "string", ".spec.scaleTargetRef.name", "What is scaled."),
                    column("MinPods", "integer", ".spec.minReplicas", "Lower bound."),
                    column("MaxPods", "integer", ".spec.maxReplicas", "Upper bound."),
                    column("Replicas", "integer", ".status.currentReplicas", "Replicas last seen."),
                    column("Desired", "integer", ".status.desiredReplicas", "Replicas last decided on."),
                    column("Age", "date", ".metadata.creationTimestamp", "Time since it was made."),
                ],
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": object(
                    "Scales a workload between two bounds so that its metrics meet their targets.",
                    [
                        ("apiVersion", text("plimsoll.dev/v1alpha1.")),
                        ("kind", text("Autoscaler.")),
                        ("metadata", metadata()),
                        ("spec", spec().required()),
                        ("status", status()),
                    ],
                ).into_value()},
            }],
        },
    })
}

fn spec() -> Schema {
    let mut filled = AutoscalerSpec::default();
    filled.set_defaults();
    let without_pods = "self.minReplicas > 0 || self.metrics.exists(m, m.type in ['External', 'Object'] || \
                        has(m.metric) && !(has(m.metric.from.current) && m.metric.from.current == 'pod'))";
    object(
        "What is wanted: the spec of autoscaling/v2, and more.",
        [
            ("scaleTargetRef", reference("The object whose scale is driven.").required()),
            ("minReplicas", number("Lower bound.").at_least(0).or(filled.min_replicas)),
            ("maxReplicas", number("Upper bound.").at_least(1).required()),
            (
                "metrics",
                list("The metrics; without any, cpu at 80 percent of what the pods request.", metric())
                    .or(json!(filled.metrics)),
            ),
            ("behavior", behavior()),
            (
                "replicasAggregator",
                word(
                    "How the proposals of several metrics become one: max (as Kubernetes does), min, or average (the \
                     mean, rounded up).",
                    &["max", "min", "average"],
                )
                .or(filled.replicas_aggregator),
            ),
            (
                "syncPeriodSeconds",
                number("Time between two decisions; without it, the controller's own period.").at_least(1),
            ),
            ("dryRun", flag("Decide and report, but do not scale.")),
        ],
    )
    .rule("self.minReplicas <= self.maxReplicas", "maxReplicas must be greater than or equal to minReplicas")
    .rule(
        without_pods,
        "to scale to zero, at least one metric must not be measured on the pods: nothing would ever grow again",
    )
}

pub(super) fn reference(about: &str) -> Schema {
    object(
        about,
        [
            ("apiVersion", text("Its group and version.")),
            ("kind", text("Its kind.").said().required()),
            ("name", text("Its name.").said().required()),
        ],
    )
}

fn metric() -> Schema {
    let types = SOURCES.map(|(kind, _)| kind);
    let described = reference("The object.").required();
    let whole = || name_of("The metric's name and selector.").required();
    let aim = || target().required();
    let resource = || text("The resource, for example cpu.").said().required();
    let metric = object(
        "One metric and its target; type says which of the sources is filled.",
        [
            ("type", word("Which source is filled.", &types).required()),
            (
                "containerResource",
                object(
                    "A resource one container of each pod requests.",
                    [
                        ("container", text("The container's name.").said().required()),
                        ("name", resource()),
                        ("target", resource_target().required()),
                    ],
                ),
            ),
            (
                "external",
                object(
                    "A metric not tied to any object of the cluster.",
                    [("metric", whole()), ("target", aim())],
                ),
            ),
            ("metric", anywhere()),
            (
                "object",
                object(
                    "A metric describing one other object.",
                    [("describedObject", described), ("metric", whole()), ("target", aim())],
                ),
            ),
            (
                "pods",
                object(
                    "A metric describing each pod of the target.",
                    [("metric", whole()), ("target", aim())],
                ),
            ),
            (
                "resource",
                object(
                    "A resource the pods request.",
                    [("name", resource()), ("target", resource_target().required())],
                ),
            ),
            ("onFailure", on_failure()),
        ],
    );
    SOURCES.iter().fold(metric, |metric, (kind, field)| {
        metric.rule(
            &format!("has(self.{field}) == (self.type == '{kind}')"),
            &format!("{field} must be set if type is {kind}, and only then"),
        )
    })
}

/// A metric of our own type: by name, measured wherever it says.
fn anywhere() -> Schema {
    let from = object(
        "Where it is measured; without it, on each pod of the target.",
        [
            (
                "current",
                word(
                    "pod: each pod of the target; namespace: the autoscaler's own; target: the object that is scaled.",
                    &["pod", "namespace", "target"],
                ),
            ),
            ("object", reference("Another object of the namespace.")),
        ],
    )
    .rule("has(self.current) != has(self.object)", "either current or object must be set")
    .or(json!({"current": "pod"}));
    let target = object("What to aim for; its type follows from the value that is set.", values(false))
        .rule("has(self.value) != has(self.averageValue)", "either value or averageValue must be set")
        .rule("!has(self.averageUtilization)", "only resources have requests to be a percentage of")
        .rule(
            "!has(self.type) || self.type == (has(self.value) ? 'Value' : 'AverageValue')",
            "type must be Value when value is set, and AverageValue when averageValue is",
        );
    object(
        "A metric by name, measured wherever its from says.",
        [
            ("from", from),
            ("metric", name_of("The metric's name and selector.").required()),
            ("target", target.required()),
        ],
    )
    .rule(
        "!has(self.target.value) || !has(self.from.current) || self.from.current != 'pod'",
        "a metric of each pod has no total; set averageValue",
    )
}

pub(super) fn name_of(about: &str) -> Schema {
    let operators = ["In", "NotIn", "Exists", "DoesNotExist"];
    let condition = object(
        "One condition on a label.",
        [
            ("key", text("The label's key.").required()),
            ("operator", word("How its value relates to the values.", &operators).required()),
            ("values", list("The values of In and NotIn.", text("A value."))),
        ],
    );
    let selector = object(
        "Which of its series; without it, the metric as such.",
        [
            ("matchExpressions", list("Further conditions; all must hold.", condition)),
            ("matchLabels", labels("Labels that must have exactly these values.")),
        ],
    );
    object(about, [("name", text("The metric's name.").said().required()), ("selector", selector)])
}

/// The forms of a target. Where the value says which it is, the type can be left out.
fn values(typed: bool) -> [(&'static str, Schema); 4] {
    let kind = word("Which of the values is meant.", &TARGETS);
    [
        ("type", if typed { kind.required() } else { kind }),
        ("averageUtilization", number("The mean over the pods in percent of what they request.").at_least(1)),
        ("averageValue", quantity("The mean over the pods.")),
        ("value", quantity("The total.")),
    ]
}

fn target() -> Schema {
    object("What to aim for.", values(true))
}

fn resource_target() -> Schema {
    let [kind, utilization, average, value] = values(true);
    let percentage = word(
        "What averageUtilization is a percentage of: the pods' requests (as Kubernetes does) or their limits.",
        &["requests", "limits"],
    );
    object("What to aim for.", [kind, utilization, average, value, ("percentageOf", percentage)]).rule(
        "!has(self.percentageOf) || has(self.averageUtilization)",
        "percentageOf may only be set together with averageUtilization",
    )
}

fn on_failure() -> Schema {
    object(
        "What to do while the metric cannot be read. Without it, as Kubernetes: growing goes on without it, shrinking waits \
         for it.",
        [
            (
                "policy",
                word(
                    "hold: do not scale at all; ignore: as if the metric were not listed; lastGood: its last proposal stands \
                     for some time; static: it proposes a fixed number.",
                    &["hold", "ignore", "lastGood", "static"],
                )
                .required(),
            ),
            (
                "forSeconds",
                number("How long the last good proposal stands; then the metric fails as usual.").at_least(1),
            ),
            ("replicas", number("The number proposed by static.").at_least(0)),
        ],
    )
    .rule("has(self.forSeconds) == (self.policy == 'lastGood')", "forSeconds must be set with lastGood, and only then")
    .rule("has(self.replicas) == (self.policy == 'static')", "replicas must be set with static, and only then")
}

fn behavior() -> Schema {
    let mut filled = HorizontalPodAutoscalerBehavior::default();
    filled.set_defaults();
    let (up, down) = (filled.scale_up.unwrap_or_default(), filled.scale_down.unwrap_or_default());
    let rules = |about: &str, window: Schema, policies: Value| {
        let policy = object(
            "One limit on the change per period.",
            [
                (
                    "type",
                    word("Whether value counts pods or is a percentage.", &["Pods", "Percent"]).required(),
                ),
                ("value", number("How many pods, or what percentage.").at_least(1).required()),
                ("periodSeconds", number("The period.").at_least(1).at_most(1800).required()),
            ],
        );
        object(
            about,
            [
                ("stabilizationWindowSeconds", window.at_least(0).at_most(3600)),
                (
                    "selectPolicy",
                    word("Which policy counts; Disabled: no change at all.", &["Max", "Min", "Disabled"])
                        .or("Max"),
                ),
                ("policies", list("Limits on the change per period.", policy).filled().or(policies)),
                (
                    "tolerance",
                    quantity("How far the metric may be off before anything happens, as a fraction."),
                ),
            ],
        )
        .or(json!({}))
    };
    let window = "How long past recommendations still count";
    object(
        "Rates and stabilization in both directions.",
        [
            (
                "scaleUp",
                rules(
                    "Rules for growing.",
                    number(&format!("{window}.")).or(up.stabilization_window_seconds),
                    json!(up.policies),
                ),
            ),
            (
                "scaleDown",
                rules(
                    "Rules for shrinking.",
                    number(&format!("{window}; without it, as long as the controller is set to.")),
                    json!(down.policies),
                ),
            ),
        ],
    )
}
