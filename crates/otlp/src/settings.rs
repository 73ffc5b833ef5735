//! Where telemetry is sent: the standard variables `OTEL_…`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sources::http::{Secret, without_user};

use crate::wire::KeyValue;

/// Default time limit of one request.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Default time between two exports of metrics.
const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Metrics.
    Metrics,
    /// Traces.
    Traces,
}

impl Signal {
    /// Part of the variables of this signal alone.
    fn variable(self) -> &'static str {
        match self {
            Self::Metrics => "METRICS",
            Self::Traces => "TRACES",
        }
    }

    /// Appended to the URL of a collector that takes all signals.
    fn http_path(self) -> &'static str {
        match self {
            Self::Metrics => "/v1/metrics",
            Self::Traces => "/v1/traces",
        }
    }

    /// The gRPC method.
    pub(crate) fn grpc_path(self) -> &'static str {
        match self {
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        }
    }
}

/// How telemetry is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Protobuf over HTTP.
    HttpProtobuf,
    /// gRPC.
    Grpc,
}

/// A collector and how it is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct CollectorSettings {
    /// What is sent.
    pub signal: Signal,
    /// How it is sent.
    pub protocol: Protocol,
    /// The URL; over HTTP with the path of the signal.
    pub url: String,
    /// Headers of every request. They are not shown, because they may be credentials.
    pub headers: Vec<(String, Secret)>,
    /// Time limit of one request.
    pub timeout: Duration,
    /// CA bundle (PEM file) that replaces the system's.
    pub ca_file: Option<PathBuf>,
    /// Client certificate and key (PEM files).
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

impl fmt::Debug for CollectorSettings {
    /// Without user and password of the URL, and without headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectorSettings")
            .field("signal", &self.signal)
            .field("protocol", &self.protocol)
            .field("url", &without_user(&self.url))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// A variable that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct SettingsError {
    /// Its name.
    pub variable: String,
    /// What is wrong, and what to write.
    pub problem: String,
}

impl CollectorSettings {
    /// The collector of a signal. `endpoint` is the URL of a flag, which takes precedence over the variables. Without any URL it is
    /// the collector on this machine.
    pub fn from_environment(
        signal: Signal,
        endpoint: Option<&str>,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let variables = SignalVariables { signal, variable };
        let protocol = match variables.get("PROTOCOL") {
            None => Protocol::HttpProtobuf,
            Some((_, text)) if text == "http/protobuf" => Protocol::HttpProtobuf,
            Some((_, text)) if text == "grpc" => Protocol::Grpc,
            Some((name, text)) => {
                let problem = format!("{text:?} is not supported: write http/protobuf or grpc");
                return Err(SettingsError { variable: name, problem });
            }
        };
        let timeout = match variables.get("TIMEOUT") {
            None => DEFAULT_TIMEOUT,
            Some((name, text)) => milliseconds(name, &text)?,
        };
        let file = |name: &str| variables.get(name).map(|(_, path)| PathBuf::from(path));
        let client_certificate = match (file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                let problem = "a client certificate needs its key, and a key its certificate: set both";
                let variable = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE".to_owned();
                return Err(SettingsError { variable, problem: problem.to_owned() });
            }
        };
        let headers = match variables.get("HEADERS") {
            None => Vec::new(),
            Some((name, text)) => {
                pairs(&name, &text)?.into_iter().map(|(key, value)| (key, Secret::new(value))).collect()
            }
        };
        Ok(Self {
            url: variables.url(protocol, endpoint)?,
            ca_file: file("CERTIFICATE"),
            signal,
            protocol,
            headers,
            timeout,
            client_certificate,
        })
    }
}

/// Whether the environment names a collector of this signal.
pub fn names_collector(signal: Signal, variable: &impl Fn(&str) -> Option<String>) -> bool {
    let name = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.variable());
    variable(&name).is_some_and(|url| !url.is_empty())
}

