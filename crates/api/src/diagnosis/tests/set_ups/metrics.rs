//! Set-ups whose metrics cannot be read.

use engine::failure::{DeniedAccess, RequestFailure};
use engine::spec::{Metric, MetricId, MetricSource, MetricTarget};

use super::super::test_facts::{TestFacts, cpu, failed, metric, named, per_pod};
use super::{SetUp, set_up};
use crate::diagnosis::{ApiServiceFact, ClusterFacts, ServedMetrics};

fn external(name: &str) -> Metric {
    metric(MetricSource::External(named(name)), MetricTarget::AverageValue(5000.into()))
}

fn of_pods(name: &str) -> Metric {
    metric(MetricSource::Pods(named(name)), MetricTarget::AverageValue(5000.into()))
}

fn of_ingress() -> Metric {
    let source = MetricSource::Object {
        kind: "Ingres".into(),
        name: "main".into(),
        api_version: Some("networking.k8s.io/v1".into()),
        metric: named("rps"),
    };
    metric(source, MetricTarget::Value(5000.into()))
}

fn served(group: &str, names: &[&str]) -> ClusterFacts {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    ClusterFacts { served: vec![ServedMetrics { group: group.into(), names }], ..ClusterFacts::default() }
}

pub(super) fn set_ups() -> Vec<SetUp> {
    let facts = TestFacts::healthy;
    let broken =
        |metric: Metric, failure: RequestFailure| facts().with_metric(metric, failed("said so", failure));
    let unavailable = ClusterFacts {
        api_services: Some(vec![ApiServiceFact {
            group: "custom.metrics.k8s.io".into(),
            available: false,
            reason: "MissingEndpoints".into(),
            message: String::new(),
            service: Some("monitoring/adapter".into()),
        }]),
        ..ClusterFacts::default()
    };
    let selector = MetricId { selector: Err("\"in\" needs values".into()), ..named("queue_length") };
    vec![
        set_up(
            "no metrics server",
            "metrics-api-not-served",
            "cpu cannot be read: no server is registered for metrics.k8s.io",
            broken(cpu(), RequestFailure::NotServed),
        ),
        set_up(
            "no adapter for custom metrics",
            "metrics-api-not-served",
            "rps cannot be read: no server is registered for custom.metrics.k8s.io",
            broken(of_pods("rps"), RequestFailure::NotServed),
        ),
        set_up(
            "a metrics server without ready pods",
            "metrics-api-unavailable",
            "cpu cannot be read: metrics.k8s.io is not available",
            broken(cpu(), RequestFailure::Unavailable),
        ),
        set_up(
            "an adapter without ready pods",
            "metrics-api-unavailable",
            "rps cannot be read: custom.metrics.k8s.io is not available (monitoring/adapter: MissingEndpoints)",
            broken(of_pods("rps"), RequestFailure::Unavailable).with_cluster(unavailable),
        ),
        set_up(
            "a misspelt custom metric",
            "metric-not-found",
            "custom.metrics.k8s.io does not serve request_per_second; similar: requests_per_second",
            broken(of_pods("request_per_second"), RequestFailure::NotFound)
                .with_cluster(served("custom.metrics.k8s.io", &["requests_per_second", "errors"])),
        ),
        set_up(
            "an unknown external metric",
            "metric-not-found",
            "external.metrics.k8s.io does not serve queue_length",
            broken(external("queue_length"), RequestFailure::NotFound),
        ),
        set_up(
            "an external metric whose selector matches no series",
            "metric-without-values",
            "external.metrics.k8s.io has no values of queue_length",
            broken(external("queue_length"), RequestFailure::NoItems),
        ),
        set_up(
            "samples that are older than maxAgeSeconds",
            "stale-samples",
            "the samples of cpu are 240 s old, more than maxAgeSeconds: 60",
            broken(cpu(), RequestFailure::TooOld { age: Some(240), most: 60 }),
        ),
        set_up(
            "no right to read metrics",
            "rbac-missing",
            "cpu is not accessible: system:serviceaccount:plimsoll:controller may not list pods in metrics.k8s.io",
            broken(
                cpu(),
                RequestFailure::Forbidden(DeniedAccess {
                    user: "system:serviceaccount:plimsoll:controller".into(),
                    verb: "list".into(),
                    resource: "pods".into(),
                    group: "metrics.k8s.io".into(),
                }),
            ),
        ),
        set_up(
            "an adapter that does not know kube-apiserver",
            "metrics-api-unauthorized",
            "rps cannot be read: custom.metrics.k8s.io does not accept the credentials",
            broken(of_pods("rps"), RequestFailure::Unauthorized),
        ),
        set_up(
            "an overloaded adapter",
            "metrics-api-overloaded",
            "rps cannot be read: custom.metrics.k8s.io gets too many requests",
            broken(of_pods("rps"), RequestFailure::TooManyRequests),
        ),
        set_up(
            "an adapter that hangs",
            "metrics-api-timeout",
            "queue_length cannot be read: external.metrics.k8s.io did not answer in time",
            broken(external("queue_length"), RequestFailure::Timeout),
        ),
        set_up(
            "an answer that cannot be decoded",
            "metrics-api-unreachable",
            "queue_length cannot be read: no usable answer from external.metrics.k8s.io: unable to get external metric \
             shop/queue_length/nil: said so",
            broken(external("queue_length"), RequestFailure::Unreachable),
        ),
        set_up(
            "an adapter that answers 500",
            "metrics-api-error",
            "queue_length cannot be read: external.metrics.k8s.io answered 500: unable to get external metric \
             shop/queue_length/nil: said so",
            broken(external("queue_length"), RequestFailure::Refused(500)),
        ),
        set_up(
            "a misspelt kind of a described object",
            "object-kind-unknown",
            "rps cannot be read: the cluster does not know the kind Ingres",
            broken(of_ingress(), RequestFailure::UnknownKind),
        ),
        set_up(
            "a target without a value for its type",
            "metric-target-invalid",
            "the target of cpu has no value for its type",
            facts().with_metric(Metric { target: MetricTarget::Missing, ..cpu() }, per_pod(&[])),
        ),
        set_up(
            "an invalid selector of a metric",
            "metric-selector-invalid",
            "the selector of queue_length is invalid: \"in\" needs values",
            facts().with_metric(
                Metric { source: MetricSource::External(selector), ..external("") },
                per_pod(&[]),
            ),
        ),
        set_up(
            "an unknown metric type",
            "metric-type-unknown",
            "the metric type Magic is unknown",
            facts().with_metric(
                metric(MetricSource::Unknown("Magic".into()), MetricTarget::Missing),
                per_pod(&[]),
            ),
        ),
    ]
}
