//! The table of faults.

use std::time::Duration;

use http::Method;
use http::request::Parts;
use testbed::proxy::{Fault, Rule};

use crate::env::PERIOD;

/// A fault, and its allowed effects.
pub(super) struct FaultRow {
    pub(super) name: &'static str,
    pub(super) broken: FaultTarget,
    /// The condition during the fault, where status can be written.
    pub(super) says: Option<(&'static str, &'static str)>,
    /// Whether nothing can be decided or written during the fault: then no scale is written.
    pub(super) blind: bool,
    /// The minimum duration of the fault.
    pub(super) lasts: Duration,
    /// Extra time for the recovery beyond two periods, where a timeout or backoff is longer than the test's period.
    pub(super) slow: Duration,
}

/// The broken part.
pub(super) enum FaultTarget {
    /// The rules apply to responses.
    Rules(Vec<Rule>),
    /// The rules apply to responses after all watches were cut.
    Relisted(Vec<Rule>),
    /// Watches of paths with this suffix are cut repeatedly.
    Cutting(&'static str),
    /// Watches of paths with this suffix lose events.
    Stalled(&'static str),
    /// The API server does not listen.
    Down,
}

const SCALE: &str = "/deployments/web/scale";
const STATUS: &str = "/horizontalpodautoscalers/web/status";
const METRICS: &str = "/apis/metrics.k8s.io/";
const NO_SCALE: Option<(&str, &str)> = Some(("AbleToScale", "False FailedGetScale"));
const NO_WRITE: Option<(&str, &str)> = Some(("AbleToScale", "False FailedUpdateScale"));
const NO_METRIC: Option<(&str, &str)> = Some(("ScalingActive", "False FailedGetResourceMetric"));

/// Timeout of a request without a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay before a closed connection is opened again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// `Retry-After` of the tests.
const RETRY_AFTER_SECONDS: u32 = 1;

fn row(name: &'static str, broken: FaultTarget) -> FaultRow {
    FaultRow { name, broken, says: None, blind: false, lasts: 3 * PERIOD, slow: Duration::ZERO }
}

fn says(code: u16, reason: &'static str, retry_after: Option<u32>) -> Rule {
    Rule::new(Fault::Status { code, reason, message: format!("injected {code}"), retry_after })
}

fn only(rule: Rule) -> FaultTarget {
    FaultTarget::Rules(vec![rule])
}

fn is_watch(parts: &Parts) -> bool {
    parts.uri.query().is_some_and(|query| query.contains("watch=true"))
}

/// All requests except watches, which have their own rows.
fn answers(fault: Fault) -> Rule {
    Rule::new(fault).when(|parts| !is_watch(parts))
}

pub(super) fn all() -> Vec<FaultRow> {
    watches().into_iter().chain(refusals()).chain(answers_that_break()).chain(metrics()).collect()
}

fn watches() -> Vec<FaultRow> {
    // All resource versions have expired, so that all objects must be listed again, and the lists are outdated. Samples of metrics are
    // excluded, because a controller cannot recognize outdated ones.
    let expired = says(410, "Expired", None).when(is_watch).times(6);
    let stale = Rule::new(Fault::StaleList).when(|parts| !parts.uri.path().starts_with(METRICS));
    vec![
        row("watch of pods cut again and again", FaultTarget::Cutting("/pods")),
        row("watch of HPAs cut again and again", FaultTarget::Cutting("/horizontalpodautoscalers")),
        row("watch of deployments cut again and again", FaultTarget::Cutting("/deployments")),
        row("watch of pods stalled", FaultTarget::Stalled("/pods")),
        row("watch of HPAs stalled", FaultTarget::Stalled("/horizontalpodautoscalers")),
        row("watch of deployments stalled", FaultTarget::Stalled("/deployments")),
        row(
            "watches refused with 500",
            FaultTarget::Relisted(vec![says(500, "InternalError", None).when(is_watch)]),
        ),
        FaultRow {
            slow: Duration::from_secs(2),
            ..row("stale lists", FaultTarget::Relisted(vec![expired, stale]))
        },
    ]
}

fn refusals() -> Vec<FaultRow> {
    let put = |rule: Rule, suffix: &str| only(rule.method(Method::PUT).suffix(suffix));
    let conflict = || says(409, "Conflict", None);
    let busy = || says(429, "TooManyRequests", Some(RETRY_AFTER_SECONDS));
    let waits = Duration::from_secs(u64::from(RETRY_AFTER_SECONDS));
    vec![
        FaultRow { says: NO_WRITE, blind: true, ..row("409 on scale", put(conflict(), SCALE)) },
        row("409 on status", put(conflict(), STATUS)),
        FaultRow { blind: true, slow: 3 * waits, ..row("429 with Retry-After on everything", only(busy())) },
        row("429 on status", put(says(429, "TooManyRequests", None), STATUS)),
        FaultRow {
            says: NO_WRITE,
            blind: true,
            ..row("500 on writes of scale", put(says(500, "", None), SCALE))
        },
        FaultRow {
            says: NO_SCALE,
            blind: true,
            ..row("500 on scale", only(says(500, "", None).suffix(SCALE)))
        },
        FaultRow {
            blind: true,
            slow: waits,
            ..row("500 on everything", only(says(500, "InternalError", None)))
        },
        FaultRow {
            blind: true,
            slow: waits,
            ..row("503 on everything", only(says(503, "ServiceUnavailable", None)))
        },
        FaultRow {
            says: NO_WRITE,
            blind: true,
            ..row("403 on scale", put(says(403, "Forbidden", None), SCALE))
        },
    ]
}

fn answers_that_break() -> Vec<FaultRow> {
    let put = |fault: Fault, suffix: &str| only(Rule::new(fault).method(Method::PUT).suffix(suffix));
    let cut = || Fault::CutBody { after_bytes: 20 };
    vec![
        row("slow answers", only(Rule::new(Fault::Delay(PERIOD + PERIOD / 2)))),
        FaultRow { blind: true, slow: RECONNECT_DELAY, ..row("truncated answers", only(answers(cut()))) },
        FaultRow { blind: true, slow: RECONNECT_DELAY, ..row("garbage", only(answers(Fault::Garbage))) },
        FaultRow {
            blind: true,
            slow: 2 * RECONNECT_DELAY,
            ..row("connections closed", only(Rule::new(Fault::Refuse)))
        },
        FaultRow {
            slow: RECONNECT_DELAY,
            ..row("answers to writes of scale lost", put(Fault::LoseResponse, SCALE))
        },
        FaultRow {
            slow: RECONNECT_DELAY,
            ..row("answers to writes of status lost", put(Fault::LoseResponse, STATUS))
        },
        FaultRow { slow: RECONNECT_DELAY, ..row("truncated answers to writes of scale", put(cut(), SCALE)) },
        FaultRow {
            blind: true,
            slow: 3 * RECONNECT_DELAY,
            ..row("API server down and up again", FaultTarget::Down)
        },
    ]
}

fn metrics() -> Vec<FaultRow> {
    let blind =
        |name, rule: Rule| FaultRow { says: NO_METRIC, blind: true, ..row(name, only(rule.prefix(METRICS))) };
    vec![
        blind("metrics API gone (404)", says(404, "NotFound", None)),
        blind("metrics API not ready (503)", says(503, "ServiceUnavailable", None)),
        blind("metrics API forbidden", says(403, "Forbidden", None)),
        blind("metrics garbage", Rule::new(Fault::Garbage)),
        blind("metrics truncated", Rule::new(Fault::CutBody { after_bytes: 30 })),
        FaultRow {
            slow: REQUEST_TIMEOUT,
            ..blind("metrics that never come", Rule::new(Fault::StallBody { after_bytes: 0 }))
        },
    ]
}
