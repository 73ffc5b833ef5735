//! Exports to an OpenTelemetry collector, as flags and variables say.

use std::future::Future;
use std::time::Duration;

use cluster::Clock;
use controllers::hpa::Records;
use controllers::hpa::records::DecisionTracer;
use controllers::operator::otlp_names::{METER, keda_instruments};
use otlp::settings::{CollectorSettings, Signal, metrics_interval, names_collector, resource_attributes};
use otlp::traces::TraceExport;
use otlp::wire::KeyValue;
use otlp::{Collector, MetricsExport};
use serve::MetricsExporter;
use sources::http::without_user;
use tokio::task::JoinSet;

use crate::failure::Failure;

/// How long a trace waits for others that are sent with it.
const TRACE_DELAY: Duration = Duration::from_secs(5);
/// The name of the tracer.
const TRACER: &str = "plimsoll";

/// Where metrics are exported to, and how often.
#[derive(Clone, Debug)]
pub(crate) struct MetricsTarget {
    collector: CollectorSettings,
    interval: Duration,
    resource: Vec<KeyValue>,
}

impl MetricsTarget {
    /// Reads the variables `OTEL_…`; `service` is the default name of the process.
    pub(crate) fn from_environment(
        service: &str,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            collector: CollectorSettings::from_environment(Signal::Metrics, None, variable)
                .map_err(Failure::input)?,
            interval: metrics_interval(variable).map_err(Failure::input)?,
            resource: resource_attributes(service, variable).map_err(Failure::input)?,
        })
    }

    /// Exports the operator's metrics until the future is dropped.
    pub(crate) fn export(
        &self,
        page: MetricsExporter,
        clock: Clock,
    ) -> Result<impl Future<Output = ()> + Send + use<>, Failure> {
        let collector = Collector::new(self.collector.clone()).map_err(Failure::input)?;
        tracing::info!(
            url = without_user(&self.collector.url), protocol = ?self.collector.protocol, interval = ?self.interval,
            "metrics are exported to an OpenTelemetry collector"
        );
        let export = MetricsExport {
            collector,
            interval: self.interval,
            resource: self.resource.clone(),
            meter: METER,
            page: std::sync::Arc::new(move || page().text),
            convert: keda_instruments,
            clock,
        };
        Ok(export.run())
    }
}

/// Where traces of decisions are exported to.
#[derive(Clone, Debug)]
pub(crate) struct TraceTarget {
    collector: CollectorSettings,
    unchanged_ratio: f64,
    resource: Vec<KeyValue>,
}

impl TraceTarget {
    /// The collector of `--otlp-traces-endpoint` or the variables `OTEL_…`; none if neither names one. `service` is the default name
    /// of the process.
    pub(crate) fn of(
        service: &str,
        endpoint: Option<&str>,
        unchanged_ratio: f64,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Failure> {
        if !(0.0..=1.0).contains(&unchanged_ratio) {
            return Err(Failure::input(format!(
                "--trace-unchanged={unchanged_ratio}: write a ratio from 0 to 1"
            )));
        }
        let endpoint = endpoint.filter(|url| !url.is_empty());
        if endpoint.is_none() && !names_collector(Signal::Traces, variable) {
            return Ok(None);
        }
        let collector = CollectorSettings::from_environment(Signal::Traces, endpoint, variable);
        Ok(Some(Self {
            collector: collector.map_err(Failure::input)?,
            unchanged_ratio,
            resource: resource_attributes(service, variable).map_err(Failure::input)?,
        }))
    }

    /// Exports the passes of `records` as traces, in a task.
    pub(crate) fn export(&self, records: Records, tasks: &mut JoinSet<()>) -> Result<Records, Failure> {
        let collector = Collector::new(self.collector.clone()).map_err(Failure::input)?;
        tracing::info!(
            url = without_user(&self.collector.url), protocol = ?self.collector.protocol, unchanged = self.unchanged_ratio,
            "decisions are exported to an OpenTelemetry collector"
        );
        let (sender, export) = TraceExport::new(collector, self.resource.clone(), TRACER, TRACE_DELAY);
        tasks.spawn(export.run());
        Ok(records.with_tracer(DecisionTracer::new(sender, self.unchanged_ratio)))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serve::Exposition;

    use super::*;

    /// Collects what is logged.
    #[derive(Clone, Default)]
    struct LogText(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogText {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn user_and_password_of_the_collector_are_not_logged() {
        let endpoint = |name: &str| {
            (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://me:s3cret@collector:4318".to_owned())
        };
        let target = MetricsTarget::from_environment("plimsoll", &endpoint).unwrap();
        let log = LogText::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let page: MetricsExporter =
            Arc::new(|| Exposition { content_type: String::new(), text: String::new() });
        let exported =
            tracing::subscriber::with_default(subscriber, || target.export(page, Clock::system()).map(drop));
        assert!(exported.is_ok());
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(log.contains("http://collector:4318/v1/metrics") && !log.contains("s3cret"), "{log}");
    }

    #[test]
    fn traces_need_an_endpoint() {
        let nothing = |_: &str| None;
        let target = |endpoint, ratio| TraceTarget::of("plimsoll", endpoint, ratio, &nothing);
        assert!(target(None, 0.0).unwrap().is_none());
        assert!(target(Some(""), 0.0).unwrap().is_none());
        let given = target(Some("http://collector:4318"), 0.5).unwrap().unwrap();
        assert_eq!(given.collector.url, "http://collector:4318/v1/traces");
        assert!(target(Some("collector:4318"), 0.0).is_err());
        assert!(target(None, 1.5).is_err() && target(None, f64::NAN).is_err());
        let named = |name: &str| {
            (name == "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").then(|| "http://c/v1/traces".to_owned())
        };
        let given = TraceTarget::of("plimsoll", None, 0.0, &named).unwrap().unwrap();
        assert_eq!(given.collector.url, "http://c/v1/traces");
    }
}
