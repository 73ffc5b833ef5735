//! Addresses, metadata, specs, values and delays, without IO.

use std::time::Duration;

use api::autoscaling::v2;
use api::provider::Compat;
use external_scaler::ScaledObjectRef;
use external_scaler::protocol::{MetricSpec, MetricValue};

use crate::urls::shown;
use crate::{ParseError, Trigger, metric};

/// Delay before the first reconnection of a stream; it doubles each time.
pub(super) const MIN_RECONNECT_DELAY: Duration = Duration::from_secs(2);
/// Maximum delay.
const MAX_RECONNECT_DELAY: Duration = Duration::from_mins(1);
/// Default port, as in gRPC.
const DEFAULT_PORT: u16 = 443;
/// Maximum length in characters of a server's error message.
const MAX_MESSAGE_CHARS: usize = 200;

/// Parses an address of gRPC: `host`, `host:port`, `dns:///host:port`. The result is `host:port`, with an IPv6 address in
/// brackets. Sockets of the file system are refused, because they are those of the operator and not of the tenant.
pub(super) fn parse_address(address: &str) -> Result<String, ParseError> {
    if address.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("the address has spaces in it".into());
    }
    if let Some(scheme) = ["unix", "unix-abstract"].iter().find(|scheme| has_scheme(address, scheme)) {
        return Err(format!("{scheme}: addresses are not allowed: write host:port").into());
    }
    let host = match address.split_once("://") {
        // The authority names a DNS server, which is ignored: the system's resolver is used.
        Some(("dns" | "passthrough", rest)) => rest.split_once('/').map_or("", |(_, host)| host),
        Some((scheme @ ("http" | "https" | "grpc" | "grpcs"), rest)) => {
            let rest = shown(rest.split('/').next().unwrap_or_default());
            return Err(format!("{scheme}:// does not belong here: write {rest}").into());
        }
        Some((scheme, _)) => return Err(format!("{scheme}: is no scheme of gRPC that is known here").into()),
        None => {
            ["dns:", "passthrough:"].iter().find_map(|scheme| address.strip_prefix(scheme)).unwrap_or(address)
        }
    };
    with_port(host)
}

fn has_scheme(address: &str, scheme: &str) -> bool {
    address.split_once(':').is_some_and(|(given, _)| given.eq_ignore_ascii_case(scheme))
}

fn with_port(host: &str) -> Result<String, ParseError> {
    let bad = |reason: &str| Err(format!("{reason}: write host:port").into());
    let (name, port) = match host.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((name, "")) => (format!("[{name}]"), None),
            Some((name, port)) if port.starts_with(':') => (format!("[{name}]"), port.get(1..)),
            _ => return bad("a bracket is not closed"),
        },
        // More than one colon: an IPv6 address without brackets.
        None if host.matches(':').count() > 1 => (format!("[{host}]"), None),
        None => match host.split_once(':') {
            Some((name, port)) => (name.to_owned(), Some(port)),
            None => (host.to_owned(), None),
        },
    };
    if name.is_empty() || name == "[]" {
        return bad("there is no host");
    }
    if !name.chars().all(|c| c.is_alphanumeric() || "-._[]:%".contains(c)) {
        return bad("that is no host");
    }
    match port.map(str::parse::<u16>) {
        None => Ok(format!("{name}:{DEFAULT_PORT}")),
        Some(Ok(port @ 1..)) => Ok(format!("{name}:{port}")),
        Some(_) => bad("that is no port"),
    }
}

/// The reference sent to the server: all metadata, where keys that end in `FromEnv` have the value of the variable.
pub(super) fn object(trigger: &Trigger) -> ScaledObjectRef {
    let metadata = trigger.metadata.iter().filter_map(|(key, value)| {
        let value = if key.ends_with("FromEnv") {
            trigger.environment.get(value).filter(|value| !value.is_empty())?
        } else {
            value
        };
        Some((key.clone(), value.clone()))
    });
    ScaledObjectRef {
        name: trigger.owner.name.clone(),
        namespace: trigger.owner.namespace.clone(),
        scaler_metadata: metadata.collect(),
    }
}

/// The metric spec for the HPA. The server's metric name is not escaped.
pub(super) fn spec(trigger: &Trigger, spec: &MetricSpec) -> v2::MetricSpec {
    let target = if spec.target_size_float > 0.0 {
        metric::milli(spec.target_size_float)
    } else {
        metric::whole(spec.target_size)
    };
    metric::external_named(trigger, format!("s{}-{}", trigger.index, spec.metric_name), target)
}

/// The server's name of a metric.
pub(super) fn own_name(index: usize, metric: &str) -> &str {
    metric.strip_prefix(&*format!("s{index}-")).unwrap_or(metric)
}

/// The values, under the requested name.
pub(super) fn values(
    asked: &str,
    values: &[MetricValue],
    compat: Compat,
) -> Result<Vec<crate::MetricValue>, ParseError> {
    let one = |value: &MetricValue| {
        // KEDA turns infinity into 0, which would scale the target in.
        if value.metric_value_float.is_infinite() && !compat.is_strict() {
            return Err(format!("the value of {asked} is infinite").into());
        }
        let amount = if value.metric_value_float > 0.0 {
            metric::milli(value.metric_value_float)
        } else {
            metric::whole(value.metric_value.max(0))
        };
        Ok(crate::MetricValue { name: asked.to_owned(), value: amount })
    };
    values.iter().map(one).collect()
}

/// The delay before reconnecting, and the delay after the next end. It starts over after a clean end, or after a stream that
/// lasted longer than the maximum delay.
pub(super) fn reconnect(delay: Duration, clean: bool, lived: Duration) -> (Duration, Duration) {
    let wait = if clean || lived > MAX_RECONNECT_DELAY { MIN_RECONNECT_DELAY } else { delay };
    let next = if clean { MIN_RECONNECT_DELAY } else { (wait * 2).min(MAX_RECONNECT_DELAY) };
    (wait, next)
}

/// A server's error message, shortened to fit into an event.
pub(super) fn shorten(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
