//! Queries a scaler for its metrics and their values, within a deadline.

use std::sync::Arc;
use std::time::Duration;

use api::autoscaling::v2::MetricSpec;
use keda::activity::Reading;
use scalers::Scaler;
use scalers::off_thread;
use scalers::web::with_request_deadline;
use tokio::time::timeout;

use super::error::SampleError;

/// Upper bound of a query's deadline, whatever the trigger's `timeout` is.
pub(super) const MAX_QUERY_DEADLINE: Duration = Duration::from_mins(2);
/// A read that sends several HTTP requests has the deadline for each of them, but no more than this many in total.
const MAX_READ_DEADLINES: u32 = 3;

/// The metrics of a scaler, at least one.
pub(super) async fn specs_of(
    scaler: &Arc<dyn Scaler>,
    deadline: Duration,
) -> Result<Vec<MetricSpec>, SampleError> {
    let queried = Arc::clone(scaler);
    let listing = off_thread::run(async move { queried.specs().await });
    let listed = timeout(deadline, listing).await.map_err(|_| SampleError::TimedOut(deadline))?;
    let specs = listed.map_err(SampleError::Source)?;
    if specs.is_empty() { Err(SampleError::NoMetrics) } else { Ok(specs) }
}

/// The values of one metric.
pub(super) async fn reading_of(
    scaler: &Arc<dyn Scaler>,
    name: &str,
    deadline: Duration,
) -> Result<Reading, SampleError> {
    let (queried, metric_name) = (Arc::clone(scaler), name.to_owned());
    let reading = off_thread::run(async move { queried.read(&metric_name).await });
    let all = deadline.saturating_mul(MAX_READ_DEADLINES).min(MAX_QUERY_DEADLINE);
    let read = with_request_deadline(deadline, all, reading).await;
    let read = read.ok_or(SampleError::TimedOut(deadline))?;
    read.map_err(|error| SampleError::Source(error.with_last_status()))
}
