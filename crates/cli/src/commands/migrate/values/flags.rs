//! Flags of command lines as values of our chart.

use serde_json::{Value, json};

use super::super::arguments::{GivenFlag, given};
use super::convert::ConvertedValues;
use crate::commands::metrics::flags::FLAGS as METRICS_FLAGS;
use crate::commands::operator::IDLE_VARIABLES;
use crate::commands::operator::flags::FLAGS as OPERATOR_FLAGS;
use crate::flags::{FlagEffect, go_bool};

/// Flags that the chart sets by itself.
const SET_BY_METRICS_CHART: [&str; 12] = [
    "bind-address",
    "cert-dir",
    "cert-secret-name",
    "config",
    "enable-cert-rotation",
    "health-probe-bind-address",
    "kubelet-use-node-status-port",
    "logging-format",
    "logtostderr",
    "secure-port",
    "tls-cert-file",
    "tls-private-key-file",
];
const SET_BY_OPERATOR_CHART: [&str; 15] = [
    "cert-dir",
    "cert-secret-name",
    "disable-compression",
    "enable-apiservice-patching",
    "enable-cert-rotation",
    "enable-webhook-patching",
    "health-probe-bind-address",
    "leader-elect",
    "metrics-server-service-name",
    "operator-service-name",
    "secure-port",
    "validating-webhook-name",
    "webhooks-service-name",
    "zap-encoder",
    "zap-time-encoding",
];
/// What KEDA's chart always sets, with the values that it has by default. They mean what a missing flag or variable means.
const KEDA_CHART_DEFAULTS: [(&str, &str); 3] = [
    ("zap-log-level", "info"),
    ("KEDA_HTTP_DEFAULT_TIMEOUT", "3000"),
    ("KEDA_HTTP_MIN_TLS_VERSION", "TLS12"),
];
/// Variables that the pods get by themselves.
const POD_VARIABLES: [&str; 4] = ["OPERATOR_NAME", "POD_IP", "POD_NAME", "POD_NAMESPACE"];

/// The variable for which the chart has a value, because permissions depend on it.
const RESTRICTED_SECRETS: &str = "KEDA_RESTRICT_SECRET_ACCESS";

/// Converts the flags of metrics-server and prometheus-adapter. `path` is where they were found.
pub(in super::super) fn metrics_arguments(converted: &mut ConvertedValues, path: &str, words: &[String]) {
    for found in given(METRICS_FLAGS, words) {
        let GivenFlag { flag, name, value } = &found;
        let name = flag.map_or(name.as_str(), |flag| flag.name);
        match name {
            "metric-resolution" => converted.set("metrics.metricResolution", json!(value)),
            "kubelet-preferred-address-types" => {
                converted.set("metrics.kubeletPreferredAddressTypes", json!(value));
            }
            "kubelet-insecure-tls" => {
                converted.set("metrics.kubeletInsecureTLS", json!(go_bool(value) == Some(true)));
            }
            "prometheus-url" => converted.set("metrics.prometheus.url", json!(value)),
            "metrics-relist-interval" => converted.set("metrics.prometheus.relistInterval", json!(value)),
            // Another name of --kubeconfig, which `plimsoll run` does not have.
            "lister-kubeconfig" if !value.is_empty() => {
                converted.push("metrics.extraArgs", json!(format!("--kubeconfig={value}")));
            }
            _ if SET_BY_METRICS_CHART.contains(&name) => {}
            _ => extra(converted, "metrics.extraArgs", path, &found),
        }
    }
}

/// Converts the flags of KEDA's operator.
pub(in super::super) fn keda_arguments(converted: &mut ConvertedValues, path: &str, words: &[String]) {
    for found in given(OPERATOR_FLAGS, words) {
        let name = found.flag.map_or(found.name.as_str(), |flag| flag.name);
        let is_set = SET_BY_OPERATOR_CHART.contains(&name);
        if !is_set && !KEDA_CHART_DEFAULTS.contains(&(name, found.value.as_str())) {
            extra(converted, "operator.extraArgs", path, &found);
        }
    }
}

/// Passes a flag on, unless it is unknown, without effect, or at its default.
fn extra(converted: &mut ConvertedValues, to: &str, path: &str, found: &GivenFlag) {
    let GivenFlag { flag, name, value } = found;
    let place = format!("{path}: --{name}");
    match flag {
        None => converted.lose(&place, "Plimsoll has no such flag"),
        Some(flag) if value == flag.default => {}
        Some(flag) if flag.effect == FlagEffect::Nothing => converted.lose(&place, flag.about),
        Some(flag) => converted.push(to, json!(format!("--{}={value}", flag.name))),
    }
}

/// Converts the variables of KEDA's operator.
pub(in super::super) fn keda_variables(converted: &mut ConvertedValues, path: &str, variables: &[Value]) {
    for variable in variables {
        let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
        let value = variable.get("value").and_then(Value::as_str).unwrap_or_default();
        let is_literal = variable.get("valueFrom").is_none();
        let is_default = KEDA_CHART_DEFAULTS.contains(&(name, value));
        if (is_literal && value.is_empty()) || is_default || POD_VARIABLES.contains(&name) {
            continue;
        }
        if is_literal && name == RESTRICTED_SECRETS {
            converted.set("operator.restrictSecretAccess", json!(value.eq_ignore_ascii_case("true")));
            continue;
        }
        if IDLE_VARIABLES.contains(&name) {
            converted.lose(&format!("{path}: {name}"), "this variable has no effect here (docs/operator.md)");
        } else {
            converted.push("operator.env", variable.clone());
        }
    }
}
