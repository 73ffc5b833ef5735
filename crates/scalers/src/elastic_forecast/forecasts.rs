//! The forecasts that were created in clusters. They are kept for all triggers of a job, also if scalers are built anew after an error.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locks::MutexExt as _;
use tokio::time::Instant;

use super::query::forecast_duration;
use crate::ScalerError;
use crate::parameters::Secret;

/// A job in a cluster, and the credentials of the requests for its forecasts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ForecastKey {
    pub(super) addresses: Vec<String>,
    pub(super) user: String,
    pub(super) secret: Secret,
    pub(super) job: String,
    pub(super) look_ahead: Duration,
}

/// The forecasts of all jobs.
#[derive(Default)]
pub(super) struct Forecasts(Mutex<HashMap<ForecastKey, Arc<tokio::sync::Mutex<JobForecasts>>>>);

/// The last two forecasts of a job: the newest may not be computed yet.
#[derive(Clone, Default)]
struct JobForecasts {
    newest: Option<(String, Instant)>,
    before: Option<(String, Instant)>,
}

impl Forecasts {
    /// The ids of the forecasts of a job, newest first. A forecast is created if there is none, or if half of its time is over; one
    /// caller creates it while the others wait.
    pub(super) async fn of(
        &self,
        key: &ForecastKey,
        create: impl Future<Output = Result<String, ScalerError>>,
    ) -> Result<Vec<String>, ScalerError> {
        let lasts = forecast_duration(key.look_ahead);
        let entry = {
            let mut all = self.0.locked();
            // Entries of triggers that are gone.
            all.retain(|known, entry| {
                let lasts = forecast_duration(known.look_ahead);
                let is_over =
                    |job: &JobForecasts| job.newest.as_ref().is_none_or(|(_, at)| at.elapsed() >= lasts);
                known == key || !entry.try_lock().is_ok_and(|job| is_over(&job))
            });
            Arc::clone(all.entry(key.clone()).or_default())
        };
        let mut job = entry.lock().await;
        if job.newest.as_ref().is_none_or(|(_, at)| at.elapsed() > lasts / 2) {
            match create.await {
                Ok(id) => job.before = job.newest.replace((id, Instant::now())),
                // The old one is good until its end.
                Err(error) if job.newest.as_ref().is_none_or(|(_, at)| at.elapsed() >= lasts) => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        let alive = [&job.newest, &job.before].into_iter().flatten().filter(|(_, at)| at.elapsed() < lasts);
        Ok(alive.map(|(id, _)| id.clone()).collect())
    }
}
