//! Values of custom and external metrics on the wire.

use std::io::Write as _;

use api::provider::{CustomMetricSample, ExternalMetricSample, ObjectReference};
use api::selector::LabelSelector;

use crate::encode::json::{self, Instants};
use crate::encode::{Object, protobuf};

/// Version of `custom.metrics.k8s.io`: the same data in two shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1beta1,
    V1beta2,
}

impl Version {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1beta1 => "v1beta1",
            Self::V1beta2 => "v1beta2",
        }
    }
}

/// `MetricValueList`.
pub(super) struct CustomList {
    pub(super) version: Version,
    pub(super) values: Vec<CustomMetricSample>,
}

/// `ExternalMetricValueList`.
pub(super) struct ExternalList(pub(super) Vec<ExternalMetricSample>);

/// The beginning of a list, up to its items.
fn head(out: &mut Vec<u8>, (version, kind): &(String, String)) {
    out.push(b'{');
    json::field(out, "kind", kind);
    json::field(out, "apiVersion", version);
    out.extend_from_slice(b",\"metadata\":{},\"items\":[");
}

fn described(out: &mut Vec<u8>, object: &ObjectReference) {
    let ObjectReference { kind, namespace, name, api_version } = object;
    out.extend_from_slice(b"{\"describedObject\":{");
    for (key, text) in [("kind", kind), ("namespace", namespace), ("name", name), ("apiVersion", api_version)]
    {
        if !text.is_empty() {
            json::field(out, key, text);
        }
    }
    out.push(b'}');
}

fn selector(out: &mut Vec<u8>, selector: Option<&LabelSelector>) {
    out.extend_from_slice(b",\"selector\":");
    match selector.and_then(|selector| api::gotext::json(selector).ok()) {
        Some(text) => out.extend_from_slice(text.as_bytes()),
        None => out.extend_from_slice(b"null"),
    }
}

fn window(out: &mut Vec<u8>, key: &str, seconds: Option<i64>) {
    if let Some(seconds) = seconds {
        // Writing to a buffer cannot fail.
        let _ = write!(out, ",\"{key}\":{seconds}");
    }
}

impl Object for CustomList {
    fn kind(&self) -> (String, String) {
        (format!("custom.metrics.k8s.io/{}", self.version.name()), "MetricValueList".to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        head(out, &self.kind());
        let mut instants = Instants::default();
        for value in &self.values {
            json::comma(out);
            described(out, &value.object);
            if self.version == Version::V1beta1 {
                json::field(out, "metricName", &value.metric);
            } else {
                out.extend_from_slice(b",\"metric\":{");
                json::field(out, "name", &value.metric);
                selector(out, value.series.as_ref());
                out.push(b'}');
            }
            out.extend_from_slice(b",\"timestamp\":");
            instants.write(out, value.timestamp);
            let key = if self.version == Version::V1beta1 { "window" } else { "windowSeconds" };
            window(out, key, value.window);
            out.extend_from_slice(b",\"value\":");
            json::quantity(out, &value.value);
            if self.version == Version::V1beta1 {
                selector(out, value.series.as_ref());
            }
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        protobuf::list_meta(out);
        for value in &self.values {
            protobuf::message(out, 2, |out| self.value(out, value));
        }
    }

    fn size(&self) -> usize {
        256 + self.values.len() * 320
    }
}

impl CustomList {
    fn value(&self, out: &mut Vec<u8>, value: &CustomMetricSample) {
        let ObjectReference { kind, namespace, name, api_version } = &value.object;
        protobuf::message(out, 1, |out| {
            let texts = [kind, namespace, name, "", api_version, "", ""];
            texts.iter().zip(1..).for_each(|(text, field)| protobuf::text(out, field, text));
        });
        if self.version == Version::V1beta1 {
            protobuf::text(out, 2, &value.metric);
        } else {
            protobuf::message(out, 2, |out| {
                protobuf::text(out, 1, &value.metric);
                selector_protobuf(out, 2, value.series.as_ref());
            });
        }
        protobuf::instant(out, 3, value.timestamp);
        if let Some(seconds) = value.window {
            protobuf::number(out, 4, seconds);
        }
        protobuf::quantity(out, 5, &value.value);
        if self.version == Version::V1beta1 {
            selector_protobuf(out, 6, value.series.as_ref());
        }
    }
}

fn selector_protobuf(out: &mut Vec<u8>, field: u32, selector: Option<&LabelSelector>) {
    let Some(selector) = selector else { return };
    protobuf::message(out, field, |out| {
        selector.match_labels.iter().for_each(|(key, value)| protobuf::entry(out, 1, key, value));
        for requirement in &selector.match_expressions {
            protobuf::message(out, 2, |out| {
                protobuf::text(out, 1, &requirement.key);
                protobuf::text(out, 2, &requirement.operator);
                requirement.values.iter().for_each(|value| protobuf::text(out, 3, value));
            });
        }
    });
}

impl Object for ExternalList {
    fn kind(&self) -> (String, String) {
        ("external.metrics.k8s.io/v1beta1".to_owned(), "ExternalMetricValueList".to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        head(out, &self.kind());
        let mut instants = Instants::default();
        for value in &self.0 {
            json::comma(out);
            out.push(b'{');
            json::field(out, "metricName", &value.metric);
            out.extend_from_slice(b",\"metricLabels\":");
            match sorted(value) {
                None => out.extend_from_slice(b"null"),
                Some(labels) => {
                    out.push(b'{');
                    for (key, value) in labels {
                        json::field(out, key, value);
                    }
                    out.push(b'}');
                }
            }
            out.extend_from_slice(b",\"timestamp\":");
            instants.write(out, value.timestamp);
            window(out, "window", value.window);
            out.extend_from_slice(b",\"value\":");
            json::quantity(out, &value.value);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        protobuf::list_meta(out);
        for value in &self.0 {
            protobuf::message(out, 2, |out| {
                protobuf::text(out, 1, &value.metric);
                for (key, value) in sorted(value).unwrap_or_default() {
                    protobuf::entry(out, 2, key, value);
                }
                protobuf::instant(out, 3, value.timestamp);
                if let Some(seconds) = value.window {
                    protobuf::number(out, 4, seconds);
                }
                protobuf::quantity(out, 5, &value.value);
            });
        }
    }

    fn size(&self) -> usize {
        256 + self.0.len() * 256
    }
}

/// Sorted labels, as Go writes maps.
fn sorted(value: &ExternalMetricSample) -> Option<Vec<(&str, &str)>> {
    let mut labels: Vec<_> =
        value.labels.as_ref()?.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    labels.sort_unstable();
    Some(labels)
}
