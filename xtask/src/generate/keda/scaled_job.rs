//! ScaledJob (docs/spec/keda.md 1.2).

use super::{Column, Definition, conditions, job, triggers, triggers_activity};
use crate::generate::schema::{Schema, list, number, object, text, time, word};

pub(super) fn definition() -> anyhow::Result<Definition> {
    Ok(Definition {
        group: api::keda::GROUP,
        kind: "ScaledJob",
        plural: "scaledjobs",
        short_names: &["sj"],
        namespaced: true,
        columns: vec![
            Column::number("Min", ".spec.minReplicaCount"),
            Column::number("Max", ".spec.maxReplicaCount"),
            Column::condition("Ready"),
            Column::condition("Active"),
            Column::condition("Paused"),
            Column::text("Triggers", ".status.triggersTypes"),
            Column::text("Authentications", ".status.authenticationsTypes"),
            Column::age(),
        ],
        about: "Jobs that are created by events.",
        schema: (spec()?, status()),
    })
}

fn spec() -> anyhow::Result<Schema> {
    let strategies = ["gradual", "immediate"];
    let rollout = object(
        "What becomes of jobs of an older generation.",
        [
            ("strategy", word("gradual keeps them; immediate, the default, deletes them.", &strategies)),
            (
                "propagationPolicy",
                word("How they are deleted; without it, background.", &["foreground", "background"]),
            ),
        ],
    );
    let strategy = object(
        "How many jobs are created.",
        [
            ("strategy", word("How running jobs count.", &["default", "custom", "accurate", "eager"])),
            ("customScalingQueueLengthDeduction", number("For custom: so many fewer.")),
            ("customScalingRunningJobPercentage", text("For custom: this share of the running ones counts.")),
            (
                "pendingPodConditions",
                list("Conditions that a pod must have for its job to have started.", text("A condition.")),
            ),
            (
                "multipleScalersCalculation",
                word(
                    "How several triggers become one number; without it, max.",
                    &["min", "avg", "sum", "max"],
                ),
            ),
        ],
    );
    Ok(object(
        "What is wanted.",
        [
            ("jobTargetRef", job::spec()?.required()),
            ("pollingInterval", number("Seconds between two rounds; without it, 30.").at_least(1)),
            (
                "successfulJobsHistoryLimit",
                number("Complete jobs that are kept; without it, 100.").at_least(0),
            ),
            ("failedJobsHistoryLimit", number("Failed jobs that are kept; without it, 100.").at_least(0)),
            ("rolloutStrategy", word("The older place of rollout.strategy; it wins.", &strategies)),
            ("rollout", rollout),
            (
                "envSourceContainerName",
                text("The container whose variables parameters may name; without it, the first."),
            ),
            ("minReplicaCount", number("Jobs that run at least; without it, 0.").at_least(0)),
            ("maxReplicaCount", number("Jobs that run at most; without it, 100.").at_least(1)),
            ("scalingStrategy", strategy),
            ("triggers", triggers(false)),
        ],
    ))
}

fn status() -> Schema {
    object(
        "What was last seen and done.",
        [
            ("lastActiveTime", time("When something was last active.")),
            ("conditions", conditions()),
            ("Paused", text("Never written.")),
            ("triggersTypes", text("Types of triggers, with commas.")),
            ("authenticationsTypes", text("Names of authentications, with commas.")),
            ("externalMetricNames", list("Never written.", text("A name."))),
            ("triggersActivity", triggers_activity()),
        ],
    )
}
