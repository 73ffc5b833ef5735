//! The table of faults.

use std::time::Duration;

use http::Method;
use http::request::Parts;
use testbed::proxy::{Fault, Rule};

use crate::env::PERIOD;

/// A fault, and what it may lead to.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) broken: Broken,
    /// What a condition says while it lasts, where it can be written.
    pub(super) says: Option<(&'static str, &'static str)>,
    /// Whether it leaves nothing to decide on, or no way to act: then nothing is written.
    pub(super) blind: bool,
    /// For how long at least.
    pub(super) lasts: Duration,
    /// What the end of it may take longer than two periods of a test, because a wait of ours is made for longer periods.
    pub(super) slow: Duration,
}

/// What is broken.
pub(super) enum Broken {
    /// Answers, as these say.
    Rules(Vec<Rule>),
    /// The same, and all watches are cut first.
    Relisted(Vec<Rule>),
    /// Watches of paths that end so are cut again and again.
    Cutting(&'static str),
    /// Watches of paths that end so lose what they should tell.
    Stalled(&'static str),
    /// Nobody listens.
    Down,
}

const SCALE: &str = "/deployments/web/scale";
const STATUS: &str = "/horizontalpodautoscalers/web/status";
const METRICS: &str = "/apis/metrics.k8s.io/";
const NO_SCALE: Option<(&str, &str)> = Some(("AbleToScale", "False FailedGetScale"));
const NO_WRITE: Option<(&str, &str)> = Some(("AbleToScale", "False FailedUpdateScale"));
const NO_METRIC: Option<(&str, &str)> = Some(("ScalingActive", "False FailedGetResourceMetric"));

/// A request that nobody answers is given up after this time.
const GIVEN_UP: Duration = Duration::from_secs(10);
/// A connection that was closed is opened again after this time.
const HUNG_UP: Duration = Duration::from_secs(1);
/// `Retry-After` of the tests.
const RETRY: u32 = 1;

fn row(name: &'static str, broken: Broken) -> Row {
    Row { name, broken, says: None, blind: false, lasts: 3 * PERIOD, slow: Duration::ZERO }
}

fn says(code: u16, reason: &'static str, retry_after: Option<u32>) -> Rule {
    Rule::new(Fault::Status { code, reason, message: format!("injected {code}"), retry_after })
}

fn only(rule: Rule) -> Broken {
    Broken::Rules(vec![rule])
}

fn is_watch(parts: &Parts) -> bool {
    parts.uri.query().is_some_and(|query| query.contains("watch=true"))
}

/// Not watches, which have rows of their own.
fn answers(fault: Fault) -> Rule {
    Rule::new(fault).when(|parts| !is_watch(parts))
}

pub(super) fn all() -> Vec<Row> {
    watches().into_iter().chain(refusals()).chain(answers_that_break()).chain(metrics()).collect()
}

fn watches() -> Vec<Row> {
    // Versions are forgotten, so that everything must be listed again, and the lists are those of the beginning. Samples
    // are not: old ones that are told for new are believed, and would be a fault of the metrics, not of lists.
    let expired = says(410, "Expired", None).when(is_watch).times(6);
    let stale = Rule::new(Fault::StaleList).when(|parts| !parts.uri.path().starts_with(METRICS));
    vec![
        row("watch of pods cut again and again", Broken::Cutting("/pods")),
        row("watch of HPAs cut again and again", Broken::Cutting("/horizontalpodautoscalers")),
        row("watch of deployments cut again and again", Broken::Cutting("/deployments")),
        row("watch of pods stalled", Broken::Stalled("/pods")),
        row("watch of HPAs stalled", Broken::Stalled("/horizontalpodautoscalers")),
        row("watch of deployments stalled", Broken::Stalled("/deployments")),
        row(
            "watches refused with 500",
            Broken::Relisted(vec![says(500, "InternalError", None).when(is_watch)]),
        ),
        Row { slow: Duration::from_secs(2), ..row("stale lists", Broken::Relisted(vec![expired, stale])) },
    ]
}

fn refusals() -> Vec<Row> {
    let put = |rule: Rule, suffix: &str| only(rule.method(Method::PUT).suffix(suffix));
    let conflict = || says(409, "Conflict", None);
    let busy = || says(429, "TooManyRequests", Some(RETRY));
    let waits = Duration::from_secs(u64::from(RETRY));
    vec![
        Row { says: NO_WRITE, blind: true, ..row("409 on scale", put(conflict(), SCALE)) },
        row("409 on status", put(conflict(), STATUS)),
        Row { blind: true, slow: 3 * waits, ..row("429 with Retry-After on everything", only(busy())) },
        row("429 on status", put(says(429, "TooManyRequests", None), STATUS)),
        Row { says: NO_WRITE, blind: true, ..row("500 on writes of scale", put(says(500, "", None), SCALE)) },
        Row { says: NO_SCALE, blind: true, ..row("500 on scale", only(says(500, "", None).suffix(SCALE))) },
        Row { blind: true, slow: waits, ..row("500 on everything", only(says(500, "InternalError", None))) },
        Row {
            blind: true,
            slow: waits,
            ..row("503 on everything", only(says(503, "ServiceUnavailable", None)))
        },
        Row { says: NO_WRITE, blind: true, ..row("403 on scale", put(says(403, "Forbidden", None), SCALE)) },
    ]
}

fn answers_that_break() -> Vec<Row> {
    let put = |fault: Fault, suffix: &str| only(Rule::new(fault).method(Method::PUT).suffix(suffix));
    let cut = || Fault::CutBody { after_bytes: 20 };
    vec![
        row("slow answers", only(Rule::new(Fault::Delay(PERIOD + PERIOD / 2)))),
        Row { blind: true, slow: HUNG_UP, ..row("truncated answers", only(answers(cut()))) },
        Row { blind: true, slow: HUNG_UP, ..row("garbage", only(answers(Fault::Garbage))) },
        Row { blind: true, slow: 2 * HUNG_UP, ..row("connections closed", only(Rule::new(Fault::Refuse))) },
        Row { slow: HUNG_UP, ..row("answers to writes of scale lost", put(Fault::LoseAnswer, SCALE)) },
        Row { slow: HUNG_UP, ..row("answers to writes of status lost", put(Fault::LoseAnswer, STATUS)) },
        Row { slow: HUNG_UP, ..row("truncated answers to writes of scale", put(cut(), SCALE)) },
        Row { blind: true, slow: 3 * HUNG_UP, ..row("API server down and up again", Broken::Down) },
    ]
}

fn metrics() -> Vec<Row> {
    let blind =
        |name, rule: Rule| Row { says: NO_METRIC, blind: true, ..row(name, only(rule.prefix(METRICS))) };
    vec![
        blind("metrics API gone (404)", says(404, "NotFound", None)),
        blind("metrics API not ready (503)", says(503, "ServiceUnavailable", None)),
        blind("metrics API forbidden", says(403, "Forbidden", None)),
        blind("metrics garbage", Rule::new(Fault::Garbage)),
        blind("metrics truncated", Rule::new(Fault::CutBody { after_bytes: 30 })),
        Row {
            slow: GIVEN_UP,
            ..blind("metrics that never come", Rule::new(Fault::StallBody { after_bytes: 0 }))
        },
    ]
}
