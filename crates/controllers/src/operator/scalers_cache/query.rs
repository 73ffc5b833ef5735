//! Queries a scaler for its metrics and their values, within a deadline.

use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use keda::activity::Reading;
use scalers::Scaler;
use scalers::off_thread;
use scalers::web::with_request_deadline;
use sources::tenant::in_namespace;
use tokio::time::timeout;

use super::error::SampleError;

/// Upper bound of a query's deadline, whatever the trigger's `timeout` is.
pub(super) const MAX_QUERY_DEADLINE: Duration = Duration::from_mins(2);
/// A read that sends several HTTP requests has the deadline for each of them, but no more than this many in total.
const MAX_READ_DEADLINES: u32 = 3;

/// The metrics of the scaler of an object in a namespace, at least one.
pub(super) async fn specs_of(
    namespace: &str,
    scaler: &Arc<dyn Scaler>,
    deadline: Duration,
) -> Result<Vec<MetricSpec>, SampleError> {
    let queried = Arc::clone(scaler);
    let listing = off_thread::run(async move { queried.specs().await });
    let listing = in_namespace(namespace, listing);
    let listed = timeout(deadline, listing).await.map_err(|_| SampleError::TimedOut(deadline))?;
    let specs = listed.map_err(SampleError::Source)?;
    if specs.is_empty() { Err(SampleError::NoMetrics) } else { Ok(specs) }
}

/// The values of one metric of an object in a namespace.
pub(super) async fn reading_of(
    namespace: &str,
    scaler: &Arc<dyn Scaler>,
    name: &str,
    deadline: Duration,
) -> Result<Reading, SampleError> {
    let (queried, metric_name) = (Arc::clone(scaler), name.to_owned());
    let reading = off_thread::run(async move { queried.read(&metric_name).await });
    let all = deadline.saturating_mul(MAX_READ_DEADLINES).min(MAX_QUERY_DEADLINE);
    let read = with_request_deadline(deadline, all, in_namespace(namespace, reading)).await;
    let read = read.ok_or(SampleError::TimedOut(deadline))?;
    read.map_err(|error| SampleError::Source(error.with_last_status()))
}

#[cfg(test)]
mod tests {
    use scalers::{ScalerError, ScalerFuture};
    use sources::tenant::namespace;

    use super::*;

    /// Fails with the namespace that it is queried for.
    struct NamespaceScaler;

    fn current() -> ScalerError {
        ScalerError::new(format!("for {:?}", namespace().as_deref()))
    }

    impl Scaler for NamespaceScaler {
        fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
            Box::pin(async { Err(current()) })
        }

        fn read<'a>(&'a self, _: &'a str) -> ScalerFuture<'a, Reading> {
            Box::pin(async { Err(current()) })
        }
    }

    #[tokio::test]
    async fn scalers_are_queried_for_the_namespace_of_their_object() {
        let scaler: Arc<dyn Scaler> = Arc::new(NamespaceScaler);
        let deadline = Duration::from_secs(1);
        let listed = specs_of("shop", &scaler, deadline).await.unwrap_err().to_string();
        let read = reading_of("shop", &scaler, "a", deadline).await.unwrap_err().to_string();
        assert!(listed.contains("for Some(\"shop\")"), "{listed}");
        assert!(read.contains("for Some(\"shop\")"), "{read}");
    }
}
