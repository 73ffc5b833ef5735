//! The instruments of KEDA's OpenTelemetry metrics (docs/spec/keda.md 9.3), made from the families of `/metrics`. Families that KEDA does not export keep their names.

use otlp::exposition::{FamilyKind, MetricFamily, MetricPoint, PointValue};
use otlp::wire::KeyValue;

/// The name of KEDA's meter.
pub const METER: &str = "keda-open-telemetry-metrics";

/// Families of `/metrics` under the names and with the attributes of KEDA's instruments.
pub fn keda_instruments(families: Vec<MetricFamily>) -> Vec<MetricFamily> {
    let mut instruments: Vec<MetricFamily> = Vec::with_capacity(families.len());
    for family in families {
        for instrument in instruments_of(family) {
            // Two families may be one instrument with another attribute.
            match instruments.iter_mut().find(|known| known.name == instrument.name) {
                Some(known) => known.points.extend(instrument.points),
                None => instruments.push(instrument),
            }
        }
    }
    instruments
}

fn instruments_of(family: MetricFamily) -> Vec<MetricFamily> {
    let one = |name: &str, attributes: Attributes| vec![renamed(&family, name, attributes)];
    match &*family.name {
        "keda_build_info" => one("keda.build.info", same),
        "keda_scaler_metrics_value" => one("keda.scaler.metrics.value", scaler),
        "keda_scaler_active" => one("keda.scaler.active", scaler),
        "keda_scaler_detail_errors_total" => one("keda.scaler.errors", scaler),
        "keda_scaler_metrics_latency_seconds" => {
            with_deprecated_milliseconds(renamed(&family, "keda.scaler.metrics.latency.seconds", scaler))
        }
        "keda_scaled_object_errors_total" => one("keda.scaledobject.errors", same),
        "keda_scaled_job_errors_total" => one("keda.scaledjob.errors", same),
        "keda_scaled_object_paused" => one("keda.scaled.object.paused", same),
        "keda_internal_scale_loop_latency_seconds" => {
            let seconds = renamed(&family, "keda.internal.scale.loop.latency.seconds", scale_loop);
            with_deprecated_milliseconds(seconds)
        }
        "keda_trigger_registered_total" => {
            totals(&family, ["keda.trigger.registered.count", "keda.trigger.totals"])
        }
        "keda_resource_registered_total" => {
            totals(&family, ["keda.resource.registered.count", "keda.resource.totals"])
        }
        "keda_scaler_empty_upstream_responses_total" => {
            one("keda.scaler.empty.upstream.responses", empty_response)
        }
        "keda_cloudeventsource_events_emitted_total" => {
            one("keda.cloudeventsource.events.emitted.count", cloud_event)
        }
        "keda_cloudeventsource_events_queued" => one("keda.cloudeventsource.events.queued", same),
        "keda_scaler_http_requests_total" => one("keda.scaler.http.requests.count", same),
        "keda_scaler_http_request_duration_seconds" => one("keda.scaler.http.request.duration.seconds", same),
        "keda_grpc_client_handled_total" => one("keda.rpc.client.call.count", external_call),
        "keda_grpc_client_handling_seconds" => one("keda.rpc.client.call.duration", external_call),
        "keda_grpc_client_msg_sent_total" => {
            one("keda.rpc.client.stream.message.count", |point| external_message(point, "SENT"))
        }
        "keda_grpc_client_msg_received_total" => {
            one("keda.rpc.client.stream.message.count", |point| external_message(point, "RECEIVED"))
        }
        // Calls that have started are in no instrument of KEDA.
        _ => vec![family],
    }
}

/// Changes the attributes of a point.
type Attributes = fn(&MetricPoint) -> Vec<KeyValue>;

fn renamed(family: &MetricFamily, name: &str, attributes: Attributes) -> MetricFamily {
    let point =
        |point: &MetricPoint| MetricPoint { attributes: attributes(point), value: point.value.clone() };
    let points = family.points.iter().map(point).collect();
    MetricFamily {
        name: name.to_owned(),
        help: family.help.clone(),
        unit: family.unit,
        kind: family.kind,
        points,
    }
}

