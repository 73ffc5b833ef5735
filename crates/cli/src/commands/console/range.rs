//! Longer ranges than controller and operator keep: from the Prometheus that the metrics server reports, through the API server and
//! with the rights of the user. The series are those of kube-state-metrics; of Autoscalers, which it does not know, also that of the
//! controller, and of ScaledJobs those of their Jobs.

use std::collections::BTreeMap;

use api::autoscaling::v2::CrossVersionObjectReference;
use api::reports::{self, ServerReport};
use cluster::AutoscalerKind;
use cluster::request::{below, with_query};
use http::Uri;
use jiff::Timestamp;
use serde_json::{Value, json};
use web_console::ApiError;

use super::path::{ObjectPath, failed};
use super::readings::seconds;
use crate::live::{ClusterClient, RequestError};

/// The shortest and the longest range.
const RANGE_SECONDS: std::ops::RangeInclusive<i64> = 3600..=30 * 24 * 3600;
/// Points of a chart.
const MAX_POINTS_PER_SERIES: i64 = 500;
/// The shortest time between two points.
const MIN_STEP_SECONDS: i64 = 15;
/// The names of the series begin with this.
const SERIES: &str = "kube_horizontalpodautoscaler_";
/// The desired replicas that an HPA controller exports, also for Autoscalers.
const DESIRED: &str = "horizontal_pod_autoscaler_controller_desired_replicas";
/// Kinds of targets, the series of their replicas, and the label with their name.
const TARGETS: [(&str, &str, &str); 3] = [
    ("Deployment", "kube_deployment_spec_replicas", "deployment"),
    ("StatefulSet", "kube_statefulset_replicas", "statefulset"),
    ("ReplicaSet", "kube_replicaset_spec_replicas", "replicaset"),
];
/// How KEDA and Plimsoll name the HPA of a ScaledObject, unless it says another name.
const GENERATED_HPA: &str = "keda-hpa-";

/// A Prometheus behind a Service of the cluster.
#[derive(Debug, PartialEq, Eq)]
struct PrometheusService {
    namespace: String,
    /// As proxy paths name it: `prometheus:9090`, `https:prometheus:443`.
    service: String,
    /// What its paths begin with.
    prefix: String,
}

