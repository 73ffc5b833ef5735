//! Actions on a copy: plain data, the same for both copies.

use jiff::SignedDuration;

use crate::differential::action::{self, ApiRequest};

/// One step.
pub(crate) type HpaStep = action::Step<HpaAction>;

/// One action.
#[derive(Clone, Debug)]
pub(crate) enum HpaAction {
    /// A request to the API server.
    ApiRequest(ApiRequest),
    /// The usage of a pod in metrics.k8s.io from now on; absent: no sample.
    Usage { pod: String, usage: Option<Usage> },
    /// A custom metric of a pod.
    OfPod { pod: String, metric: String, value: Option<String> },
    /// A custom metric of another object (resource and name; the name `{ns}` is the namespace); each value is a series.
    OfObject { resource: &'static str, name: String, metric: String, values: Vec<String> },
    /// An external metric: the series with the value of their label `queue`; absent: no such metric.
    External { metric: String, series: Option<Vec<(&'static str, String)>> },
}

/// A sample of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Usage {
    /// The label of selectors.
    pub(crate) app: String,
    /// Container, CPU and memory; absent values are not served.
    pub(crate) containers: Vec<(String, Option<String>, Option<String>)>,
    /// The age of the sample.
    pub(crate) when: Age,
    /// The window of the sample in seconds.
    pub(crate) window: u32,
}

/// The age of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// The sample is always new.
    Fresh,
    /// The sample was measured this long before the step.
    Old(SignedDuration),
    /// The sample has no time.
    Unknown,
}

impl From<ApiRequest> for HpaAction {
    fn from(ask: ApiRequest) -> Self {
        Self::ApiRequest(ask)
    }
}

impl std::fmt::Display for HpaAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ApiRequest(ask) => ask.fmt(f),
            Self::Usage { pod, usage: None } => write!(f, "usage of {pod}: unknown"),
            Self::Usage { pod, usage: Some(usage) } => {
                write!(
                    f,
                    "usage of {pod}: {:?}, measured {:?} over {} s",
                    usage.containers, usage.when, usage.window
                )
            }
            Self::OfPod { pod, metric, value } => {
                write!(f, "{metric} of {pod}: {}", value.as_deref().unwrap_or("unknown"))
            }
            Self::OfObject { resource, name, metric, values } => {
                write!(f, "{metric} of {resource}/{name}: {values:?}")
            }
            Self::External { metric, series: None } => write!(f, "external {metric}: unknown"),
            Self::External { metric, series: Some(series) } => write!(f, "external {metric}: {series:?}"),
        }
    }
}
