//! Requests, and the messages about their responses: the table was recorded from Kubernetes' own controller.

use engine::PodSamples;

use super::*;

/// One metric of each kind, and what its messages begin with.
fn five() -> [(char, Metric, &'static str); 5] {
    [
        ('R', resource("cpu"), "unable to fetch metrics from resource metrics API: "),
        ('P', pods("Rps", ""), "unable to fetch metrics from custom metrics API: "),
        (
            'O',
            object(Some("networking.k8s.io/v1"), "Ingress", "main", "Hits"),
            "unable to fetch metrics from custom metrics API: ",
        ),
        (
            'N',
            object(Some("v1"), "Namespace", "other", "Nsm"),
            "unable to fetch metrics from custom metrics API: ",
        ),
        ('E', external("QueueLen", ""), "unable to fetch metrics from external metrics API: "),
    ]
}

/// A list with one good item.
fn good(line: &str) -> Value {
    if line.contains("custom.metrics") {
        return json!({"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "items": [
            {"describedObject": {"name": "p"}, "metric": {"name": "m"}, "timestamp": "2026-01-01T00:00:00Z",
                "windowSeconds": 60, "value": "5"}]});
    }
    if line.contains("external.metrics") {
        return json!({"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "items": [
            {"metricName": "q", "metricLabels": {}, "timestamp": "2026-01-01T00:00:00Z", "value": "5"}]});
    }
    pod_list(&[pod_metrics("p", "web", "10m")])
}