/// The time between two exports of metrics: `OTEL_METRIC_EXPORT_INTERVAL`.
pub fn metrics_interval(variable: &impl Fn(&str) -> Option<String>) -> Result<Duration, SettingsError> {
    const NAME: &str = "OTEL_METRIC_EXPORT_INTERVAL";
    match variable(NAME).filter(|text| !text.is_empty()) {
        None => Ok(DEFAULT_INTERVAL),
        Some(text) => milliseconds(NAME.to_owned(), &text),
    }
}

/// The attributes of this process: `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`, which is `service` by default.
pub fn resource_attributes(
    service: &str,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<KeyValue>, SettingsError> {
    const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
    let given = variable(NAME).unwrap_or_default();
    let mut attributes = pairs(NAME, &given)?;
    match variable("OTEL_SERVICE_NAME").filter(|name| !name.is_empty()) {
        Some(name) => {
            attributes.retain(|(key, _)| key != "service.name");
            attributes.push(("service.name".to_owned(), name));
        }
        None if attributes.iter().any(|(key, _)| key == "service.name") => {}
        None => attributes.push(("service.name".to_owned(), service.to_owned())),
    }
    Ok(attributes.into_iter().map(|(key, value)| KeyValue::text(key, value)).collect())
}

/// The variables of a signal, which take precedence over those of all signals.
struct SignalVariables<'a, V> {
    signal: Signal,
    variable: &'a V,
}

impl<V: Fn(&str) -> Option<String>> SignalVariables<'_, V> {
    /// The name of the variable that is set, and its value.
    fn get(&self, name: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{name}", self.signal.variable());
        let names = [own, format!("OTEL_EXPORTER_OTLP_{name}")];
        names.into_iter().find_map(|name| {
            let value = (self.variable)(&name).filter(|value| !value.trim().is_empty())?;
            Some((name, value.trim().to_owned()))
        })
    }

    fn url(&self, protocol: Protocol, endpoint: Option<&str>) -> Result<String, SettingsError> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", self.signal.variable());
        let (name, url) = match endpoint {
            Some(given) => ("--otlp-traces-endpoint".to_owned(), given.to_owned()),
            None => self.get("ENDPOINT").unwrap_or_else(|| {
                let port = if protocol == Protocol::Grpc { 4317 } else { 4318 };
                ("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), format!("http://localhost:{port}"))
            }),
        };
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let shown = without_user(&url);
            let problem = format!("{shown:?} is not a URL: write http://HOST:PORT or https://HOST:PORT");
            return Err(SettingsError { variable: name, problem });
        }
        let url = url.trim_end_matches('/');
        let has_path = url.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        // The URL of one signal is complete; that of the flag if it has a path.
        let is_complete = protocol == Protocol::Grpc || name == own || (endpoint.is_some() && has_path);
        let path = if is_complete { "" } else { self.signal.http_path() };
        Ok(format!("{url}{path}"))
    }
}

fn milliseconds(variable: String, text: &str) -> Result<Duration, SettingsError> {
    match text.trim().parse::<u64>() {
        Ok(milliseconds) if milliseconds > 0 => Ok(Duration::from_millis(milliseconds)),
        _ => {
            let problem = format!("{text:?} is not a number of milliseconds: write one such as 10000");
            Err(SettingsError { variable, problem })
        }
    }
}

