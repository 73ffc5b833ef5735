//! Scalers that have one metric: what they have in common.

use api::autoscaling::v2::MetricSpec;
use bytes::Bytes;

use crate::metric::milli;
use crate::web::{Call, Web};
use crate::{Answer, Error, Reading, Scaler};

/// Where the value of one metric comes from.
pub(crate) trait Source: Send + Sync {
    /// The value now.
    fn value(&self) -> Answer<'_, f64>;
}

/// A scaler with one metric.
pub(crate) struct Single<S> {
    /// The metric and its target.
    pub(crate) spec: MetricSpec,
    /// It is active above this.
    pub(crate) activation: f64,
    /// Where its value comes from.
    pub(crate) source: S,
}

impl<S: Source> Scaler for Single<S> {
    fn specs(&self) -> Answer<'_, Vec<MetricSpec>> {
        Box::pin(async { Ok(vec![self.spec.clone()]) })
    }

    fn read<'a>(&'a self, metric: &'a str) -> Answer<'a, Reading> {
        Box::pin(async move {
            let value = self.source.value().await?;
            if !value.is_finite() {
                return Err(Error::new(format!("{value} is not a number that can be served")));
            }
            Ok(Reading::one(metric, milli(value), value > self.activation))
        })
    }
}

/// Asks; status and body of the answer.
pub(crate) async fn ask(web: &Web, call: Call) -> Result<(u16, Bytes), Error> {
    let answer = web.ask(call).await.map_err(|error| Error::new(error.to_string()))?;
    Ok((answer.status.as_u16(), answer.body))
}
