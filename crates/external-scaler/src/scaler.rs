//! What a scaler must answer.

use std::future::Future;
use std::pin::Pin;

use futures::Stream;
use tonic::Status;

use crate::protocol::{MetricSpec, MetricValue, ScaledObjectRef};

/// Activity as it comes: `true` when there is something to do. Ending it makes the autoscaler ask again in 2 s.
pub type ActivityStream = Pin<Box<dyn Stream<Item = Result<bool, Status>> + Send>>;

/// What a scaler must answer. Each method is asked for many objects at once and should answer within a few seconds.
///
/// An error never scales anything to zero: the autoscaler keeps what it has, or takes the fallback of the object.
pub trait ExternalScaler: Send + Sync + 'static {
    /// The metrics of an object, each with what one replica is to have of it. The same object must always have the same
    /// names, and a name must fit between two slashes of a URL.
    fn metric_specs(
        &self,
        object: &ScaledObjectRef,
    ) -> impl Future<Output = Result<Vec<MetricSpec>, Status>> + Send;

    /// The values of one metric; several are added up.
    fn metrics(
        &self,
        object: &ScaledObjectRef,
        metric: &str,
    ) -> impl Future<Output = Result<Vec<MetricValue>, Status>> + Send;

    /// Whether there is something to do: decides between zero and one replica. Unless it is written otherwise, there is
    /// if any metric is above zero.
    fn is_active(&self, object: &ScaledObjectRef) -> impl Future<Output = Result<bool, Status>> + Send {
        async move {
            for spec in self.metric_specs(object).await? {
                let values = self.metrics(object, &spec.metric_name).await?;
                if values.iter().any(|value| value.amount() > 0.0) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }

    /// For triggers of type `external-push`: tells of activity at the moment it begins. Without it, activity is noticed when
    /// the autoscaler asks next.
    fn activity(
        &self,
        object: &ScaledObjectRef,
    ) -> impl Future<Output = Result<ActivityStream, Status>> + Send {
        let _ = object;
        std::future::ready(Err(Status::unimplemented(
            "this scaler does not tell of activity itself: use a trigger of type external",
        )))
    }
}
