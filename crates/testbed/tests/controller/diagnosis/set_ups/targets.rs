//! Set-ups whose targets or modes are wrong.

use serde_json::{Value, json};

use super::{READY_POD, SetUp, SetUpKind, TestTarget, hpa, set_up, with, with_pods};
use crate::env::{cpu, queue};

fn on(api_version: &str, kind: &str, name: &str) -> Value {
    let target = json!({"apiVersion": api_version, "kind": kind, "name": name});
    with(hpa(&cpu(50)), "scaleTargetRef", target)
}

pub(super) fn set_ups() -> Vec<SetUp> {
    let shared = "several autoscalers select the same pods: ";
    let none = || TestTarget::Nothing;
    // The metric proposes one more replica, which no limit changes.
    let recommended = || TestTarget::Recommended { replicas: 2, wanted: 3 };
    let toy = |kind: &str, name: &str| on("toys.example.com/v1", kind, name);
    vec![
        set_up(
            "gone",
            none(),
            on("apps/v1", "Deployment", "nobody"),
            "target-not-found",
            "Deployment {ns}/nobody does not exist",
        ),
        set_up(
            "no-kind",
            none(),
            on("apps/v1", "Deploiment", "web"),
            "target-kind-unknown",
            "the cluster does not know the kind of Deploiment {ns}/web",
        ),
        set_up(
            "no-scale",
            TestTarget::Gadget,
            toy("Gadget", "no-scale"),
            "no-scale-subresource",
            "the kind of Gadget {ns}/no-scale has no scale subresource",
        ),
        set_up(
            "denied",
            TestTarget::Widget { selector: Some("app=denied") },
            toy("Widget", "denied"),
            "rbac-missing",
            "the scale of Widget {ns}/denied is not accessible: system:serviceaccount:plimsoll-system:plimsoll-controller may \
             not get widgets/scale in toys.example.com",
        ),
        set_up(
            "unreadable",
            TestTarget::Widget { selector: Some("app=unreadable") },
            toy("Widget", "unreadable"),
            "scale-unreadable",
            "the scale of Widget {ns}/unreadable cannot be read: ",
        ),
        set_up(
            "no-selector",
            TestTarget::Widget { selector: None },
            toy("Widget", "no-selector"),
            "selector-missing",
            "the scale of Widget {ns}/no-selector has no selector",
        ),
        set_up(
            "bad-selector",
            TestTarget::Widget { selector: Some("app in (") },
            toy("Widget", "bad-selector"),
            "scale-unreadable",
            "the scale of Widget {ns}/bad-selector cannot be read: ",
        ),
        set_up(
            "frozen",
            recommended(),
            hpa(&queue("frozen")),
            "scale-not-written",
            "the count 3 could not be written: ",
        ),
        set_up(
            "zero",
            TestTarget::Empty(0),
            hpa(&cpu(50)),
            "target-at-zero",
            "the target was scaled to zero by another client, which disables autoscaling",
        ),
        set_up("twin-a", with_pods(&[READY_POD; 2]), hpa(&cpu(50)), "pods-of-two-autoscalers", shared),
        set_up("twin-b", none(), on("apps/v1", "Deployment", "twin-a"), "pods-of-two-autoscalers", shared),
        set_up(
            "overlap-a",
            TestTarget::Labelled("overlap"),
            hpa(&cpu(50)),
            "pods-of-two-autoscalers",
            shared,
        ),
        set_up(
            "overlap-b",
            TestTarget::Labelled("overlap"),
            hpa(&cpu(50)),
            "pods-of-two-autoscalers",
            shared,
        ),
        set_up(
            "wide",
            TestTarget::Wide,
            hpa(&cpu(50)),
            "selector-too-wide",
            "the selector also matches 2 pods of StatefulSet/database",
        ),
        set_up("off", recommended(), hpa(&queue("off")), "autoscaler-off", "it is off: nothing is decided")
            .mode("off"),
        set_up(
            "shadow",
            recommended(),
            hpa(&queue("shadow")),
            "shadow-mode",
            "shadow mode: another controller acts, this one only compares",
        )
        .mode("shadow"),
        set_up(
            "dry",
            recommended(),
            hpa(&queue("dry")),
            "dry-run",
            "dry run: decided and recorded, never written",
        )
        .mode("dry-run"),
        set_up(
            "own-dry",
            recommended(),
            with(hpa(&queue("own-dry")), "dryRun", json!(true)),
            "dry-run",
            "dry run: decided and recorded, never written",
        )
        .of(SetUpKind::Autoscaler),
    ]
}
