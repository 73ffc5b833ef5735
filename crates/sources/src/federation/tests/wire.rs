use super::super::error::UpstreamError;
use super::super::wire::{
    self, CustomMetricsVersion, custom_path, external_path, read_announced, read_custom, read_external,
};
use super::*;

#[test]
fn queries_become_api_paths() {
    let selector = |text: &str| Selector::parse(text).unwrap();
    let mut query = custom("qps", one("web-0"));
    let path = |query: &CustomMetricQuery| custom_path(CustomMetricsVersion::V1Beta2, query);
    let base = "/apis/custom.metrics.k8s.io/v1beta2";
    assert_eq!(path(&query).unwrap(), format!("{base}/namespaces/default/pods/web-0/qps"));
    query.objects = ObjectSelection::All(selector("app=web,tier in (a,b)"));
    query.series = selector("verb=GET");
    let parameters = "?labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29&metricLabelSelector=verb%3DGET";
    assert_eq!(path(&query).unwrap(), format!("{base}/namespaces/default/pods/*/qps{parameters}"));
    let root =
        CustomMetricQuery { resource: "nodes".into(), namespace: None, ..custom("temp", one("node-a")) };
    assert_eq!(path(&root).unwrap(), format!("{base}/nodes/node-a/temp"));
    assert_eq!(wire::query_namespace(&root), None);
    let namespace =
        CustomMetricQuery { resource: "namespaces".into(), namespace: None, ..custom("qps", one("prod")) };
    assert_eq!(path(&namespace).unwrap(), format!("{base}/namespaces/prod/metrics/qps"));
    assert_eq!(wire::query_namespace(&namespace), Some("prod"));
    assert_eq!(wire::query_namespace(&query), Some("default"));
    let old = custom_path(CustomMetricsVersion::V1Beta1, &custom("a:b", one("x"))).unwrap();
    assert_eq!(old, "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/x/a:b");
    let outside = ExternalMetricQuery { series: selector("queue=q1"), ..external("queue depth?") };
    assert_eq!(
        external_path(&outside).unwrap(),
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue%20depth%3F?labelSelector=queue%3Dq1"
    );
    // None of these may turn into another path.
    for bad in ["", "..", ".", "a/b", "a%2Fb", "a\\b"] {
        assert_eq!(external_path(&external(bad)), None, "{bad}");
        assert_eq!(path(&custom(bad, all())), None, "{bad}");
        assert_eq!(path(&custom("qps", one(bad))), None, "{bad}");
    }
}

#[test]
fn values_are_decoded() {
    let new =
        br#"{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},"items":[
        {"describedObject":{"kind":"Pod","namespace":"default","name":"web-0","uid":"u","apiVersion":"/v1"},
         "metric":{"name":"qps","selector":{"matchLabels":{"verb":"GET"}}},
         "timestamp":"2026-11-15T00:18:56Z","windowSeconds":60,"value":"1.500"}]}"#;
    let values = read_custom(new, &custom("qps", all())).unwrap();
    let [value] = values.as_slice() else { panic!("{values:?}") };
    assert_eq!(value.value.to_string(), "1.500", "the text stays");
    assert_eq!((value.window, value.metric.as_str()), (Some(60), "qps"));
    assert_eq!(value.timestamp.unwrap().to_string(), "2026-11-15T00:18:56Z");
    assert_eq!(value.series.as_ref().unwrap().match_labels["verb"], "GET");
    assert_eq!((value.object.kind.as_str(), value.object.api_version.as_str()), ("Pod", "/v1"));

    let old =
        br#"{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta1","metadata":{},"items":[
        {"describedObject":{"kind":"Namespace","name":"prod","apiVersion":"/v1"},"metricName":"qps",
         "timestamp":null,"window":30,"value":"300m","selector":null}]}"#;
    let values = read_custom(old, &custom("qps", all())).unwrap();
    assert_eq!((values[0].window, values[0].timestamp, values[0].series.is_none()), (Some(30), None, true));
    assert_eq!((values[0].object.name.as_str(), values[0].object.namespace.as_str()), ("prod", ""));

    let outside = br#"{"kind":"ExternalMetricValueList","items":[
        {"metricName":"q","metricLabels":{"b":"1","a":"2"},"timestamp":"2026-11-15T00:21:10Z","value":"12500m"},
        {"metricName":"q","metricLabels":{},"timestamp":"2026-11-15T00:21:10Z","window":5,"value":7},
        {"metricName":"q","metricLabels":null,"timestamp":null,"value":"1Ki"}]}"#;
    let values = read_external(outside, &external("q")).unwrap();
    assert_eq!(values[0].labels, Some(vec![("b".into(), "1".into()), ("a".into(), "2".into())]));
    assert_eq!(
        (&values[1].labels, values[1].window, values[1].value.to_string()),
        (&Some(vec![]), Some(5), "7".into())
    );
    assert_eq!((&values[2].labels, values[2].value.to_string()), (&None, "1Ki".into()));
    assert_eq!(
        read_external(br#"{"kind":"ExternalMetricValueList","items":null}"#, &external("q")).unwrap(),
        []
    );
}

