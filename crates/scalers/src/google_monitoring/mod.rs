//! Cloud Monitoring of Google: time series by filter and by query, for several scalers.

mod query;
#[cfg(test)]
mod tests;

pub(crate) use query::{Alignment, SeriesFilter};
use query::{MonitoringPage, listed, queried};

use crate::backends::Backends;
use crate::google_client::GoogleClient;
use crate::google_credentials::GoogleCredentials;
use crate::{ScalerError, Trigger};

/// Scope of tokens.
const SCOPE: &str = "https://www.googleapis.com/auth/monitoring.read";
/// Maximum number of empty pages before the first time series.
const MAX_PAGES: usize = 10;

/// Queries Cloud Monitoring for one trigger.
pub(crate) struct MonitoringClient(GoogleClient);

impl MonitoringClient {
    /// A client with the credentials of a trigger.
    pub(crate) fn new(credentials: &GoogleCredentials, trigger: &Trigger, backends: &Backends) -> Self {
        Self(GoogleClient::new(credentials, SCOPE, trigger, backends))
    }

    /// The project of the credentials.
    pub(crate) async fn project(&self) -> Result<String, ScalerError> {
        self.0.project().await
    }

    /// The newest point of the first time series that matches; none if there is none.
    pub(crate) async fn newest(&self, filter: &SeriesFilter<'_>) -> Result<Option<f64>, ScalerError> {
        let mut token = String::new();
        for _ in 0..MAX_PAGES {
            let url = filter.url(self.0.now(), &token)?;
            let same_as = filter.same_as(&token);
            let (status, body) = self.0.get(url, Some(same_as)).await?;
            match listed(status, &body)? {
                MonitoringPage::Value(value) => return Ok(Some(value)),
                MonitoringPage::Nothing => return Ok(None),
                MonitoringPage::Next(next) => token = next,
            }
        }
        Err(too_many_pages())
    }

    /// The newest point of the first time series of a query in MQL; none if there is none.
    pub(crate) async fn queried(&self, project: &str, query: &str) -> Result<Option<f64>, ScalerError> {
        let url = query::query_url(project)?;
        let mut token = String::new();
        for _ in 0..MAX_PAGES {
            let (status, body) = self.0.post(url.clone(), query::query_body(query, &token)).await?;
            match queried(status, &body)? {
                MonitoringPage::Value(value) => return Ok(Some(value)),
                MonitoringPage::Nothing => return Ok(None),
                MonitoringPage::Next(next) => token = next,
            }
        }
        Err(too_many_pages())
    }
}

fn too_many_pages() -> ScalerError {
    scaler_error!("Cloud Monitoring answered with {MAX_PAGES} pages without a time series")
}