impl PrometheusService {
    /// The Service of an address such as `http://prometheus.monitoring.svc:9090`.
    fn of(address: &str) -> Option<Self> {
        let uri: Uri = address.parse().ok()?;
        let mut names = uri.host()?.split('.');
        let (name, namespace) = (names.next()?, names.next()?);
        // `NAME.NAMESPACE` or `NAME.NAMESPACE.svc…`; an address is none of them.
        let is_service = names.next().is_none_or(|word| word == "svc") && name.parse::<u8>().is_err();
        let port = uri.port_u16().map_or_else(String::new, |port| format!(":{port}"));
        let scheme = if uri.scheme_str() == Some("https") { "https:" } else { "" };
        is_service.then(|| Self {
            namespace: namespace.to_owned(),
            service: format!("{scheme}{name}{port}"),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    fn query_range(&self) -> String {
        let proxy =
            below("/api/v1/namespaces", [self.namespace.as_str(), "services", &self.service, "proxy"]);
        format!("{proxy}{}/api/v1/query_range", self.prefix)
    }
}

/// The history of so many seconds before now.
pub(super) async fn read(
    client: &ClusterClient,
    path: &ObjectPath<'_>,
    range: Option<i64>,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let range = range.filter(|range| RANGE_SECONDS.contains(range));
    let range =
        range.ok_or_else(|| ApiError::new(400, "`range` is between one hour and thirty days, in seconds"))?;
    let named = path.autoscaler()?;
    let (query, bounds) = match named.kind {
        AutoscalerKind::Hpa => (hpa_query(path.namespace, path.name), None),
        AutoscalerKind::ScaledObject => {
            let object = client.object(path.namespace, &named).await.map_err(|error| failed(&error))?;
            (hpa_query(path.namespace, &hpa_of(&object.raw, path.name)), None)
        }
        kind @ (AutoscalerKind::Autoscaler | AutoscalerKind::ScaledJob) => {
            let object = client.object(path.namespace, &named).await.map_err(|error| failed(&error))?;
            let spec = object.hpa.spec;
            let query = if kind == AutoscalerKind::ScaledJob {
                jobs_query(path.namespace, path.name)
            } else {
                autoscaler_query(path.namespace, path.name, &spec.scale_target_ref)
            };
            (query, Some((spec.min_replicas.unwrap_or(1), spec.max_replicas)))
        }
    };
    let exporters = match named.kind {
        AutoscalerKind::Autoscaler => "plimsoll controller and kube-state-metrics",
        _ => "kube-state-metrics",
    };
    let report = format!("/apis/{}/{}/{}", reports::API_VERSION, reports::RESOURCE, reports::CURRENT);
    // Whatever the cause: the autoscaler itself is there, which another code would deny.
    let unavailable =
        |error: RequestError| ApiError::new(503, format!("longer ranges cannot be read: {error}"));
    let report: ServerReport = client.get(&report).await.map_err(unavailable)?;
    let service = report.prometheus.iter().find_map(|one| PrometheusService::of(&one.address));
    let service = service.ok_or_else(|| {
        ApiError::new(400, "the metrics server uses no Prometheus that is a Service of this cluster")
    })?;
    let step = (range / MAX_POINTS_PER_SERIES).max(MIN_STEP_SECONDS);
    // Times of one query are the same in every answer, so that the chart does not change with each.
    let end = now.as_second() / step * step;
    let (start, end, step_text) = ((end - range).to_string(), end.to_string(), step.to_string());
    let query = [("query", query.as_str()), ("start", &start), ("end", &end), ("step", &step_text)];
    let answer: Value = client.get(&with_query(&service.query_range(), query)).await.map_err(unavailable)?;
    let PrometheusService { namespace, service, .. } = &service;
    let mut history =
        bounds.map_or_else(|| of_answer(&answer), |bounds| of_autoscaler_answer(&answer, bounds));
    let is_empty = history.get("points").and_then(Value::as_array).is_none_or(Vec::is_empty);
    let who = path.id();
    let note = match (is_empty, bounds) {
        (true, _) => format!(
            "Prometheus {service} in {namespace} has no series of {who}; remedy: let it scrape {exporters}."
        ),
        (false, None) => {
            format!("From Prometheus {service} in {namespace}: one point every {step} s, without decisions.")
        }
        (false, Some(_)) => format!(
            "From Prometheus {service} in {namespace}: one point every {step} s, without decisions and metrics; the bounds are \
             those of now."
        ),
    };
    if let Some(fields) = history.as_object_mut() {
        fields.insert("note".into(), json!(note));
    }
    Ok(history)
}

/// All series of an HPA.
fn hpa_query(namespace: &str, hpa: &str) -> String {
    format!("{{__name__=~\"{SERIES}.+\",namespace=\"{namespace}\",horizontalpodautoscaler=\"{hpa}\"}}")
}

/// The replicas of an Autoscaler, as series `desired` and `current`.
fn autoscaler_query(namespace: &str, name: &str, target: &CrossVersionObjectReference) -> String {
    let series =
        |query: &str, name: &str| format!("label_replace(max({query}), \"series\", \"{name}\", \"\", \"\")");
    // Prometheus renames the label of the controller where the target has one of that name.
    let desired = ["namespace", "exported_namespace"]
        .map(|label| format!("{DESIRED}{{{label}=\"{namespace}\",hpa_name=\"{name}\"}}"));
    let mut query = series(&desired.join(" or "), "desired");
    let current = TARGETS.iter().find(|(kind, ..)| *kind == target.kind);
    if let Some((_, replicas, label)) = current.filter(|_| is_name(&target.name)) {
        let current = format!("{replicas}{{namespace=\"{namespace}\",{label}=\"{}\"}}", target.name);
        query += &format!(" or {}", series(&current, "current"));
    }
    query
}

/// The Jobs of a ScaledJob that have not finished, as series `current`.
fn jobs_query(namespace: &str, name: &str) -> String {
    // Several exporters may have the same Job.
    let jobs = |series: &str| format!("max by (namespace, job_name) ({series})");
    let active = jobs(&format!("kube_job_status_active{{namespace=\"{namespace}\"}}"));
    let owned = jobs(&format!(
        "kube_job_owner{{namespace=\"{namespace}\",owner_kind=\"ScaledJob\",owner_name=\"{name}\"}}"
    ));
    format!(
        "label_replace(sum({active} * on (namespace, job_name) {owned}), \"series\", \"current\", \"\", \"\")"
    )
}

/// The HPA of a ScaledObject, which may have a name of its own.
fn hpa_of(object: &Value, name: &str) -> String {
    let own = object.pointer("/status/hpaName").and_then(Value::as_str).unwrap_or_default();
    if is_name(own) { own.to_owned() } else { format!("{GENERATED_HPA}{name}") }
}

/// Whether a text of an object, which may be any, is a name and may become a part of a query.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
}

/// What is known of one time.
#[derive(Default)]
struct RangePoint {
    current: Option<f64>,
    desired: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    values: BTreeMap<MetricKey, f64>,
}

/// Name and type of target.
type MetricKey = (String, String);

/// The series of one HPA as a chart.
fn of_answer(answer: &Value) -> Value {
    let mut points: BTreeMap<i64, RangePoint> = BTreeMap::new();
    let mut targets: BTreeMap<MetricKey, f64> = BTreeMap::new();
    for series in answer.pointer("/data/result").and_then(Value::as_array).into_iter().flatten() {
        let label = |name: &str| {
            series.pointer(&format!("/metric/{name}")).and_then(Value::as_str).unwrap_or_default()
        };
        let Some(name) = label("__name__").strip_prefix(SERIES) else { continue };
        let key = (label("metric_name").to_owned(), label("metric_target_type").to_owned());
        for sample in series.get("values").and_then(Value::as_array).into_iter().flatten() {
            let Some((at, value)) = number(sample) else { continue };
            let point = points.entry(at).or_default();
            match name {
                "status_current_replicas" => point.current = Some(value),
                "status_desired_replicas" => point.desired = Some(value),
                "spec_min_replicas" => point.min = Some(value),
                "spec_max_replicas" => point.max = Some(value),
                "status_target_metric" => {
                    point.values.insert(key.clone(), value);
                }
                "spec_target_metric" => {
                    targets.insert(key.clone(), value);
                }
                _ => {}
            }
        }
    }
    chart(&points, &targets)
}

/// The series of one Autoscaler or ScaledJob as a chart with its present bounds.
fn of_autoscaler_answer(answer: &Value, (min, max): (i32, i32)) -> Value {
    let mut points: BTreeMap<i64, RangePoint> = BTreeMap::new();
    for series in answer.pointer("/data/result").and_then(Value::as_array).into_iter().flatten() {
        let name = series.pointer("/metric/series").and_then(Value::as_str);
        for sample in series.get("values").and_then(Value::as_array).into_iter().flatten() {
            let Some((at, value)) = number(sample) else { continue };
            let point = points.entry(at).or_default();
            (point.min, point.max) = (Some(f64::from(min)), Some(f64::from(max)));
            match name {
                Some("current") => point.current = Some(value),
                Some("desired") => point.desired = Some(value),
                _ => {}
            }
        }
    }
    chart(&points, &BTreeMap::new())
}

fn chart(points: &BTreeMap<i64, RangePoint>, targets: &BTreeMap<MetricKey, f64>) -> Value {
    let headings = targets.iter().map(|((name, kind), target)| {
        json!({"name": name, "unit": if kind == "utilization" { "%" } else { "" }, "target": target})
    });
    // A time without bounds has another series only, such as one of a metric.
    let shown = points.iter().filter_map(|(at, point)| {
        let (min, max) = point.min.zip(point.max)?;
        let values: Vec<Option<f64>> = targets.keys().map(|key| point.values.get(key).copied()).collect();
        let at = Timestamp::from_second(*at).ok()?;
        Some(json!({"t": seconds(at), "current": point.current, "desired": point.desired, "min": min, "max": max,
            "values": values, "held": ""}))
    });
    json!({"source": "prometheus", "note": "", "cursor": null, "reset": true, "metrics": headings.collect::<Vec<Value>>(),
        "points": shown.collect::<Vec<Value>>(), "marks": []})
}

/// Time and value of a sample: `[1767603600, "4"]`. None for values that are no numbers.
fn number(sample: &Value) -> Option<(i64, f64)> {
    let (at, value) = (sample.get(0)?.as_f64()?, sample.get(1)?.as_str()?.parse::<f64>().ok()?);
    value.is_finite().then_some((at.round() as i64, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_read_from_addresses() {
        let of = |address: &str| PrometheusService::of(address).map(|found| found.query_range());
        let proxy = "/api/v1/namespaces/monitoring/services";
        assert_eq!(
            of("http://prometheus.monitoring.svc:9090").unwrap(),
            format!("{proxy}/prometheus%3A9090/proxy/api/v1/query_range")
        );
        assert_eq!(
            of("https://thanos.monitoring.svc.cluster.local/prefix/").unwrap(),
            format!("{proxy}/https%3Athanos/proxy/prefix/api/v1/query_range")
        );
        assert!(of("http://prometheus.monitoring").is_some());
        for other in
            ["http://127.0.0.1:9090", "http://localhost:9090", "https://prometheus.example.com", "nonsense"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn hpa_of_a_scaled_object_may_have_a_name_of_its_own() {
        let of = |hpa: &str| hpa_of(&json!({"status": {"hpaName": hpa}}), "orders");
        assert_eq!(of("my-hpa"), "my-hpa");
        assert_eq!(of("a\"} or up{a=\""), "keda-hpa-orders");
        assert_eq!(hpa_of(&json!({}), "orders"), "keda-hpa-orders");
    }

    #[test]
    fn replicas_of_an_autoscaler_have_present_bounds() {
        let target = |kind: &str, name: &str| CrossVersionObjectReference {
            kind: kind.into(),
            name: name.into(),
            ..CrossVersionObjectReference::default()
        };
        let query = |target: &CrossVersionObjectReference| autoscaler_query("shop", "web", target);
        let desired = "label_replace(max(horizontal_pod_autoscaler_controller_desired_replicas{namespace=\"shop\",hpa_name=\"web\"} or \
            horizontal_pod_autoscaler_controller_desired_replicas{exported_namespace=\"shop\",hpa_name=\"web\"}), \"series\", \"desired\", \"\", \"\")";
        let current = "label_replace(max(kube_statefulset_replicas{namespace=\"shop\",statefulset=\"db\"}), \"series\", \"current\", \"\", \"\")";
        assert_eq!(query(&target("StatefulSet", "db")), format!("{desired} or {current}"));
        assert_eq!(query(&target("Rollout", "db")), desired);
        assert_eq!(query(&target("Deployment", "a\"} or up{a=\"")), desired);
        let series = |name: &str, values: Value| json!({"metric": {"series": name}, "values": values});
        let answer = json!({"data": {"result": [
            series("desired", json!([[60, "4"]])), series("current", json!([[60, "2"], [120, "3"]]))]}});
        let found = of_autoscaler_answer(&answer, (1, 9));
        let points = found["points"].as_array().unwrap();
        assert_eq!(
            (&points[0]["current"], &points[0]["desired"], &points[0]["max"]),
            (&json!(2.0), &json!(4.0), &json!(9.0))
        );
        assert_eq!((&points[1]["current"], &points[1]["desired"]), (&json!(3.0), &Value::Null));
    }

    #[test]
    fn jobs_of_a_scaled_job_are_found_by_their_owner() {
        let expected = "label_replace(sum(max by (namespace, job_name) (kube_job_status_active{namespace=\"shop\"}) \
            * on (namespace, job_name) max by (namespace, job_name) \
            (kube_job_owner{namespace=\"shop\",owner_kind=\"ScaledJob\",owner_name=\"mails\"})), \"series\", \"current\", \"\", \"\")";
        assert_eq!(jobs_query("shop", "mails"), expected);
    }

    #[test]
    fn series_become_points_and_missing_values_are_not_zero() {
        let series = |name: &str, metric: &str, values: Value| {
            json!({"metric": {"__name__": format!("{SERIES}{name}"),
            "metric_name": metric, "metric_target_type": if metric.is_empty() { "" } else { "utilization" }}, "values": values})
        };
        let answer = json!({"status": "success", "data": {"resultType": "matrix", "result": [
            series("status_current_replicas", "", json!([[60, "2"], [120, "3"]])),
            series("status_desired_replicas", "", json!([[60, "3"], [120, "3"]])),
            series("spec_min_replicas", "", json!([[60, "1"], [120, "1"]])),
            series("spec_max_replicas", "", json!([[60, "10"], [120, "10"]])),
            series("status_target_metric", "cpu", json!([[60, "75"], [120, "NaN"], [180, "1"]])),
            series("spec_target_metric", "cpu", json!([[60, "50"], [120, "50"]])),
            series("labels", "", json!([[60, "1"]])),
        ]}});
        let found = of_answer(&answer);
        assert_eq!(found["metrics"], json!([{"name": "cpu", "unit": "%", "target": 50.0}]));
        let points = found["points"].as_array().unwrap();
        assert_eq!(points.len(), 2, "a time without bounds is left out");
        assert_eq!((&points[0]["current"], &points[0]["values"]), (&json!(2.0), &json!([75.0])));
        assert_eq!((&points[1]["t"], &points[1]["values"]), (&json!(120.0), &json!([null])));
        assert!(of_answer(&json!({}))["points"].as_array().unwrap().is_empty());
    }
}