async fn outcome(who: char, reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> String {
    let (_, metric, beginning) = five().into_iter().find(|(known, ..)| *known == who).unwrap();
    match metrics(&server(reply)).samples(alone(), &metric).await {
        Ok(samples) => format!("{samples:?}"),
        Err(error) => {
            let text = error.to_string();
            text.strip_prefix(beginning).map_or_else(|| text.clone(), |rest| format!("~{rest}"))
        }
    }
}

#[tokio::test]
async fn queries_equal_those_of_kubernetes() {
    let fake = server(|request| Reply::json(&good(&request.line)));
    let metrics = metrics(&fake);
    let custom = "GET /apis/custom.metrics.k8s.io/v1beta2/namespaces/ns";
    for (metric, line) in [
        (
            resource("cpu"),
            "GET /apis/metrics.k8s.io/v1beta1/namespaces/ns/pods?labelSelector=app%3Dweb".to_owned(),
        ),
        (
            container("cpu", "c"),
            "GET /apis/metrics.k8s.io/v1beta1/namespaces/ns/pods?labelSelector=app%3Dweb".to_owned(),
        ),
        (pods("Rps", ""), format!("{custom}/pods/%2A/Rps?labelSelector=app%3Dweb")),
        (
            pods("Rps", "a in (b,c)"),
            format!("{custom}/pods/%2A/Rps?labelSelector=app%3Dweb&metricLabelSelector=a+in+%28b%2Cc%29"),
        ),
        (
            object(Some("networking.k8s.io/v9"), "ingress", "main", "Hits"),
            format!("{custom}/ingresses.networking.k8s.io/main/Hits"),
        ),
        (object(None, "Node", "n", "Hits"), format!("{custom}/nodes/n/Hits")),
        (object(Some("v1"), "Namespace", "other", "Nsm"), format!("{custom}/metrics/Nsm")),
        (object(Some("v1"), "namespace", "other", "Nsm"), format!("{custom}/namespaces/other/Nsm")),
        // What cannot be read counts as the core group.
        (object(Some("a/b/c"), "Node", "n", "Hits"), format!("{custom}/nodes/n/Hits")),
        (
            external("QueueLen", "a=b"),
            "GET /apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queuelen?labelSelector=a%3Db".to_owned(),
        ),
    ] {
        metrics.samples(alone(), &metric).await.unwrap();
        assert_eq!(request_lines(&fake), [line]);
    }
}

#[tokio::test]
async fn messages_name_the_resource() {
    for (who, words) in [
        ('R', "(get pods.metrics.k8s.io)"),
        ('P', "(get pods.custom.metrics.k8s.io *)"),
        ('O', "(get ingresses.networking.k8s.io.custom.metrics.k8s.io main)"),
        ('N', "(get metrics.custom.metrics.k8s.io Nsm)"),
        ('E', "(get QueueLen.external.metrics.k8s.io)"),
    ] {
        let text = outcome(who, |_| Reply::new(404, TEXT, "404 page not found")).await;
        assert_eq!(text, format!("~the server could not find the requested resource {words}"));
    }
}

#[tokio::test]
async fn undecodable_responses_are_errors() {
    let struct_type = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let unfit = |what: &str| {
        format!(
            "~couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type {struct_type}"
        )
    };
    let (none_r, none_p, none_e) = (
        "no metrics returned from resource metrics API",
        "no metrics returned from custom metrics API",
        "no metrics returned from external metrics API",
    );
    let none_o = "~the custom metrics API server returned 0 results when we asked for exactly one";
    for (body, who, words) in [
        ("[]", "RPONE", unfit("array").as_str()),
        ("5", "RPONE", &unfit("number")),
        ("\"x\"", "RPONE", &unfit("string")),
        ("garbage", "PON", &unfit("string")),
        (
            "garbage",
            "RE",
            "~couldn't get version/kind; json parse error: invalid character 'g' looking for beginning of value",
        ),
        ("{\"kind\":", "RPONE", "~couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ("", "RE", "~0-length response with status code: 200 and content type: application/json"),
        ("", "PON", "~Object 'Kind' is missing in ''"),
        ("{}", "PON", "~Object 'Kind' is missing in '{}'"),
        ("{}", "R", none_r),
        ("{}", "E", none_e),
        ("null", "PON", "~Object 'Kind' is missing in 'null'"),
        ("null", "R", none_r),
        ("null", "E", none_e),
        (
            r#"{"kind":"Pod","apiVersion":"metrics.k8s.io/v1beta1"}"#,
            "R",
            "~no kind \"Pod\" is registered for version \"metrics.k8s.io/v1beta1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            r#"{"kind":"PodList","apiVersion":"v1"}"#,
            "RPON",
            "~no kind \"PodList\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"hidden failure"}"#,
            "R",
            "~hidden failure",
        ),
        (
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"hidden failure"}"#,
            "PON",
            "~the custom metrics API server didn't return MetricValueList, the type is *v1.Status",
        ),
        (r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"hidden failure"}"#, "E", none_e),
        (r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#, "R", none_r),
        (
            r#"{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta1","items":null}"#,
            "P",
            none_p,
        ),
        (
            r#"{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","items":[]}"#,
            "ON",
            none_o,
        ),
        (r#"{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2"}"#, "ON", none_o),
        (r#"{"items":[]}"#, "R", none_r),
        (r#"{"items":null}"#, "E", none_e),
    ] {
        for who in who.chars() {
            let text = outcome(who, move |_| Reply::new(200, JSON, body)).await;
            assert_eq!(text, words, "{who} {body}");
        }
    }
    for who in "RE".chars() {
        let html = outcome(who, |_| Reply::new(200, "text/html", "<html>hello</html>")).await;
        assert_eq!(html, "~serializer for text/html doesn't exist");
        let text = outcome(who, |request| Reply::new(200, TEXT, &good(&request.line).to_string())).await;
        assert_eq!(text, "~serializer for text/plain; charset=utf-8 doesn't exist");
    }
    for who in "PON".chars() {
        let text = outcome(who, |request| Reply::new(200, TEXT, &good(&request.line).to_string())).await;
        assert!(!text.starts_with('~'), "{text}");
    }
}

#[tokio::test]
async fn undecodable_items_are_errors() {
    let quantities =
        "~quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let set = |line: &str, field: &str, value: &Value| {
        let mut list = good(line);
        match (field, list["items"][0].get("containers").is_some()) {
            ("items", _) => list["items"] = value.clone(),
            ("item", _) => list["items"][0] = value.clone(),
            ("value", true) => list["items"][0]["containers"][0]["usage"]["cpu"] = value.clone(),
            _ => list["items"][0][field] = value.clone(),
        }
        list
    };
    for (field, value, who, words) in [
        ("value", json!("abc"), "RPONE", quantities),
        ("value", json!("NaN"), "RPONE", quantities),
        ("value", json!(""), "RPONE", quantities),
        ("value", json!(true), "RPONE", quantities),
        ("value", json!({}), "RPONE", quantities),
        // Kubernetes takes these for zero.
        ("value", Value::Null, "PONE", "~the answer has an item without a value"),
        ("item", Value::Null, "PONE", "~the answer has an item without a value"),
        (
            "timestamp",
            json!("yesterday"),
            "RPONE",
            "~parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\"",
        ),
        (
            "timestamp",
            json!(5),
            "R",
            "~json: cannot unmarshal number into Go struct field PodMetrics.items.timestamp of type string",
        ),
        (
            "timestamp",
            json!(5),
            "PON",
            "~json: cannot unmarshal number into Go struct field MetricValue.items.timestamp of type string",
        ),
        ("window", json!("soon"), "R", "~time: invalid duration \"soon\""),
        (
            "window",
            json!(5),
            "R",
            "~json: cannot unmarshal number into Go struct field PodMetrics.items.window of type string",
        ),
        (
            "windowSeconds",
            json!("soon"),
            "PON",
            "~json: cannot unmarshal string into Go struct field MetricValue.items.windowSeconds of type int64",
        ),
        (
            "windowSeconds",
            json!(5.5),
            "PON",
            "~json: cannot unmarshal number 5.5 into Go struct field MetricValue.items.windowSeconds of type int64",
        ),
        (
            "metadata",
            json!("x"),
            "R",
            "~json: cannot unmarshal string into Go struct field PodMetrics.items.metadata of type v1.ObjectMeta",
        ),
        (
            "describedObject",
            json!("x"),
            "PON",
            "~json: cannot unmarshal string into Go struct field MetricValue.items.describedObject of type v1.ObjectReference",
        ),
        (
            "items",
            json!({}),
            "R",
            "~json: cannot unmarshal object into Go struct field PodMetricsList.items of type []v1beta1.PodMetrics",
        ),
        (
            "items",
            json!(["x"]),
            "R",
            "~json: cannot unmarshal string into Go struct field PodMetricsList.items of type v1beta1.PodMetrics",
        ),
        (
            "items",
            json!({}),
            "E",
            "~json: cannot unmarshal object into Go struct field ExternalMetricValueList.items of type []v1beta1.ExternalMetricValue",
        ),
    ] {
        for who in who.chars() {
            let value = value.clone();
            let text = outcome(who, move |request| Reply::json(&set(&request.line, field, &value))).await;
            assert_eq!(text, words, "{who} {field}");
        }
    }
}

#[tokio::test]
async fn unusual_values_are_kept_and_missing_values_are_absent() {
    let list = pod_list(&[
        pod_metrics("negative", "web", "-5"),
        pod_metrics("huge", "web", "1e30"),
        json!({"metadata": {"name": "null"}, "containers": [{"name": "c", "usage": {"cpu": null}}]}),
        json!({"metadata": {"name": "none"}, "containers": [{"name": "c", "usage": {"memory": "1"}}]}),
        json!({"metadata": {"name": "empty"}, "containers": []}),
        json!({"metadata": {"name": "timeless"}, "containers": [{"name": "c", "usage": {"cpu": 0.5}}]}),
        Value::Null,
    ]);
    let fake = server(move |_| Reply::json(&list));
    let MetricSamples::PerPod(PodSamples { stray, .. }) =
        metrics(&fake).samples(alone(), &resource("cpu")).await.unwrap()
    else {
        unreachable!()
    };
    let seen: Vec<(i64, i64, i64)> =
        stray.iter().map(|s| (s.milli.get(), s.at.as_second(), s.window.as_secs())).collect();
    let zero = api::time::GO_ZERO.as_second();
    assert_eq!(seen, [(i64::MAX, 1_767_225_600, 15), (-5000, 1_767_225_600, 15), (500, zero, 0)]);
}

#[tokio::test]
async fn values_and_series_are_decoded() {
    assert_eq!(outcome('O', |request| Reply::json(&good(&request.line))).await, "Totals([5000])");
    let two = json!({"items": [{"value": "1"}, {"value": "-2"}]});
    assert_eq!(outcome('E', move |_| Reply::json(&two)).await, "Totals([1000, -2000])");
    let old = json!({"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta1", "items": [
        {"describedObject": {"name": "p"}, "window": 30, "value": "1"},
        {"describedObject": {"name": "q"}, "value": "2"}]});
    let fake = server(move |_| Reply::json(&old));
    let MetricSamples::PerPod(samples) = metrics(&fake).samples(alone(), &pods("m", "")).await.unwrap()
    else {
        unreachable!()
    };
    let windows: Vec<i64> = samples.stray.iter().map(|sample| sample.window.as_secs()).collect();
    assert_eq!(windows, [30, 60]);
}

#[tokio::test]
async fn invalid_metrics_are_not_requested() {
    let fake = server(|_| Reply::new(500, TEXT, "boom"));
    let metrics = metrics(&fake);
    let mut broken = pods("m", "");
    broken.source = MetricSource::Pods(MetricId { selector: Err("no".into()), ..id("m", "") });
    for metric in [
        broken,
        metric(MetricSource::Unknown("X".to_owned()), MetricTarget::Value(1.into())),
        Metric { target: MetricTarget::Missing, ..resource("cpu") },
    ] {
        assert_eq!(metrics.samples(alone(), &metric).await.unwrap(), MetricSamples::NotQueried);
    }
    assert!(fake.lines().is_empty());
    let unserved = object(Some("networking.k8s.io/v1"), "Nope", "x", "Hits");
    assert_eq!(
        metrics.samples(alone(), &unserved).await.unwrap_err().to_string(),
        "unable to fetch metrics from custom metrics API: unable to map kind Nope.networking.k8s.io to resource: no \
         matches for kind \"Nope\" in group \"networking.k8s.io\""
    );
}

#[tokio::test]
async fn custom_metrics_use_the_first_known_version() {
    for (served, expected) in [
        (&[][..], Err("no custom metrics API (custom.metrics.k8s.io) registered")),
        (&["v1"], Err("no known available metric versions found")),
        (&["v1", "v1beta1", "v1beta2"], Ok("v1beta1")),
        (&["v1beta2", "v1beta1"], Ok("v1beta2")),
    ] {
        let fake = Fake::new(move |request| {
            let groups: &[(&str, &[&str])] =
                if served.is_empty() { &[] } else { &[("custom.metrics.k8s.io", served)] };
            described(request, groups).unwrap_or_else(|| Reply::json(&good(&request.line)))
        });
        let result = metrics(&fake).samples(alone(), &pods("m", "")).await;
        match expected {
            Ok(version) => {
                assert!(request_lines(&fake)[0].contains(&format!("/custom.metrics.k8s.io/{version}/")));
                result.unwrap();
            }
            Err(text) => {
                assert_eq!(
                    result.unwrap_err().to_string(),
                    format!("unable to fetch metrics from custom metrics API: {text}")
                );
            }
        }
    }
}
