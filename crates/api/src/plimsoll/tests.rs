use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::autoscaling::{self, Defaults as _, FeatureGates, Version, Versioned};
use crate::decode::{self, Keys};
use crate::field::FieldError;

fn autoscaler(spec: &Value) -> Autoscaler {
    let mut spec = spec.clone();
    let usual = json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 10});
    for (key, value) in usual.as_object().unwrap() {
        spec.as_object_mut().unwrap().entry(key).or_insert(value.clone());
    }
    let object = json!({"kind": KIND, "apiVersion": API_VERSION, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
    let mut object: Autoscaler = decode::from_value(&object, "v1alpha1", Keys::Exact).unwrap();
    object.set_defaults();
    object
}

fn texts(faults: &[FieldError]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

fn faults(spec: &Value) -> Vec<String> {
    texts(&validate_create(&autoscaler(spec)))
}

fn by_name(from: &Value, target: &Value) -> Value {
    json!({"type": "Metric", "metric": {"metric": {"name": "m"}, "from": from, "target": target}})
}

#[test]
fn absent_fields_of_metrics_get_defaults() {
    let object = autoscaler(&json!({"metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
        by_name(&Value::Null, &json!({"averageValue": "5"})),
        by_name(&json!({"current": "target"}), &json!({"value": "5"})),
    ]}));
    assert_eq!(
        json!(object.spec.metrics),
        json!([
            {"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 60, "percentageOf": "requests"}}},
            by_name(&json!({"current": "pod"}), &json!({"type": "AverageValue", "averageValue": "5"})),
            by_name(&json!({"current": "target"}), &json!({"type": "Value", "value": "5"})),
        ])
    );
    assert_eq!(object.spec.replicas_aggregator.as_deref(), Some("max"));
    assert!(validate_create(&object).is_empty());
}

#[test]
fn words_and_numbers() {
    assert_eq!(
        faults(&json!({"replicasAggregator": "median", "syncPeriodSeconds": 0})),
        [
            "spec.replicasAggregator: Unsupported value: \"median\": supported values: \"average\", \"max\", \"min\"",
            "spec.syncPeriodSeconds: Invalid value: 0: must be greater than or equal to 1",
        ]
    );
    let target = json!({"type": "AverageValue", "averageValue": "1", "percentageOf": "limits"});
    assert_eq!(
        faults(&json!({"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]})),
        [
            "spec.metrics[0].resource.target.percentageOf: Forbidden: may only be set together with averageUtilization"
        ]
    );
    let target = json!({"type": "Utilization", "averageUtilization": 0, "percentageOf": "capacity"});
    assert_eq!(
        faults(&json!({"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]})),
        [
            "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
            "spec.metrics[0].resource.target.percentageOf: Unsupported value: \"capacity\": supported values: \"limits\", \
             \"requests\"",
        ]
    );
    assert_eq!(
        faults(&json!({"metrics": [{"type": "metric"}]})),
        [
            "spec.metrics[0].type: Unsupported value: \"metric\": supported values: \"ContainerResource\", \"External\", \
          \"Metric\", \"Object\", \"Pods\", \"Resource\""
        ]
    );
}

#[test]
fn origins_and_targets() {
    let metric = |from: Value, target: Value| {
        let texts = faults(&json!({"metrics": [by_name(&from, &target)]}));
        texts.iter().map(|text| text.replace("spec.metrics[0].metric.", "")).collect::<Vec<_>>()
    };
    let value = || json!({"value": "5"});
    assert!(metric(json!({"current": "namespace"}), value()).is_empty());
    assert!(
        metric(json!({"object": {"kind": "Service", "name": "s", "apiVersion": "v1"}}), value()).is_empty()
    );
    assert_eq!(
        metric(json!({}), value()),
        [
            "from: Required value: must set either current or object",
            "target.value: Forbidden: a metric of each pod has no total; set averageValue"
        ]
    );
    assert_eq!(
        metric(json!({"current": "controller"}), value()),
        [
            "from.current: Unsupported value: \"controller\": supported values: \"namespace\", \"pod\", \"target\""
        ]
    );
    assert_eq!(
        metric(json!({"current": "target", "object": {"kind": "Service", "name": ""}}), value()),
        ["from.object: Forbidden: may not set both current and object", "from.object.name: Required value"]
    );
    assert_eq!(
        metric(json!({"current": "pod"}), value()),
        ["target.value: Forbidden: a metric of each pod has no total; set averageValue"]
    );
    assert_eq!(
        metric(json!({"current": "target"}), json!({"type": "Utilization", "averageUtilization": 50})),
        ["target.averageValue: Required value: must set either value or averageValue"]
    );
    assert_eq!(
        metric(
            json!({"current": "target"}),
            json!({"type": "AverageValue", "value": "1", "averageUtilization": 50})
        ),
        [
            "target.averageUtilization: Forbidden: only resources have requests to be a percentage of",
            "target.type: Invalid value: \"AverageValue\": must be Value when value is set",
        ]
    );
}

#[test]
fn failure_policies() {
    let policy = |policy: Value| {
        let metric = json!({"type": "Resource", "onFailure": policy,
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}});
        let texts = faults(&json!({"metrics": [metric]}));
        texts.iter().map(|text| text.replace("spec.metrics[0].onFailure.", "")).collect::<Vec<_>>()
    };
    for good in [
        json!({"policy": "hold"}),
        json!({"policy": "ignore"}),
        json!({"policy": "lastGood", "forSeconds": 60}),
        json!({"policy": "static", "replicas": 3}),
    ] {
        assert!(policy(good.clone()).is_empty(), "{good}");
    }
    assert_eq!(policy(json!({})), ["policy: Required value: must specify a failure policy"]);
    assert_eq!(
        policy(json!({"policy": "lastgood"})),
        [
            "policy: Unsupported value: \"lastgood\": supported values: \"hold\", \"ignore\", \"lastGood\", \"static\""
        ]
    );
    assert_eq!(
        policy(json!({"policy": "lastGood", "replicas": 1})),
        [
            "forSeconds: Required value: must say how long the last good value counts",
            "replicas: Forbidden: may only be set with the policy static",
        ]
    );
    assert_eq!(
        policy(json!({"policy": "static", "forSeconds": 5, "replicas": 11})),
        [
            "forSeconds: Forbidden: may only be set with the policy lastGood",
            "replicas: Invalid value: 11: must be less than or equal to `maxReplicas`",
        ]
    );
}

#[test]
fn age_and_series_of_samples() {
    let metric = |more: Value| {
        let mut metric = json!({"type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "30"}}});
        metric.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        metric
    };
    let checked = |more: Value| faults(&json!({"metrics": [metric(more)]}));
    for rule in ["sum", "max", "min", "average"] {
        assert!(checked(json!({"maxAgeSeconds": 60, "seriesAggregator": rule})).is_empty(), "{rule}");
    }
    assert_eq!(
        checked(json!({"maxAgeSeconds": 0, "seriesAggregator": "mean"})),
        [
            "spec.metrics[0].maxAgeSeconds: Invalid value: 0: must be greater than or equal to 1",
            "spec.metrics[0].seriesAggregator: Unsupported value: \"mean\": supported values: \"average\", \"max\", \"min\", \
             \"sum\"",
        ]
    );
    let cpu = json!({"type": "Resource", "seriesAggregator": "max",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}});
    assert_eq!(
        faults(&json!({"metrics": [cpu]})),
        ["spec.metrics[0].seriesAggregator: Forbidden: may only be set with the type External"]
    );
    let object =
        autoscaler(&json!({"metrics": [metric(json!({"maxAgeSeconds": 60, "seriesAggregator": "min"}))]}));
    let spec = crate::convert::spec_of_autoscaler(&object);
    assert_eq!(spec.metrics[0].max_age, Some(jiff::SignedDuration::from_secs(60)));
    assert_eq!(spec.metrics[0].series, engine::spec::SeriesAggregator::Min);
    assert!(spec.zero_without_gate, "the API accepts a lower bound of zero");
    assert_eq!(
        to_v2(object).unwrap_err().to_string(),
        "autoscaling/v2 has no place for spec.metrics[0].maxAgeSeconds: 60, spec.metrics[0].seriesAggregator: min"
    );
    let sum = autoscaler(&json!({"metrics": [metric(json!({"seriesAggregator": "sum"}))]}));
    assert_eq!(to_v2(sum).unwrap().spec.metrics.len(), 1, "the sum is what v2 does");
}

#[test]
fn zero_replicas_need_a_metric_that_exists_without_pods() {
    let zero = |metric: Value| faults(&json!({"minReplicas": 0, "metrics": [metric]})).len();
    assert_eq!(zero(by_name(&json!({"current": "namespace"}), &json!({"value": "1"}))), 0);
    assert_eq!(zero(by_name(&json!({"current": "pod"}), &json!({"averageValue": "1"}))), 1);
    assert_eq!(faults(&json!({"minReplicas": 0})).len(), 1);
}

#[test]
fn an_hpa_becomes_an_autoscaler_by_changing_api_version_and_kind() {
    let spec = json!({"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "minReplicas": 2,
        "maxReplicas": 10, "behavior": {"scaleUp": {"tolerance": "0.1"}}, "metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
        {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "30"}}}]});
    let hpa = json!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
    let mut renamed = hpa.clone();
    renamed["kind"] = json!(KIND);
    renamed["apiVersion"] = json!(API_VERSION);
    let hpa = Versioned::decode(&hpa).unwrap().into_v2().unwrap();
    let renamed: Autoscaler = decode::from_value(&renamed, "v1alpha1", Keys::Exact).unwrap();
    assert_eq!(from_v2(hpa.clone()), renamed);
    assert_eq!(to_v2(renamed).unwrap(), hpa);
    // Defaults do not stand in the way.
    let mut defaulted = from_v2(hpa);
    defaulted.set_defaults();
    assert!(
        autoscaling::validation::validate_create(&to_v2(defaulted).unwrap(), FeatureGates::default())
            .is_empty()
    );
}

#[test]
fn metrics_of_type_metric_convert_to_pods_and_object() {
    let object = autoscaler(&json!({"metrics": [
        by_name(&json!({"current": "pod"}), &json!({"averageValue": "1"})),
        by_name(&json!({"current": "namespace"}), &json!({"value": "2"})),
        by_name(&json!({"current": "target"}), &json!({"value": "3"})),
        by_name(&json!({"object": {"kind": "Service", "name": "s", "apiVersion": "v1"}}), &json!({"averageValue": "4"})),
    ]}));
    let hpa = to_v2(object).unwrap();
    let described: Vec<String> = hpa
        .spec
        .metrics
        .iter()
        .map(|metric| match &metric.object {
            None => metric.type_.clone(),
            Some(object) => {
                format!("{} {}/{}", metric.type_, object.described_object.kind, object.described_object.name)
            }
        })
        .collect();
    assert_eq!(described, ["Pods", "Object Namespace/shop", "Object Deployment/web", "Object Service/s"]);
    let gates = FeatureGates::default();
    assert!(autoscaling::validation::validate_create(&hpa, gates).is_empty());
}

#[test]
fn fields_without_v2_equivalent_are_named() {
    let object = autoscaler(
        &json!({"replicasAggregator": "average", "syncPeriodSeconds": 5, "dryRun": true, "metrics": [
        {"type": "Resource", "onFailure": {"policy": "hold"},
         "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60, "percentageOf": "limits"}}}]}),
    );
    assert_eq!(
        to_v2(object).unwrap_err().to_string(),
        "autoscaling/v2 has no place for spec.replicasAggregator: average, spec.syncPeriodSeconds: 5, spec.dryRun: true, \
         spec.metrics[0].resource.target.percentageOf: limits, spec.metrics[0].onFailure.policy: hold"
    );
}

#[test]
fn the_v2alpha1_proposal_is_converted() {
    let object = json!({
        "apiVersion": "autoscaling/v2alpha1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
            "maxReplicas": 10, "replicasAggregator": "min",
            "metrics": [
                {"name": "memory/usage", "targetValue": "256Mi"},
                {"name": "cpu", "targetRequestPercentage": 75},
                {"name": "custom/queue-length", "targetValue": 20, "from": {"current": "namespace"}},
                {"name": "router/http_requests_rate", "targetValue": "1K",
                 "from": {"object": {"kind": "Service", "apiVersion": "v1", "name": "my-service"}}},
                {"name": "custom/lag", "targetValue": "5", "from": {"current": "controller"}},
                {"name": "custom/tps", "targetValue": "5"},
            ],
        },
    });
    let object: proposal::HorizontalPodAutoscaler =
        decode::from_value(&object, "v2alpha1", Keys::Exact).unwrap();
    let mut object = object.into_autoscaler().unwrap();
    object.set_defaults();
    assert!(validate_create(&object).is_empty(), "{:?}", validate_create(&object));
    let named = |name: &str, from: Value, target: Value| json!({"type": "Metric", "metric": {"metric": {"name": name}, "from": from, "target": target}});
    assert_eq!(
        json!(object.spec.metrics),
        json!([
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "256Mi"}}},
            {"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 75, "percentageOf": "requests"}}},
            named("queue-length", json!({"current": "namespace"}), json!({"type": "Value", "value": "20"})),
            named("router_http_requests_rate", json!({"object": {"kind": "Service", "name": "my-service", "apiVersion": "v1"}}),
                json!({"type": "Value", "value": "1k"})),
            named("lag", json!({"current": "target"}), json!({"type": "Value", "value": "5"})),
            named("tps", json!({"current": "pod"}), json!({"type": "AverageValue", "averageValue": "5"})),
        ])
    );
    assert_eq!(object.spec.replicas_aggregator.as_deref(), Some("min"));
}

#[test]
fn invalid_proposals_are_errors() {
    let fault = |metric: Value| {
        let object = json!({"spec": {"metrics": [metric]}});
        let object: proposal::HorizontalPodAutoscaler =
            decode::from_value(&object, "v2alpha1", Keys::Exact).unwrap();
        texts(&object.into_autoscaler().unwrap_err()).concat()
    };
    assert_eq!(
        fault(json!({"targetValue": 1})),
        "spec.metrics[0].name: Required value: must specify a metric name"
    );
    assert_eq!(
        fault(json!({"name": "cpu"})),
        "spec.metrics[0].targetValue: Required value: must set either a target value or a percentage of requests"
    );
    assert_eq!(
        fault(json!({"name": "custom/x", "targetRequestPercentage": 5})),
        "spec.metrics[0].targetRequestPercentage: Forbidden: only resources (cpu, memory) have requests"
    );
    assert_eq!(
        fault(json!({"name": "cpu", "targetRequestPercentage": 5, "from": {"current": "namespace"}})),
        "spec.metrics[0].targetRequestPercentage: Forbidden: only pods have requests"
    );
    assert!(
        fault(json!({"name": "x", "targetValue": 1, "from": {"current": "target"}}))
            .contains("\"controller\", \"namespace\", \"pod\"")
    );
}

proptest! {
    #[test]
    fn setting_defaults_twice_changes_nothing(
        aggregator in prop::option::of("max|min|average"),
        percent in prop::option::of(1..200),
        from in prop::option::of("pod|namespace|target"),
    ) {
        let origin = from.map(|current| json!({"current": current}));
        let mut once = autoscaler(&json!({"replicasAggregator": aggregator, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": percent}}},
            by_name(&json!(origin), &json!({"averageValue": "5"})),
        ]}));
        let twice = once.clone();
        once.set_defaults();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn v2_to_autoscaler_and_back(min in 1..5, max in 5..50, percent in 1..200) {
        let hpa = json!({"metadata": {"name": "web"}, "spec": {"minReplicas": min, "maxReplicas": max, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}}]}});
        let hpa = Versioned::decode_as(&hpa, Version::V2).unwrap().into_v2().unwrap();
        let mut there = from_v2(hpa.clone());
        prop_assert_eq!(&to_v2(there.clone()).unwrap(), &hpa);
        there.set_defaults();
        prop_assert_eq!(to_v2(there).unwrap(), hpa);
    }
}