/// Latencies in seconds, and the deprecated ones in milliseconds.
fn with_deprecated_milliseconds(seconds: MetricFamily) -> Vec<MetricFamily> {
    let name = seconds.name.strip_suffix(".seconds").unwrap_or(&seconds.name).to_owned();
    let mut deprecated = MetricFamily {
        help: format!("DEPRECATED - use '{}' instead", seconds.name),
        name,
        unit: "",
        ..seconds.clone()
    };
    for point in &mut deprecated.points {
        if let PointValue::Number(value) = &mut point.value {
            *value *= 1000.0;
        }
    }
    vec![seconds, deprecated]
}

/// Numbers of objects, which are counters that grow and shrink, under their present and their deprecated name.
fn totals(family: &MetricFamily, names: [&str; 2]) -> Vec<MetricFamily> {
    let total = |name| MetricFamily { kind: FamilyKind::UpDownCounter, ..renamed(family, name, same) };
    names.map(total).into()
}

fn same(point: &MetricPoint) -> Vec<KeyValue> {
    point.attributes.clone()
}

fn text(point: &MetricPoint, label: &str, attribute: &str) -> KeyValue {
    KeyValue::text(attribute, point.attribute(label).unwrap_or_default())
}

/// The attributes of a scaler, which differ between ScaledObjects and ScaledJobs.
fn scaler(point: &MetricPoint) -> Vec<KeyValue> {
    let is_job = point.attribute("type") == Some("scaledjob");
    let (object, index) =
        if is_job { ("scaledJob", "triggerIndex") } else { ("scaledObject", "scalerIndex") };
    vec![
        text(point, "namespace", "namespace"),
        text(point, "scaledObject", object),
        text(point, "scaler", "scaler"),
        text(point, "triggerIndex", index),
        text(point, "metric", "metric"),
    ]
}

fn scale_loop(point: &MetricPoint) -> Vec<KeyValue> {
    vec![text(point, "namespace", "namespace"), text(point, "type", "type"), text(point, "resource", "name")]
}

fn empty_response(point: &MetricPoint) -> Vec<KeyValue> {
    let is = |label: &str, value: &str| point.attribute(label) == Some(value);
    vec![
        text(point, "namespace", "namespace"),
        text(point, "scaledResource", "scaledResource"),
        text(point, "triggerName", "triggerName"),
        text(point, "metricName", "metricName"),
        KeyValue::flag("isScaledObject", is("resourceType", "scaledobject")),
        KeyValue::flag("ignoreNullValues", is("ignoreNullValues", "true")),
    ]
}

fn cloud_event(point: &MetricPoint) -> Vec<KeyValue> {
    vec![
        text(point, "namespace", "namespace"),
        text(point, "cloudeventsource", "cloudEventSource"),
        text(point, "eventsink", "eventsink"),
        text(point, "state", "state"),
    ]
}

fn external_call(point: &MetricPoint) -> Vec<KeyValue> {
    let label = |name: &str| point.attribute(name).unwrap_or_default();
    let mut attributes = vec![
        text(point, "scaler", "scaler"),
        KeyValue::text("rpc.system.name", "grpc"),
        KeyValue::text("rpc.method", format!("{}/{}", label("grpc_service"), label("grpc_method"))),
    ];
    if let Some(code) = point.attribute("grpc_code") {
        attributes.push(KeyValue::text("rpc.response.status_code", canonical_code(code)));
    }
    attributes
}

fn external_message(point: &MetricPoint, direction: &str) -> Vec<KeyValue> {
    let mut attributes = external_call(point);
    attributes.push(KeyValue::text("rpc.message.type", direction));
    attributes
}

