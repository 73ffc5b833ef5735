//! Set-ups whose triggers fail or are not active.

use engine::failure::{DeniedAccess, RequestFailure, TriggerFailure};
use engine::trigger_poll::{FormulaResult, JobCounts, PolledTrigger, ReconcileFailure, TriggerMetric};
use engine::{Activation, ActivationVerdict, RecordedError, ScaleReadError, TriggerPoll};

use super::super::test_facts::{TestFacts, at};
use super::{SetUp, set_up};

fn scaled_object(poll: TriggerPoll, verdict: ActivationVerdict, replicas: i32) -> TestFacts {
    let mut facts = TestFacts::healthy().with_replicas(replicas);
    facts.spec.metrics.clear();
    facts.activation = Some(Activation { by: Vec::new(), rest: 0.into(), verdict });
    facts.poll = Some(poll);
    facts
}

fn queue(metric: TriggerMetric) -> TriggerPoll {
    let trigger = PolledTrigger {
        name: "queue".into(),
        type_: "rabbitmq".into(),
        metrics: vec![TriggerMetric { metric: "s0-rabbitmq".into(), ..metric }],
        ..PolledTrigger::default()
    };
    TriggerPoll { triggers: vec![trigger], ..TriggerPoll::default() }
}

fn failing(failure: TriggerFailure, text: &str) -> TestFacts {
    let metric =
        TriggerMetric { failure: Some(text.into()), cause: Some(failure), ..TriggerMetric::default() };
    scaled_object(queue(metric), ActivationVerdict::Held("a trigger cannot be read".into()), 2)
}

fn unreconciled(failure: ReconcileFailure) -> TestFacts {
    let poll = TriggerPoll { reconcile: Some(failure), ..TriggerPoll::default() };
    scaled_object(poll, ActivationVerdict::Held("its triggers are not polled".into()), 2)
}

/// A ScaledObject that names no target.
fn nameless() -> TestFacts {
    let failure = ReconcileFailure::InvalidSpec("scaleTargetRef.name is missing".into());
    let unread = ScaleReadError::Query("the target is not resolved".into());
    let mut facts = unreconciled(failure).without_scale(unread);
    facts.spec.target.name.clear();
    facts
}

/// A request for the HPA of the object that failed.
fn unmanaged(text: &str, failure: RequestFailure) -> TestFacts {
    let error = RecordedError::new(text, Some(failure));
    unreconciled(ReconcileFailure::Request { object: "HPA keda-hpa-web".into(), error })
}

