//! The content of a report page: plain values in the units in which they are shown.

use jiff::Timestamp;
use serde::Serialize;

/// Content of one page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportPage {
    /// Title, such as the name of the scenario.
    pub title: String,
    /// Introduction, one sentence per line: compared specs, load.
    pub question: Vec<String>,
    /// When virtual time begins.
    pub start: Timestamp,
    /// Duration in seconds.
    pub seconds: f64,
    /// The runs; one entry if nothing is compared.
    pub runs: Vec<Run>,
    /// The workloads, each in all runs.
    pub workloads: Vec<PageWorkload>,
    /// Notes about the precision of the values, such as the number of decisions per point.
    pub notes: Vec<String>,
    /// How to reproduce this page.
    pub reproduce: Reproduce,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Short name, such as the name of its file.
    pub name: String,
    /// Short description of the difference to other runs; may be empty.
    pub about: String,
}

/// One workload in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageWorkload {
    /// Its name, such as `deployment/php-apache`.
    pub name: String,
    /// Its values in each run, in the order of the runs.
    pub tracks: Vec<PageTrack>,
}

/// One workload in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageTrack {
    /// Totals of the run.
    #[serde(rename = "figures")]
    pub totals: RunTotals,
    /// Work that arrived, was served and was lost; absent if it is not known.
    pub load: Option<Load>,
    /// Ready pods over time.
    pub ready: Series,
    /// Its autoscalers.
    pub autoscalers: Vec<PageAutoscaler>,
}

/// Totals of a run. Values that are not known are absent and not shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunTotals {
    /// Hours of all pods that existed.
    pub pod_hours: f64,
    /// Mean of the desired replicas.
    pub mean_replicas: f64,
    /// Minimum of the desired replicas.
    pub min_replicas: usize,
    /// Maximum of the desired replicas.
    pub max_replicas: usize,
    /// Seconds in which more work arrived than ready pods could do.
    pub short_seconds: Option<f64>,
    /// Share of the work that arrived and was lost, from 0 to 1.
    pub unserved_share: Option<f64>,
    /// The longest time from work exceeding what ready pods could do until they could again, in seconds.
    pub worst_reaction_seconds: Option<f64>,
    /// Whether that time was not over at the end.
    pub short_at_end: bool,
    /// Most units of work that waited, where work can wait.
    pub max_backlog: Option<f64>,
    /// Used share of the capacity of ready pods, from 0 to 1.
    pub used_share: Option<f64>,
    /// Seconds in which some metric was above its target by more than the tolerance.
    pub above_target_seconds: Option<f64>,
    /// Number of changes of the replicas.
    pub changes: u64,
}

/// Work over time, in units per second; all columns have the length of `at`, each row holds until the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// Seconds from the start.
    pub at: Vec<f64>,
    /// Work that arrived.
    pub offered: Vec<f64>,
    /// Work that was done.
    pub served: Vec<f64>,
    /// Work that was lost.
    pub unserved: Vec<f64>,
    /// Units that wait.
    pub backlog: Vec<f64>,
}

/// Values over time. Both columns have the same length, and each value holds until the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// Seconds from the start.
    pub at: Vec<f64>,
    /// The values; absent where a value is not known, which is different from zero.
    pub values: Vec<Option<f64>>,
}

/// One autoscaler in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageAutoscaler {
    /// Its name, such as `hpa/php-apache`.
    pub name: String,
    /// Lower bound of replicas.
    pub min: i32,
    /// Upper bound of replicas.
    pub max: i32,
    /// Whether it was in dry-run mode, so that its changes were not made.
    pub dry_run: bool,
    /// Desired replicas after each decision.
    pub desired: Series,
    /// Its metrics.
    pub metrics: Vec<Metric>,
    /// Every change of the count, or the first of very many.
    pub changes: Vec<PageChange>,
    /// Further changes, at most as many as can be drawn.
    pub more_changes: Vec<Mark>,
    /// Times in which a limit changed the recommendation.
    pub limits: Vec<Span>,
    /// How often and how long each limit applied.
    pub limit_sums: Vec<LimitSum>,
    /// Problems.
    pub problems: Vec<PageProblem>,
}

