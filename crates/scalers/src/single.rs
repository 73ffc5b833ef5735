//! Scalers with one metric.

use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::backends::Backends;
use crate::metric::milli;
use crate::web::{HttpCall, SharedHttpClient};
use crate::{Reading, Scaler, ScalerError, ScalerFuture, Trigger, WakeFuture};

/// The source of a metric's value.
pub(crate) trait ValueSource: Send + Sync {
    /// Reads the current value.
    fn value(&self) -> ScalerFuture<'_, f64>;

    /// Reports when it is to be queried, if it can ([`Scaler::wake`]).
    fn wake(&self, _query_now: mpsc::Sender<()>) -> Option<WakeFuture> {
        None
    }
}

/// A scaler with one metric.
pub(crate) struct SingleMetricScaler<S> {
    /// The metric and its target.
    pub(crate) spec: MetricSpec,
    /// The trigger is active above this value.
    pub(crate) activation: f64,
    /// The source of its value.
    pub(crate) source: S,
}

impl<S: ValueSource + 'static> SingleMetricScaler<S> {
    /// Builds the scaler, with the result type of [`crate::table::BuildScaler`], so that constructors can return it.
    #[allow(clippy::unnecessary_wraps)]
    pub(crate) fn build(
        spec: MetricSpec,
        activation: f64,
        source: S,
    ) -> Result<Arc<dyn Scaler>, ScalerError> {
        Ok(Arc::new(Self { spec, activation, source }))
    }
}

impl<S: ValueSource> Scaler for SingleMetricScaler<S> {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let value = self.source.value().await?;
            if !value.is_finite() {
                bail!("{value} is not a number that can be served");
            }
            Ok(Reading::one(metric, milli(value), value > self.activation))
        })
    }

    fn wake(self: Arc<Self>, query_now: mpsc::Sender<()>) -> Option<WakeFuture> {
        self.source.wake(query_now)
    }
}

/// A source that reads an HTTP server with the parameters of its trigger.
pub(crate) struct HttpSource<P> {
    pub(crate) parameters: P,
    /// Timeout of requests.
    pub(crate) within: Duration,
    pub(crate) web: Arc<SharedHttpClient>,
}

impl<P> HttpSource<P> {
    /// A source with the timeout of a trigger.
    pub(crate) fn new(parameters: P, trigger: &Trigger, backends: &Backends) -> Self {
        Self { parameters, within: trigger.http_timeout, web: Arc::clone(&backends.web) }
    }
}

/// Sends a request; returns status and body of the response.
pub(crate) async fn send(web: &SharedHttpClient, call: HttpCall) -> Result<(u16, Bytes), ScalerError> {
    let answer = web.send(call).await?;
    Ok((answer.status.as_u16(), answer.body))
}