#[test]
fn missing_values_are_not_zero() {
    for body in [
        r#"{"kind":"ExternalMetricValueList","items":[{"metricName":"q","value":null}]}"#,
        r#"{"kind":"ExternalMetricValueList","items":[{"metricName":"q"}]}"#,
        r#"{"kind":"ExternalMetricValueList","items":[{"metricName":"q","value":"NaN"}]}"#,
        r#"{"kind":"ExternalMetricValueList","items":[{"metricName":"q","value":""}]}"#,
        r#"{"kind":"ExternalMetricValueList","items":[{"metricName":"q","value":"1","timestamp":"yesterday"}]}"#,
        r#"{"kind":"ExternalMetricValueList","items":[{"metricName":"q","value":"1","metricLabels":{"a":1}}]}"#,
        r#"{"kind":"ExternalMetricValueList","items":[{"value":"1"}"#,
        r#"{"kind":"PodMetricsList","items":[]}"#,
        r#"{"items":[]}"#,
        "[]",
        "",
        "<html>",
        "null",
    ] {
        let read = read_external(body.as_bytes(), &external("q"));
        assert!(matches!(read, Err(UpstreamError::InvalidResponse(_))), "{body}: {read:?}");
    }
    let deep = "[".repeat(100_000);
    assert!(read_external(deep.as_bytes(), &external("q")).is_err());
}

#[test]
fn announced_metrics_are_bounded() {
    let entries: Vec<String> =
        (0..30_000).map(|n| format!(r#"{{"name":"m{n}","namespaced":true}}"#)).collect();
    let body = format!(r#"{{"kind":"APIResourceList","resources":[{}]}}"#, entries.join(","));
    assert_eq!(read_announced(body.as_bytes()).unwrap().len(), 20_000);
    let body = format!(
        r#"{{"kind":"APIResourceList","resources":[{{"name":"{}"}},{{"name":"externalmetrics"}},
        {{"name":"/custommetrics"}},{{"name":"pods/b","namespaced":true}},{{"name":"pods/b","namespaced":true}},
        {{"name":"nodes/a"}},{{"name":"bare"}}]}}"#,
        "x".repeat(600)
    );
    let found = read_announced(body.as_bytes()).unwrap();
    assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["bare", "nodes/a", "pods/b"]);
    let custom: Vec<CustomMetric> = found.iter().filter_map(wire::AnnouncedResource::custom).collect();
    assert_eq!(custom.len(), 2);
    assert_eq!(
        (custom[0].resource.as_str(), custom[0].metric.as_str(), custom[0].namespaced),
        ("nodes", "a", false)
    );
}