/// A metric over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// Its name, such as `cpu`.
    pub name: String,
    /// Format of its values.
    pub unit: PageUnit,
    /// Target.
    pub target: Option<f64>,
    /// Current values.
    pub series: Series,
}

/// Format of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PageUnit {
    /// `76 %`.
    Percent,
    /// `12Mi`.
    Bytes,
    /// `250m`.
    Cores,
    /// `1.5`, `1,200`.
    Plain,
}

/// One change of the count.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageChange {
    /// Seconds from the start.
    pub at: f64,
    /// The count before.
    pub from: i32,
    /// The count after.
    pub to: i32,
    /// The recommended count, if it differs.
    pub wanted: Option<i32>,
    /// Reason in one sentence.
    pub why: String,
    /// The limit that applied.
    pub limit: Option<Limit>,
}

/// A change without its reason.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Seconds from the start.
    pub at: f64,
    /// The count before.
    pub from: i32,
    /// The count after.
    pub to: i32,
}

/// A time in which the same limit applied at every decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Seconds from the start.
    pub from: f64,
    /// Seconds from the start.
    pub to: f64,
    /// The limit.
    pub limit: Limit,
    /// Number of limited decisions.
    pub decisions: usize,
    /// Reason of the first of them, in one sentence.
    pub why: String,
}

/// How often and how long one limit applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitSum {
    /// Number of separate times.
    pub times: usize,
    /// Total in seconds.
    pub seconds: f64,
    /// The longest of those times.
    pub longest: Span,
}

/// A warning that was repeated in consecutive decisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageProblem {
    /// Time of the first warning, in seconds from the start.
    pub from: f64,
    /// Time of the last warning.
    pub to: f64,
    /// Number of warnings.
    pub times: u64,
    /// Reason, such as `FailedGetResourceMetric`.
    pub reason: String,
    /// Message.
    pub message: String,
}

/// A limit that can change the recommendation of an autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// Scaling policies, or without `behavior` the limit of doubling.
    Rate,
    /// A stabilization window.
    Window,
    /// The upper bound.
    Max,
    /// The lower bound.
    Min,
    /// A metric could not be read.
    Metric,
    /// The scale could not be read or written, or the target was paused.
    Target,
}

/// How to reproduce the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reproduce {
    /// The command line.
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// The seed of random numbers, where some were used.
    pub seed: Option<u64>,
    /// The files that were read.
    pub files: Vec<File>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its content.
    pub text: String,
}

impl Limit {
    /// All limits, in the order in which they are shown.
    pub const ALL: [Self; 6] = [Self::Rate, Self::Window, Self::Max, Self::Min, Self::Metric, Self::Target];

    /// One or two words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Rate => "rate limit",
            Self::Window => "window",
            Self::Max => "max",
            Self::Min => "min",
            Self::Metric => "no metric",
            Self::Target => "target",
        }
    }

    /// Explanation.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Rate => "metrics asked for a larger step than scaling policies allow at once",
            Self::Window => "a recommendation within the stabilization window held the count",
            Self::Max => "metrics asked for more than maxReplicas",
            Self::Min => "metrics asked for fewer than minReplicas",
            Self::Metric => "a metric could not be read",
            Self::Target => "the target could not be scaled, or was paused",
        }
    }
}

impl Series {
    /// A series without gaps.
    pub fn complete(rows: impl IntoIterator<Item = (f64, f64)>) -> Self {
        rows.into_iter().map(|(at, value)| (at, Some(value))).collect()
    }

    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = (f64, Option<f64>)> + '_ {
        self.at.iter().copied().zip(self.values.iter().copied())
    }
}

impl FromIterator<(f64, Option<f64>)> for Series {
    fn from_iter<I: IntoIterator<Item = (f64, Option<f64>)>>(rows: I) -> Self {
        let (at, values) = rows.into_iter().unzip();
        Self { at, values }
    }
}
