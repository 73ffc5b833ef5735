//! Exports metrics at an interval.

use std::sync::Arc;
use std::time::Duration;

use runtime::Clock;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::exposition::{MetricFamily, parse};
use crate::metrics::{MetricsOrigin, requests};
use crate::transport::{Collector, ExportError};
use crate::wire::{KeyValue, Resource, Scope};

/// Exports the metrics of `/metrics` to a collector.
pub struct MetricsExport {
    /// Where they are sent.
    pub collector: Collector,
    /// Time between two exports.
    pub interval: Duration,
    /// Attributes of this process.
    pub resource: Vec<KeyValue>,
    /// The name of the meter.
    pub meter: &'static str,
    /// Renders the text of `/metrics`; called on a thread of its own.
    pub page: Arc<dyn Fn() -> String + Send + Sync>,
    /// Changes names and attributes.
    pub convert: fn(Vec<MetricFamily>) -> Vec<MetricFamily>,
    /// The clock.
    pub clock: Clock,
}

impl MetricsExport {
    /// Exports until the future is dropped. A failed export is not repeated, because the next one has the same sums.
    pub async fn run(self) {
        let origin = Arc::new(MetricsOrigin {
            resource: Resource { attributes: self.resource.clone() },
            scope: Scope { name: self.meter.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            start: self.clock.now(),
        });
        let mut log = ExportLog::new("metrics");
        let mut ticks = interval_at(Instant::now() + self.interval, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            log.note(&self.export(&origin).await);
        }
    }

    async fn export(&self, origin: &Arc<MetricsOrigin>) -> Result<(), ExportError> {
        let (page, convert, origin) = (Arc::clone(&self.page), self.convert, Arc::clone(origin));
        let now = self.clock.now();
        // A page of many objects takes milliseconds, which the main thread needs for reconciles.
        let render = move || requests(&origin, convert(parse(&page())), now);
        for request in tokio::task::spawn_blocking(render).await? {
            self.collector.send(request).await?;
        }
        Ok(())
    }
}

/// Logs when exporting begins to fail and when it works again.
pub(crate) struct ExportLog {
    what: &'static str,
    is_failing: bool,
}

impl ExportLog {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, is_failing: false }
    }

    /// Notes the result of an export; returns whether the state has changed.
    pub(crate) fn note(&mut self, result: &Result<(), ExportError>) -> bool {
        let was_failing = std::mem::replace(&mut self.is_failing, result.is_err());
        match result {
            Err(error) if !was_failing => {
                tracing::warn!(signal = self.what, %error, "failed to export to the OpenTelemetry collector");
            }
            Ok(()) if was_failing => {
                tracing::info!(signal = self.what, "the OpenTelemetry collector accepts exports again");
            }
            _ => {}
        }
        was_failing != self.is_failing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_of_the_state_are_logged() {
        let mut log = ExportLog::new("metrics");
        let failed = || Err(ExportError::TimedOut(Duration::from_secs(1)));
        let results = [Ok(()), failed(), failed(), Ok(()), Ok(()), failed()];
        let changes = results.map(|result| log.note(&result));
        assert_eq!(changes, [false, true, false, true, false, true]);
    }
}
