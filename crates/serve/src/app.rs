//! Everything that a server serves, as the caller provides it.

use std::fmt;
use std::sync::Arc;

use runtime::Clock;

use crate::api_group::{ApiGroupVersion, Route};
use crate::decisions::DecisionSource;
use crate::health::HealthChecks;
use crate::request_metrics::RequestMetrics;

/// Renders the text of `/metrics`.
pub type MetricsExporter = Arc<dyn Fn() -> Exposition + Send + Sync>;

/// Exported metrics as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposition {
    /// The content type, which names the text's format.
    pub content_type: String,
    /// The text.
    pub text: String,
}

/// Everything that is served.
#[derive(Clone, Default)]
pub struct App {
    /// The version at `/version`, such as `1.2.3`.
    pub version: String,
    /// Health checks.
    pub checks: HealthChecks,
    /// Renders `/metrics`; without it the path does not exist.
    pub metrics: Option<MetricsExporter>,
    /// The decisions API.
    pub decisions: Option<Arc<dyn DecisionSource>>,
    /// Other APIs.
    pub groups: Vec<ApiGroupVersion>,
    /// Other services by path prefix (whole segments, such as `/debug`).
    pub routes: Vec<(String, Route)>,
    /// `serverAddress` in `/apis`; empty: `:443`.
    pub address: String,
    /// Counts requests and their durations; keep a clone to export them.
    pub traffic: Arc<RequestMetrics>,
    /// The clock.
    pub clock: Clock,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("version", &self.version)
            .field("checks", &self.checks)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}
