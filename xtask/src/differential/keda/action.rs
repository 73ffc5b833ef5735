//! Actions on every compared operator, as plain data.

use serde_json::Value;

use super::source::SourceResponse;
use crate::differential::action::{self, ApiRequest};

/// One step.
pub(crate) type KedaStep = action::Step<KedaAction>;

/// One action.
#[derive(Clone, Debug)]
pub(crate) enum KedaAction {
    /// A request to the API server; a list as the body is a JSON patch.
    ApiRequest(ApiRequest),
    /// Sets the value of a source.
    Say { key: String, state: SourceResponse },
    /// A source pushes "active" to its streams.
    Push { key: String },
    /// The status of the Jobs of this scenario that have none yet is set, up to this number.
    EndJobs { scenario: String, how: Ending, max_jobs: usize },
    /// The status of the autoscaler of this ScaledObject is set, as the HPA controller would.
    TellHpa { name: String, status: Value },
}

/// How Jobs end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    Failed,
    /// The Jobs do not end: their pods run.
    Running,
}

impl From<ApiRequest> for KedaAction {
    fn from(ask: ApiRequest) -> Self {
        Self::ApiRequest(ask)
    }
}

impl std::fmt::Display for KedaAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ApiRequest(ask) => ask.fmt(f),
            Self::Say { key, state } => write!(f, "source {key}: {state}"),
            Self::Push { key } => write!(f, "source {key} pushes activity"),
            Self::EndJobs { how, max_jobs, .. } => write!(f, "up to {max_jobs} jobs: {how:?}"),
            Self::TellHpa { name, status } => write!(f, "status of the HPA of {name}: {status}"),
        }
    }
}
