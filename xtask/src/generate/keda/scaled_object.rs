//! ScaledObject (docs/spec/keda.md 1.1).

use super::{Column, Definition, conditions, triggers, triggers_activity};
use crate::generate::schema::{Schema, any_quantity, flag, list, map, number, object, text, time, word};

pub(super) fn definition() -> Definition {
    Definition {
        group: api::keda::GROUP,
        kind: "ScaledObject",
        plural: "scaledobjects",
        short_names: &["so"],
        namespaced: true,
        columns: vec![
            Column::text("ScaleTargetKind", ".status.scaleTargetKind"),
            Column::text("ScaleTargetName", ".spec.scaleTargetRef.name"),
            Column::number("Min", ".spec.minReplicaCount"),
            Column::number("Max", ".spec.maxReplicaCount"),
            Column::condition("Ready"),
            Column::condition("Active"),
            Column::condition("Fallback"),
            Column::condition("Paused"),
            Column::text("Triggers", ".status.triggersTypes"),
            Column::text("Authentications", ".status.authenticationsTypes"),
            Column::age(),
        ],
        about: "A workload that is scaled by events, from zero.",
        schema: (spec().required(), status()),
    }
}

fn spec() -> Schema {
    let target = object(
        "What is scaled.",
        [
            ("apiVersion", text("Group and version; without it, apps/v1.")),
            ("kind", text("Kind; without it, Deployment.")),
            ("name", text("Name.").said().required()),
            (
                "envSourceContainerName",
                text("The container whose variables parameters may name; without it, the first."),
            ),
        ],
    );
    let cooldown = "Seconds after the last activity in which nothing is scaled to zero; without it, 300.";
    let initial = "Seconds after its creation in which nothing that was never active is scaled to zero.";
    object(
        "What is wanted.",
        [
            ("scaleTargetRef", target.required()),
            ("pollingInterval", number("Seconds between two rounds; without it, 30.").at_least(1)),
            ("initialCooldownPeriod", number(initial).at_least(0)),
            ("cooldownPeriod", number(cooldown).at_least(0)),
            ("idleReplicaCount", number("Replicas while nothing is active, below the minimum.").at_least(0)),
            ("minReplicaCount", number("Lower bound; without it, 0.").at_least(0)),
            ("maxReplicaCount", number("Upper bound; without it, 100.").at_least(1)),
            ("advanced", advanced()),
            ("triggers", triggers(true)),
            ("fallback", fallback()),
        ],
    )
    .rule(
        "!has(self.minReplicaCount) || self.minReplicaCount <= (has(self.maxReplicaCount) ? self.maxReplicaCount : 100)",
        "minReplicaCount must be less than or equal to maxReplicaCount",
    )
}

fn advanced() -> Schema {
    let config = object(
        "The autoscaler that is made.",
        [
            ("name", text("Its name; without it, keda-hpa- and the name of the ScaledObject.")),
            ("behavior", behavior()),
        ],
    );
    let modifiers = object(
        "A formula over the triggers.",
        [
            ("formula", text("The formula.")),
            ("target", text("What its result is held against: a number above 0.")),
            ("activationTarget", text("Above this it is active; without it, 0.")),
            (
                "metricType",
                word("How the target is meant; without it, AverageValue.", &["AverageValue", "Value"]),
            ),
        ],
    );
    object(
        "Restoring, the autoscaler's name and behavior, formulas.",
        [
            (
                "restoreToOriginalReplicaCount",
                flag("Whether the first count is restored when this is deleted."),
            ),
            ("horizontalPodAutoscalerConfig", config),
            ("scalingModifiers", modifiers),
        ],
    )
}

/// That of `autoscaling/v2`, as loose as KEDA's: the API server judges the autoscaler that is made of it.
fn behavior() -> Schema {
    let rules = |about: &str| {
        let policy = object(
            "One limit on the change per period.",
            [
                ("type", text("Whether value counts pods (Pods) or is a percentage (Percent).").required()),
                ("value", number("How many pods, or what percentage.").required()),
                ("periodSeconds", number("The period.").required()),
            ],
        );
        object(
            about,
            [
                (
                    "stabilizationWindowSeconds",
                    number("How long past recommendations still count.").at_least(0).at_most(3600),
                ),
                ("selectPolicy", text("Which policy counts: Max, Min or Disabled.")),
                ("policies", list("Limits on the change per period.", policy).atomic()),
                (
                    "tolerance",
                    any_quantity("How far the metric may be off before anything happens, as a fraction."),
                ),
            ],
        )
    };
    object(
        "Rates and stabilization in both directions.",
        [("scaleUp", rules("Rules for growing.")), ("scaleDown", rules("Rules for shrinking."))],
    )
}

fn fallback() -> Schema {
    let behaviors = [
        "static",
        "currentReplicas",
        "currentReplicasIfHigher",
        "currentReplicasIfLower",
        "scalingModifiers",
    ];
    object(
        "What to do when a source fails.",
        [
            ("failureThreshold", number("So many failures are borne.").at_least(0).required()),
            ("replicas", number("Then there are so many replicas.").at_least(0).required()),
            ("behavior", word("How that number is used.", &behaviors).or("static")),
        ],
    )
}

fn status() -> Schema {
    let resolved = object(
        "What the target was found to be.",
        [
            ("group", text("Group.").required()),
            ("version", text("Version.").required()),
            ("kind", text("Kind.").required()),
            ("resource", text("Plural.").required()),
        ],
    );
    let health = object(
        "How a metric fares.",
        [("numberOfFailures", number("Failures in a row.")), ("status", text("Happy or Failing."))],
    );
    let names = |about: &str| list(about, text("A name."));
    object(
        "What was last seen and done.",
        [
            ("scaleTargetKind", text("Group, version and kind of the target.")),
            ("scaleTargetGVKR", resolved),
            ("originalReplicaCount", number("Replicas when the target was first seen.")),
            ("lastActiveTime", time("When something was last active.")),
            ("externalMetricNames", names("All external metrics, in the order of the triggers.")),
            ("resourceMetricNames", names("All resource metrics.")),
            ("compositeScalerName", text("The metric that a formula makes of the others.")),
            ("conditions", conditions()),
            ("health", map("Failures of each metric, by its name.", health)),
            ("triggersActivity", triggers_activity()),
            ("pausedReplicaCount", number("The count at which it is paused.")),
            ("hpaName", text("The autoscaler that was made.")),
            ("triggersTypes", text("Types of triggers, with commas.")),
            ("authenticationsTypes", text("Names of authentications, with commas.")),
        ],
    )
}
