//! The table of faults.

use std::time::Duration;

use http::Method;
use http::request::Parts;
use testbed::proxy::{Fault, Rule};

use crate::env::PERIOD;

/// A fault, and its allowed effects.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) broken: Broken,
    /// The condition during the fault, where status can be written.
    pub(super) says: Option<(&'static str, &'static str)>,
    /// Whether nothing can be decided or written during the fault: then no scale is written.
    pub(super) blind: bool,
    /// Minimum length.
    pub(super) lasts: Duration,
    /// Extra time for the recovery beyond two periods, where a timeout or backoff is longer than the test's period.
    pub(super) slow: Duration,
}

/// The broken part.
pub(super) enum Broken {
    /// Responses, by these rules.
    Rules(Vec<Rule>),
    /// Responses, after all watches were cut.
    Relisted(Vec<Rule>),
    /// Watches of paths with this suffix are cut repeatedly.
    Cutting(&'static str),
    /// Watches of paths with this suffix lose events.
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

/// Timeout of a request without a response.
const GIVEN_UP: Duration = Duration::from_secs(10);
/// Delay before a closed connection is opened again.
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

/// All requests except watches, which have their own rows.
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
