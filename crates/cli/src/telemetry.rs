//! Exports to an OpenTelemetry collector, as flags and variables say.

use std::future::Future;
use std::time::Duration;

use cluster::Clock;
use controllers::operator::otlp_names::{METER, keda_instruments};
use otlp::settings::{CollectorSettings, Signal, metrics_interval, resource_attributes};
use otlp::wire::KeyValue;
use otlp::{Collector, MetricsExport};
use serve::MetricsExporter;

use crate::failure::Failure;

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
            url = self.collector.url, protocol = ?self.collector.protocol, interval = ?self.interval,
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
