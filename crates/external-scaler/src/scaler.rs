//! The trait of a scaler.

use std::future::Future;
use std::pin::Pin;

use futures::Stream;
use tonic::Status;

use crate::protocol::{MetricSpec, MetricValue, ScaledObjectRef};

/// A stream of activity: `true` when the scaler becomes active. When it ends, the autoscaler reconnects after 2 s.
pub type ActivityStream = Pin<Box<dyn Stream<Item = Result<bool, Status>> + Send>>;

/// A stream of metric specs: first the current ones, then every change. When it ends, the autoscaler opens it again.
pub type MetricSpecStream = Pin<Box<dyn Stream<Item = Result<Vec<MetricSpec>, Status>> + Send>>;

/// A scaler. Methods are called concurrently for many objects and should return within a few seconds.
///
/// An error never scales to zero: the autoscaler keeps the current replicas, or uses the fallback of the object.
pub trait ExternalScaler: Send + Sync + 'static {
    /// The metrics of an object with their targets per replica. The same object must always have the same
    /// names, and a name must be valid as a URL path segment.
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

    /// Whether the scaler is active: decides between zero and one replica. By default it is active
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

    /// For triggers of type `external-push`: reports activity as soon as it begins. Without it, activity is detected at
    /// the next poll.
    fn activity(
        &self,
        object: &ScaledObjectRef,
    ) -> impl Future<Output = Result<ActivityStream, Status>> + Send {
        let _ = object;
        std::future::ready(Err(Status::unimplemented(
            "this scaler does not push activity: use a trigger of type external",
        )))
    }

    /// For triggers of type `external-push` (Plimsoll, KEDA since 2.21): the metrics of an object whenever they change, beginning
    /// with the current ones. [`metric_specs`](Self::metric_specs) must return the last of them. Without it, only
    /// `metric_specs` is called.
    fn metric_spec_changes(
        &self,
        object: &ScaledObjectRef,
    ) -> impl Future<Output = Result<MetricSpecStream, Status>> + Send {
        let _ = object;
        std::future::ready(Err(Status::unimplemented("this scaler does not stream its metrics")))
    }
}
