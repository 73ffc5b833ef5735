//! KEDA's raw metrics (docs/spec/keda.md 4.2): publishes every value to the subscribers of the gRPC service.

use controllers::operator::{MetricRequester, RawMetric, RawMetricsSubscriber};
use external_scaler::raw_metrics::{RawMetricsBroker, TriggerSample};

/// Which values are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RawMetricsMode {
    /// All values.
    #[default]
    All,
    /// Values that HPAs requested.
    Hpa,
    /// Values of polls.
    Poll,
}

impl RawMetricsMode {
    /// The mode in KEDA's environment variables; none if raw metrics are not enabled.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        if variable("RAW_METRICS_GRPC_PROTOCOL").as_deref() != Some("enabled") {
            return None;
        }
        Some(match variable("RAW_METRICS_MODE").unwrap_or_default().as_str() {
            "hpa" => Self::Hpa,
            "pollinginterval" => Self::Poll,
            _ => Self::All,
        })
    }

    fn takes(self, by: MetricRequester) -> bool {
        match self {
            Self::All => true,
            Self::Hpa => by == MetricRequester::Hpa,
            Self::Poll => by == MetricRequester::Poll,
        }
    }
}

/// Publishes the values that the operator reads.
pub(super) struct RawMetrics {
    pub(super) raw: RawMetricsBroker,
    pub(super) mode: RawMetricsMode,
}

impl RawMetricsSubscriber for RawMetrics {
    fn is_subscribed(&self) -> bool {
        self.raw.has_subscribers()
    }

    fn publish(&self, metric: &RawMetric<'_>) {
        if !self.mode.takes(metric.by) {
            return;
        }
        let values = metric.values.iter().map(|value| value.value.as_f64());
        let at = (metric.at.as_second(), metric.at.subsec_nanosecond());
        let RawMetric { namespace, object, trigger, active, .. } = *metric;
        self.raw.publish(&TriggerSample { namespace, object, trigger, at, active }, values);
    }
}