/// Pairs as in `key=value,other=value`, whose values are percent-encoded. Values are not quoted in errors.
fn pairs(variable: &str, text: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let given = text.split(',').filter(|pair| !pair.trim().is_empty());
    let read = given.map(|pair| {
        let problem = || SettingsError {
            variable: variable.to_owned(),
            problem: "write key=value pairs that are separated by commas, with percent-encoded values"
                .to_owned(),
        };
        let (key, value) = pair.split_once('=').ok_or_else(problem)?;
        let (key, value) = (key.trim(), sources::http::path_unescaped(value.trim()).ok_or_else(problem)?);
        if key.is_empty() { Err(problem()) } else { Ok((key.to_owned(), value)) }
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    fn environment(all: Variables) -> impl Fn(&str) -> Option<String> {
        move |name| all.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
    }

    fn metrics(all: Variables) -> Result<CollectorSettings, SettingsError> {
        CollectorSettings::from_environment(Signal::Metrics, None, &environment(all))
    }

    #[test]
    fn collector_of_this_machine_is_the_default() {
        let settings = metrics(&[]).unwrap();
        assert_eq!(settings.url, "http://localhost:4318/v1/metrics");
        assert_eq!((settings.protocol, settings.timeout), (Protocol::HttpProtobuf, Duration::from_secs(10)));
        let settings = metrics(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap();
        assert_eq!((&*settings.url, settings.protocol), ("http://localhost:4317", Protocol::Grpc));
    }

    #[test]
    fn path_is_appended_to_the_url_of_all_signals_only() {
        let url = |all: Variables| metrics(all).unwrap().url;
        assert_eq!(url(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")]), "http://c:4318/v1/metrics");
        assert_eq!(
            url(&[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
                ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://m/otlp")
            ]),
            "https://m/otlp"
        );
        let all = environment(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")]);
        let flag = |url| CollectorSettings::from_environment(Signal::Traces, Some(url), &all).unwrap().url;
        assert_eq!(flag("http://t:4318"), "http://t:4318/v1/traces");
        assert_eq!(flag("http://t:4318/own"), "http://t:4318/own");
    }

    #[test]
    fn headers_are_decoded_and_not_shown() {
        let settings = metrics(&[("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s%3Dcret, x-scope=a")]).unwrap();
        let headers: Vec<_> =
            settings.headers.iter().map(|(name, value)| (&**name, value.reveal())).collect();
        assert_eq!(headers, [("api-key", "s=cret"), ("x-scope", "a")]);
        assert!(!format!("{settings:?}").contains("cret"));
    }

    #[test]
    fn user_of_the_url_is_not_shown() {
        let settings = metrics(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:s3cret@c:4318")]).unwrap();
        let shown = format!("{settings:?}");
        assert!(shown.contains("https://c:4318") && !shown.contains("s3cret"), "{shown}");
        let error = metrics(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "me:s3cret@c:4318")]).unwrap_err().to_string();
        assert!(error.contains("c:4318") && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn bad_variables_are_named() {
        let problem = |all: Variables| metrics(all).unwrap_err().to_string();
        let protocol = problem(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]);
        assert!(
            protocol.starts_with("OTEL_EXPORTER_OTLP_PROTOCOL: \"http/json\" is not supported"),
            "{protocol}"
        );
        let timeout = problem(&[("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "10s")]);
        assert!(timeout.starts_with("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: "), "{timeout}");
        let url = problem(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")]);
        assert!(url.contains("write http://HOST:PORT"), "{url}");
        let headers = problem(&[("OTEL_EXPORTER_OTLP_HEADERS", "secret")]);
        assert!(headers.contains("key=value") && !headers.contains("secret"), "{headers}");
        let key = problem(&[("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/k")]);
        assert!(key.contains("set both"), "{key}");
    }

    #[test]
    fn service_has_a_name() {
        let attributes =
            |all: Variables| resource_attributes("plimsoll-operator", &environment(all)).unwrap();
        assert_eq!(attributes(&[]), [KeyValue::text("service.name", "plimsoll-operator")]);
        let given = &[("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,zone=b%20c"), ("OTEL_SERVICE_NAME", "d")];
        assert_eq!(attributes(given), [KeyValue::text("zone", "b c"), KeyValue::text("service.name", "d")]);
        let given = &[("OTEL_RESOURCE_ATTRIBUTES", "service.name=a")];
        assert_eq!(attributes(given), [KeyValue::text("service.name", "a")]);
    }

    #[test]
    fn interval_is_in_milliseconds() {
        assert_eq!(metrics_interval(&environment(&[])), Ok(Duration::from_mins(1)));
        let interval = metrics_interval(&environment(&[("OTEL_METRIC_EXPORT_INTERVAL", "5000")]));
        assert_eq!(interval, Ok(Duration::from_secs(5)));
        assert!(metrics_interval(&environment(&[("OTEL_METRIC_EXPORT_INTERVAL", "0")])).is_err());
    }

    #[test]
    fn traces_need_a_collector() {
        let named = environment(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t")]);
        assert!(names_collector(Signal::Traces, &named));
        let all = environment(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://t")]);
        assert!(!names_collector(Signal::Traces, &all));
    }
}
