//! What an Autoscaler shares with `autoscaling/v2`: its status.

use super::autoscaler::{name_of, reference};
use super::schema::{Schema, large, list, measured, number, object, text, time, word};

pub(super) fn status() -> Schema {
    let condition = object(
        "One aspect of what the autoscaler can do.",
        [
            ("type", text("AbleToScale, ScalingActive, ScalingLimited or ScaledToZero.").required()),
            ("status", word("Whether it is so.", &["True", "False", "Unknown"]).required()),
            ("lastTransitionTime", time("When the status last changed.").nullable()),
            ("reason", text("One word saying why.")),
            ("message", text("A sentence saying why.")),
        ],
    );
    object(
        "What was last seen and decided, as in autoscaling/v2.",
        [
            ("observedGeneration", large("The generation of the spec that was seen.")),
            ("lastScaleTime", time("When the number of replicas was last changed.")),
            ("currentReplicas", number("The replicas last seen.")),
            ("desiredReplicas", number("The replicas last decided on.")),
            (
                "currentMetrics",
                list("The metrics last seen, by position in the spec.", measurement()).nullable(),
            ),
            ("conditions", list("What the autoscaler can and cannot do.", condition)),
        ],
    )
}

fn measurement() -> Schema {
    let current = || {
        object(
            "Its value.",
            [
                ("averageUtilization", number("The mean over the pods in percent of what they request.")),
                ("averageValue", measured("The mean over the pods.")),
                ("value", measured("The total.")),
            ],
        )
        .required()
    };
    let metric = || name_of("The metric's name and selector.").required();
    let resource = || text("The resource.").required();
    object(
        "The last value of one metric; an empty type says that it could not be read.",
        [
            ("type", text("As in the spec, or empty.").required()),
            (
                "containerResource",
                object(
                    "A resource one container of each pod requests.",
                    [
                        ("container", text("The container's name.").required()),
                        ("current", current()),
                        ("name", resource()),
                    ],
                ),
            ),
            (
                "external",
                object("A metric from outside the cluster.", [("current", current()), ("metric", metric())]),
            ),
            (
                "object",
                object(
                    "A metric describing one other object.",
                    [
                        ("current", current()),
                        ("describedObject", reference("The object.").required()),
                        ("metric", metric()),
                    ],
                ),
            ),
            ("pods", object("A metric describing each pod.", [("current", current()), ("metric", metric())])),
            (
                "resource",
                object("A resource the pods request.", [("current", current()), ("name", resource())]),
            ),
        ],
    )
}
