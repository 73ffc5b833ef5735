//! Validation of probes and lifecycle hooks.

use api::field::FieldError;
use serde_json::Value;

use crate::rules::faults::Faults;
use crate::rules::json::{at, has, list, number, text};

/// Validates the hooks and probes of a container.
pub(super) fn check(faults: &mut Faults, path: &str, container: &Value) {
    for hook in ["postStart", "preStop"] {
        let name = format!("lifecycle.{hook}");
        if has(container, &name) {
            handler(faults, &format!("{path}.{name}"), at(container, &name));
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if has(container, name) {
            probe(faults, &format!("{path}.{name}"), at(container, name), name);
        }
    }
}

fn probe(faults: &mut Faults, path: &str, probe: &Value, name: &str) {
    handler(faults, path, probe);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        faults.not_negative(format_args!("{path}.{field}"), number(probe, field));
    }
    if let Some(seconds) = number(probe, "terminationGracePeriodSeconds") {
        let path = format_args!("{path}.terminationGracePeriodSeconds");
        if name == "readinessProbe" {
            faults.invalid(path, seconds, "must not be set for readinessProbes");
        } else if seconds <= 0 {
            faults.invalid(path, seconds, "must be greater than 0");
        }
    }
    let successes = number(probe, "successThreshold").unwrap_or(1);
    if name != "readinessProbe" && successes != 1 {
        faults.invalid(format_args!("{path}.successThreshold"), successes, "must be 1");
    }
}

/// Requires exactly one handler, and validates it.
fn handler(faults: &mut Faults, path: &str, handler: &Value) {
    let mut found = 0;
    for (way, check) in HANDLERS {
        if !has(handler, way) {
            continue;
        }
        found += 1;
        let path = format!("{path}.{way}");
        if found > 1 {
            faults.forbidden(path, "may not specify more than 1 handler type");
        } else {
            check(faults, &path, at(handler, way));
        }
    }
    if found == 0 {
        faults.add(FieldError::required(path, "must specify a handler type"));
    }
}

type HandlerCheck = fn(&mut Faults, &str, &Value);

const HANDLERS: [(&str, HandlerCheck); 5] = [
    ("exec", |faults, path, exec| {
        if list(exec, "command").is_empty() {
            faults.required(format_args!("{path}.command"));
        }
    }),
    ("httpGet", http),
    ("tcpSocket", |faults, path, socket| faults.port(format_args!("{path}.port"), at(socket, "port"))),
    ("grpc", |faults, path, grpc| faults.port(format_args!("{path}.port"), at(grpc, "port"))),
    ("sleep", |_, _, _| {}),
];

fn http(faults: &mut Faults, path: &str, get: &Value) {
    faults.present(format_args!("{path}.path"), text(get, "path"));
    faults.port(format_args!("{path}.port"), at(get, "port"));
    faults.one_of(format_args!("{path}.scheme"), text(get, "scheme"), &["HTTP", "HTTPS"]);
    for header in list(get, "httpHeaders") {
        let name = text(header, "name");
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            let detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', \
                          regex used for validation is '[-A-Za-z0-9]+')";
            faults.invalid(format_args!("{path}.httpHeaders"), name, detail);
        }
    }
}
