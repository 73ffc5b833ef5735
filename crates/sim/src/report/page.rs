//! What a report shows: plain values in the units in which people read them, ready to be put on a page.

use jiff::Timestamp;
use serde::Serialize;

/// All that one page shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportPage {
    /// What the page is about, such as the name of the scenario.
    pub title: String,
    /// What was asked, one sentence per line: specs compared, load.
    pub question: Vec<String>,
    /// When virtual time begins.
    pub start: Timestamp,
    /// How long it lasts, in seconds.
    pub seconds: f64,
    /// What is compared; one entry if nothing is.
    pub runs: Vec<Run>,
    /// What was scaled, each in all runs.
    pub workloads: Vec<Workload>,
    /// What a reader must know about the numbers, such as how many decisions one point stands for.
    pub notes: Vec<String>,
    /// How to make this page again.
    pub reproduce: Reproduce,
}

/// One of the runs compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Short name, such as the name of its file.
    pub name: String,
    /// What makes it different, in a few words; may be empty.
    pub about: String,
}

/// One workload in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Its name, such as `deployment/php-apache`.
    pub name: String,
    /// What happened to it, in the order of the runs.
    pub tracks: Vec<Track>,
}

/// One workload in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Track {
    /// Sums over the run.
    pub figures: Figures,
    /// The work that arrived and what became of it; absent if that is not known.
    pub load: Option<Load>,
    /// Ready pods over time.
    pub ready: Series,
    /// Who scaled it.
    pub autoscalers: Vec<Autoscaler>,
}

/// Sums over a run. What is not known is absent and not shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Hours of all pods that existed.
    pub pod_hours: f64,
    /// Mean of the replicas asked for.
    pub mean_replicas: f64,
    /// Fewest replicas asked for.
    pub min_replicas: usize,
    /// Most replicas asked for.
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
    /// Share of what ready pods could do that was used, from 0 to 1.
    pub used_share: Option<f64>,
    /// Seconds in which some metric was above its target by more than the tolerance.
    pub above_target_seconds: Option<f64>,
    /// How often replicas changed.
    pub changes: u64,
}

/// Work over time, in units per second; all columns have the length of `at`, each row holds until the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// Seconds from the start.
    pub at: Vec<f64>,
    /// What arrived.
    pub offered: Vec<f64>,
    /// What was done.
    pub served: Vec<f64>,
    /// What was lost.
    pub unserved: Vec<f64>,
    /// Units that wait.
    pub backlog: Vec<f64>,
}

/// Numbers over time; both columns have the same length, each number holds until the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// Seconds from the start.
    pub at: Vec<f64>,
    /// Absent where the number was not known: that is not zero.
    pub values: Vec<Option<f64>>,
}

/// One autoscaler in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaler {
    /// Its name, such as `hpa/php-apache`.
    pub name: String,
    /// Lower bound of replicas.
    pub min: i32,
    /// Upper bound of replicas.
    pub max: i32,
    /// Whether it only looked, so that its changes were not made.
    pub dry_run: bool,
    /// The count that should be, after each decision.
    pub desired: Series,
    /// What it measured.
    pub metrics: Vec<Metric>,
    /// Every change of the count, or the first of very many.
    pub changes: Vec<Change>,
    /// Changes after those, as many as can be drawn.
    pub more_changes: Vec<Mark>,
    /// When something kept it from doing what its metrics asked for.
    pub limits: Vec<Span>,
    /// How often and how long each limit applied.
    pub limit_sums: Vec<LimitSum>,
    /// What went wrong.
    pub troubles: Vec<Trouble>,
}

/// A metric over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// Its name, such as `cpu`.
    pub name: String,
    /// How its numbers are written.
    pub unit: Unit,
    /// What it should be.
    pub target: Option<f64>,
    /// What it was.
    pub series: Series,
}

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
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
pub struct Change {
    /// Seconds from the start.
    pub at: f64,
    /// The count before.
    pub from: i32,
    /// The count after.
    pub to: i32,
    /// The count that metrics asked for, where that is another one.
    pub wanted: Option<i32>,
    /// Why, in one sentence.
    pub why: String,
    /// What limited it.
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
    /// Which limit.
    pub limit: Limit,
    /// How many decisions it limited.
    pub decisions: usize,
    /// Why, in one sentence, as of the first of them.
    pub why: String,
}

/// How often and how long one limit applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitSum {
    /// Times that were not right after one another.
    pub times: usize,
    /// Seconds in all.
    pub seconds: f64,
    /// The longest of those times.
    pub longest: Span,
}

/// Something that went wrong in the same way for a while.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// When it was first seen, in seconds from the start.
    pub from: f64,
    /// When it was last seen.
    pub to: f64,
    /// How often.
    pub times: u64,
    /// One word, such as `FailedGetResourceMetric`.
    pub reason: String,
    /// What was said.
    pub message: String,
}

/// What can keep an autoscaler from doing what its metrics ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// Scaling policies, or the classic doubling, allow only so much per period.
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

/// How to make the page again.
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
    /// All of them, in the order in which they are shown.
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

    /// What it means.
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
