//! Set-ups whose target is wrong.

use engine::failure::{DeniedAccess, RequestFailure};
use engine::{PodSelection, RecordedError, ScaleReadError};

use super::super::test_facts::{TestFacts, per_pod};
use super::{SetUp, set_up};
use crate::decisions::DecisionMode;
use crate::diagnosis::{ClusterFacts, PausedFact, RivalFact, SelectedOwner};

fn query(text: &str, failure: RequestFailure) -> ScaleReadError {
    ScaleReadError::Query(RecordedError::new(text, Some(failure)))
}

fn denied(resource: &str, group: &str, verb: &str) -> RequestFailure {
    RequestFailure::Forbidden(DeniedAccess {
        user: "system:serviceaccount:plimsoll:controller".into(),
        verb: verb.into(),
        resource: resource.into(),
        group: group.into(),
    })
}

pub(super) fn set_ups() -> Vec<SetUp> {
    let facts = TestFacts::healthy;
    let mut no_selector = facts();
    if let Ok(scale) = &mut no_selector.scale {
        scale.selector = String::new();
    }
    vec![
        set_up(
            "the Deployment does not exist",
            "target-not-found",
            "Deployment shop/web does not exist",
            facts().without_scale(query("deployments.apps \"web\" not found", RequestFailure::NotFound)),
        ),
        set_up(
            "a kind without a scale subresource",
            "no-scale-subresource",
            "the kind of Deployment shop/web has no scale subresource",
            facts().without_scale(query(
                "the server could not find the requested resource",
                RequestFailure::NotServed,
            )),
        ),
        set_up(
            "a kind that the cluster does not know",
            "target-kind-unknown",
            "the cluster does not know the kind of Deployment shop/web",
            facts().without_scale(ScaleReadError::UnknownKind("no matches for kind".into())),
        ),
        set_up(
            "an invalid apiVersion",
            "target-api-version-invalid",
            "scaleTargetRef.apiVersion is invalid: unexpected GroupVersion string: a/b/c",
            facts().without_scale(ScaleReadError::InvalidApiVersion(
                "unexpected GroupVersion string: a/b/c".into(),
            )),
        ),
        set_up(
            "no right to read the scale",
            "rbac-missing",
            "the scale of Deployment shop/web is not accessible: system:serviceaccount:plimsoll:controller may not get \
             deployments/scale in apps",
            facts().without_scale(query("forbidden", denied("deployments/scale", "apps", "get"))),
        ),
        set_up(
            "kube-apiserver cannot be reached",
            "scale-unreadable",
            "the scale of Deployment shop/web cannot be read: dial tcp: connection refused",
            facts().without_scale(query("dial tcp: connection refused", RequestFailure::Unreachable)),
        ),
        set_up(
            "an admission webhook denies the new count",
            "scale-not-written",
            "the count 4 could not be written: admission webhook \"quota\" denied the request",
            facts()
                .with_samples(per_pod(&[Some(300), Some(300)]))
                .refusing_writes("admission webhook \"quota\" denied the request"),
        ),
        set_up(
            "somebody scaled the target to zero",
            "target-at-zero",
            "the target was scaled to zero by another client, which disables autoscaling",
            facts().with_replicas(0),
        ),
        set_up(
            "a scale without a selector",
            "selector-missing",
            "the scale of Deployment shop/web has no selector",
            no_selector,
        ),
        set_up(
            "a selector that cannot be parsed",
            "selector-invalid",
            "the selector of the scale cannot be parsed: app=web",
            TestFacts { selection: PodSelection::Invalid("bad".into()), ..facts() },
        ),
        set_up(
            "two HPAs whose targets select the same pods",
            "pods-of-two-autoscalers",
            "several autoscalers select the same pods: shop/web, shop/api",
            TestFacts {
                selection: PodSelection::Shared(vec!["shop/web".into(), "shop/api".into()]),
                ..facts()
            },
        ),
        set_up(
            "two autoscalers with one target",
            "two-autoscalers",
            "Deployment shop/web is also scaled by so/web",
            facts().with_cluster(ClusterFacts {
                rivals: Some(vec![RivalFact { name: "so/web".into() }]),
                ..ClusterFacts::default()
            }),
        ),
        set_up(
            "a selector that matches pods of another Deployment",
            "selector-too-wide",
            "the selector also matches 3 pods of Deployment/api",
            facts().with_cluster(ClusterFacts {
                other_owners: Some(vec![SelectedOwner { owner: "Deployment/api".into(), pods: 3 }]),
                ..ClusterFacts::default()
            }),
        ),
        set_up(
            "the annotation plimsoll.dev/mode: off",
            "autoscaler-off",
            "it is off: nothing is decided",
            facts().with_cluster(ClusterFacts { off: true, ..ClusterFacts::default() }),
        ),
        set_up(
            "a paused ScaledObject",
            "paused",
            "paused at 3 by its annotation",
            facts().with_cluster(ClusterFacts {
                paused: Some(PausedFact { replicas: Some(3) }),
                ..ClusterFacts::default()
            }),
        ),
        set_up(
            "a dry run",
            "dry-run",
            "dry run: decided and recorded, never written",
            TestFacts { mode: DecisionMode::DryRun, ..facts() }
                .with_samples(per_pod(&[Some(150), Some(150)])),
        ),
        set_up(
            "shadow mode",
            "shadow-mode",
            "shadow mode: another controller acts, this one only compares",
            TestFacts { mode: DecisionMode::Shadow, ..facts() }
                .with_samples(per_pod(&[Some(150), Some(150)])),
        ),
    ]
}