pub(super) fn set_ups() -> Vec<SetUp> {
    let quiet = || TriggerMetric { value: Some(0.into()), ..TriggerMetric::default() };
    let parameters = TriggerPoll {
        triggers: vec![PolledTrigger {
            type_: "kafka".into(),
            failure: Some("no bootstrapServers given".into()),
            cause: Some(TriggerFailure::Parameters),
            ..PolledTrigger::default()
        }],
        ..TriggerPoll::default()
    };
    let formula = FormulaResult {
        text: "a +".into(),
        value: Err("unexpected end".into()),
        target: "5".into(),
        activation: String::new(),
        active: false,
    };
    let fallback = TriggerMetric { fallback: Some(4.into()), active: true, ..TriggerMetric::default() };
    let not_created = JobCounts {
        active: true,
        wanted: 4,
        created: 1,
        failure: Some("exceeded quota".into()),
        ..JobCounts::default()
    };
    vec![
        set_up(
            "a source that refuses connections",
            "trigger-connection-refused",
            "the source of trigger queue refuses the connection: connection refused",
            failing(TriggerFailure::Refused, "connection refused"),
        ),
        set_up(
            "a host name that does not resolve",
            "trigger-unknown-host",
            "the host of trigger queue does not resolve: no such host (mq)",
            failing(TriggerFailure::UnknownHost, "no such host (mq)"),
        ),
        set_up(
            "a source that hangs",
            "trigger-timeout",
            "the source of trigger queue does not answer in time: no answer within 3 s",
            failing(TriggerFailure::Timeout, "no answer within 3 s"),
        ),
        set_up(
            "a TriggerAuthentication whose Secret is missing",
            "trigger-authentication",
            "the credentials of trigger queue are missing or not accepted: secret not found",
            failing(TriggerFailure::Authentication, "secret not found"),
        ),
        set_up(
            "a source that answers 401 or 403",
            "trigger-authentication",
            "the credentials of trigger queue are missing or not accepted: api returned 401",
            failing(TriggerFailure::Authentication, "api returned 401"),
        ),
        set_up(
            "an API server that does not answer requests for the Secret of a trigger",
            "api-server-unavailable",
            "the API server does not serve what trigger queue needs: failed to read Secret shop/login: connection refused",
            failing(TriggerFailure::ApiServer, "failed to read Secret shop/login: connection refused"),
        ),
        set_up(
            "a queue that does not exist",
            "trigger-unknown-name",
            "the source of trigger queue does not know the name: no queue orders",
            failing(TriggerFailure::UnknownName, "no queue orders"),
        ),
        set_up(
            "a source that answers 404",
            "trigger-unknown-name",
            "the source of trigger queue does not know the name: api returned 404",
            failing(TriggerFailure::UnknownName, "api returned 404"),
        ),
        set_up(
            "a trigger without a required parameter",
            "trigger-parameters",
            "trigger kafka is not usable: no bootstrapServers given",
            scaled_object(parameters, ActivationVerdict::Held("a trigger cannot be read".into()), 2),
        ),
        set_up(
            "a source that answers with an error",
            "trigger-failed",
            "the source of trigger queue reports an error: 500",
            failing(TriggerFailure::Source, "500"),
        ),
        set_up(
            "a formula that cannot be computed",
            "formula-failed",
            "the formula cannot be computed: unexpected end",
            scaled_object(
                TriggerPoll { formula: Some(formula), ..queue(quiet()) },
                ActivationVerdict::Held("a trigger cannot be read".into()),
                2,
            ),
        ),
        set_up(
            "a fallback that replaces a failed source",
            "trigger-fallback",
            "trigger queue failed too often: the fallback of 4 replicas is used",
            scaled_object(queue(fallback), ActivationVerdict::Metrics, 4),
        ),
        set_up(
            "a cooldown that has not ended",
            "cooldown",
            "nothing is active; cooldown until 09:14:00",
            scaled_object(queue(quiet()), ActivationVerdict::Cooling { until: at("09:14:00") }, 2),
        ),
        set_up(
            "no trigger is active",
            "nothing-active",
            "no trigger is active, so the target rests at 0",
            scaled_object(queue(quiet()), ActivationVerdict::Resting, 0),
        ),
        set_up(
            "a ScaledJob without an active trigger",
            "nothing-active",
            "no trigger is active, so no jobs are created",
            scaled_object(
                TriggerPoll { jobs: Some(JobCounts::default()), ..queue(quiet()) },
                ActivationVerdict::Resting,
                0,
            ),
        ),
        set_up(
            "a quota that does not allow more jobs",
            "jobs-not-created",
            "3 jobs could not be created: exceeded quota",
            scaled_object(
                TriggerPoll { jobs: Some(not_created), ..queue(quiet()) },
                ActivationVerdict::Metrics,
                0,
            ),
        ),
        set_up(
            "a ScaledObject with minReplicaCount above maxReplicaCount",
            "spec-invalid",
            "the spec is invalid: MinReplicaCount=5 must be less than MaxReplicaCount=2",
            unreconciled(ReconcileFailure::InvalidSpec(
                "MinReplicaCount=5 must be less than MaxReplicaCount=2".into(),
            )),
        ),
        set_up(
            "a ScaledObject without scaleTargetRef.name",
            "spec-invalid",
            "the spec is invalid: scaleTargetRef.name is missing",
            nameless(),
        ),
        set_up(
            "a webhook that denies the HPA of a ScaledObject",
            "object-not-managed",
            "the operator cannot manage HPA keda-hpa-web: admission webhook \"names\" denied the request",
            unmanaged(
                "admission webhook \"names\" denied the request",
                RequestFailure::Forbidden(DeniedAccess::default()),
            ),
        ),
        set_up(
            "an API server that cannot be reached",
            "api-server-unavailable",
            "the API server gives no usable answer, so HPA keda-hpa-web is not managed: connection refused",
            unmanaged("connection refused", RequestFailure::Unreachable),
        ),
        set_up(
            "an API server that answers 502 or 503",
            "api-server-unavailable",
            "the API server is not available, so HPA keda-hpa-web is not managed: shutting down",
            unmanaged("shutting down", RequestFailure::Unavailable),
        ),
        set_up(
            "an API server that answers 504",
            "api-server-unavailable",
            "the API server does not answer in time, so HPA keda-hpa-web is not managed: request timed out",
            unmanaged("request timed out", RequestFailure::Timeout),
        ),
        set_up(
            "an API server that answers 429",
            "api-server-unavailable",
            "the API server limits requests, so HPA keda-hpa-web is not managed: too many requests",
            unmanaged("too many requests", RequestFailure::TooManyRequests),
        ),
        set_up(
            "no right to create HPAs",
            "rbac-missing",
            "HPA keda-hpa-web is not accessible: system:serviceaccount:keda:keda-operator may not create \
             horizontalpodautoscalers in autoscaling",
            unmanaged(
                "horizontalpodautoscalers.autoscaling is forbidden",
                RequestFailure::Forbidden(DeniedAccess {
                    user: "system:serviceaccount:keda:keda-operator".into(),
                    verb: "create".into(),
                    resource: "horizontalpodautoscalers".into(),
                    group: "autoscaling".into(),
                }),
            ),
        ),
    ]
}