/// The canonical name of a gRPC code: `DEADLINE_EXCEEDED` for `DeadlineExceeded`.
fn canonical_code(code: &str) -> String {
    if code == "OK" {
        return code.to_owned();
    }
    let mut name = String::new();
    for (at, letter) in code.chars().enumerate() {
        if at > 0 && letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use otlp::exposition::parse;
    use otlp::wire::AnyValue;

    use super::*;

    fn shown(attributes: &[KeyValue]) -> String {
        let value = |value: &AnyValue| match (&value.string_value, value.bool_value) {
            (Some(text), _) => text.clone(),
            (None, flag) => format!("{flag:?}"),
        };
        let pair = |one: &KeyValue| format!("{}={}", one.key, value(one.value.as_ref().unwrap()));
        attributes.iter().map(pair).collect::<Vec<_>>().join(" ")
    }

    /// Name, kind, attributes and value of every point.
    fn points(text: &str) -> Vec<String> {
        let instruments = keda_instruments(parse(text));
        let shown = |family: &MetricFamily, point: &MetricPoint| {
            let value = match &point.value {
                PointValue::Number(number) => number.to_string(),
                PointValue::Histogram(buckets) => format!("{:?}", buckets.cumulative),
            };
            format!("{} {:?} {} {value}", family.name, family.kind, shown(&point.attributes))
        };
        let all =
            instruments.iter().flat_map(|family| family.points.iter().map(move |point| (family, point)));
        all.map(|(family, point)| shown(family, point)).collect()
    }

    #[test]
    fn scalers_of_objects_and_jobs_have_the_attributes_of_keda() {
        let page = "# TYPE keda_scaler_metrics_latency_seconds gauge\n\
            keda_scaler_metrics_latency_seconds{namespace=\"n\",metric=\"m\",scaledObject=\"o\",scaler=\"s\",triggerIndex=\"1\",type=\"scaledobject\"} 0.5\n\
            keda_scaler_metrics_latency_seconds{namespace=\"n\",metric=\"m\",scaledObject=\"j\",scaler=\"s\",triggerIndex=\"0\",type=\"scaledjob\"} 2\n";
        assert_eq!(
            points(page),
            [
                "keda.scaler.metrics.latency.seconds Gauge namespace=n scaledObject=o scaler=s scalerIndex=1 metric=m 0.5",
                "keda.scaler.metrics.latency.seconds Gauge namespace=n scaledJob=j scaler=s triggerIndex=0 metric=m 2",
                "keda.scaler.metrics.latency Gauge namespace=n scaledObject=o scaler=s scalerIndex=1 metric=m 500",
                "keda.scaler.metrics.latency Gauge namespace=n scaledJob=j scaler=s triggerIndex=0 metric=m 2000",
            ]
        );
    }

    #[test]
    fn totals_grow_and_shrink_and_have_a_deprecated_name() {
        let page =
            "# TYPE keda_trigger_registered_total gauge\nkeda_trigger_registered_total{type=\"cron\"} 3\n";
        assert_eq!(
            points(page),
            [
                "keda.trigger.registered.count UpDownCounter type=cron 3",
                "keda.trigger.totals UpDownCounter type=cron 3",
            ]
        );
    }

    #[test]
    fn flags_are_booleans() {
        let page = "# TYPE keda_scaler_empty_upstream_responses_total counter\n\
            keda_scaler_empty_upstream_responses_total{namespace=\"n\",scaledResource=\"r\",triggerName=\"t\",metricName=\"m\",resourceType=\"scaledobject\",ignoreNullValues=\"false\"} 1\n";
        assert_eq!(
            points(page),
            [
                "keda.scaler.empty.upstream.responses Counter namespace=n scaledResource=r triggerName=t metricName=m \
              isScaledObject=Some(true) ignoreNullValues=Some(false) 1"
            ]
        );
    }

    #[test]
    fn messages_of_both_directions_are_one_instrument() {
        let labels = "grpc_type=\"unary\",grpc_service=\"e.E\",grpc_method=\"M\",scaler=\"external\"";
        let page = format!(
            "# TYPE keda_grpc_client_msg_received_total counter\nkeda_grpc_client_msg_received_total{{{labels}}} 1\n\
             # TYPE keda_grpc_client_msg_sent_total counter\nkeda_grpc_client_msg_sent_total{{{labels}}} 2\n\
             # TYPE keda_grpc_client_handled_total counter\nkeda_grpc_client_handled_total{{{labels},grpc_code=\"DeadlineExceeded\"}} 3\n"
        );
        let call = "scaler=external rpc.system.name=grpc rpc.method=e.E/M";
        assert_eq!(
            points(&page),
            [
                format!("keda.rpc.client.stream.message.count Counter {call} rpc.message.type=RECEIVED 1"),
                format!("keda.rpc.client.stream.message.count Counter {call} rpc.message.type=SENT 2"),
                format!(
                    "keda.rpc.client.call.count Counter {call} rpc.response.status_code=DEADLINE_EXCEEDED 3"
                ),
            ]
        );
    }

    #[test]
    fn other_families_keep_their_names() {
        let page = "# TYPE workqueue_depth gauge\nworkqueue_depth{name=\"scaledobject\"} 4\n";
        assert_eq!(points(page), ["workqueue_depth Gauge name=scaledobject 4"]);
        assert_eq!(["OK", "Unknown", "NotFound"].map(canonical_code), ["OK", "UNKNOWN", "NOT_FOUND"]);
    }
}
