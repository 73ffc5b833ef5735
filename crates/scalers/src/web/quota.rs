//! Pauses that sources require, by `Retry-After` or the headers of rate limits.

use std::collections::HashMap;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use sources::http::{Auth, Endpoint, HttpErrorCause};
use tokio::time::Instant;

use super::RequestKey;

/// The longest pause that a source can require: the longest interval of a rate limit that is in use.
const MAX_SOURCE_PAUSE: Duration = Duration::from_hours(1);
/// Maximum number of pauses that are remembered.
const MAX_PAUSED_CALLERS: usize = 10_000;
/// Headers that never identify the caller.
const PLAIN_HEADERS: [&str; 3] = ["accept", "content-type", "user-agent"];
/// Headers with the number of requests that are left and with the time of the next ones, and how the latter is written.
const RATE_LIMIT_HEADERS: [(&str, &str, &str); 2] = [
    ("x-ratelimit-remaining", "x-ratelimit-reset", "X-RateLimit-Reset"),
    ("ratelimit-remaining", "ratelimit-reset", "RateLimit-Reset"),
];

/// A pause that a source requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    time: Duration,
    /// The header that states the pause.
    header: &'static str,
}

/// The pauses of all sources, by caller.
#[derive(Default)]
pub(super) struct Quotas(HashMap<RequestKey, (Instant, HttpErrorCause)>);

impl Quotas {
    /// Why no request is sent to a source now.
    pub(super) fn refusal(&mut self, key: RequestKey, now: Instant) -> Option<HttpErrorCause> {
        let (until, cause) = self.0.get(&key)?;
        if *until > now {
            return Some(cause.clone());
        }
        self.0.remove(&key);
        None
    }

    /// Remembers a pause; returns the error of requests meanwhile.
    pub(super) fn note(
        &mut self,
        key: RequestKey,
        pause: &Pause,
        now: Instant,
        wall: Timestamp,
    ) -> HttpErrorCause {
        let second = wall.as_second().saturating_add(pause.time.as_secs() as i64);
        let until = Timestamp::from_second(second).unwrap_or(wall);
        let cause = HttpErrorCause::RateLimited { until, header: pause.header };
        if self.0.len() >= MAX_PAUSED_CALLERS {
            self.0.retain(|_, (until, _)| *until > now);
        }
        if self.0.len() < MAX_PAUSED_CALLERS {
            self.0.insert(key, (now + pause.time, cause.clone()));
        }
        cause
    }
}

/// Whether the status refuses a request, so that the response has no value.
pub(super) fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 403 | 429 | 503)
}

/// The pause that a response requires.
pub(super) fn pause(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Pause> {
    let is_refused = is_refusal(status);
    if !is_refused && !status.is_success() && status != StatusCode::NOT_MODIFIED {
        return None;
    }
    let requested = if is_refused { retry_after(headers, now) } else { None };
    let Pause { time, header } = requested.or_else(|| reset(headers, now))?;
    (!time.is_zero()).then(|| Pause { time: time.min(MAX_SOURCE_PAUSE), header })
}

/// Whether the headers of a request identify the caller. If they do not, the caller may be named in the URL or in the body, as in requests
/// for tokens, and a limit is that of both.
pub(super) fn names_caller(endpoint: &Endpoint, headers: &HeaderMap) -> bool {
    endpoint.auth != Auth::None
        || endpoint.certificate.is_some()
        || endpoint.certificate_file.is_some()
        || endpoint.url.contains('@')
        || !endpoint.headers.is_empty()
        || headers.keys().any(|name| !PLAIN_HEADERS.contains(&name.as_str()))
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Pause> {
    let written = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let time = match written.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => since(now, DateTimeParser::new().parse_timestamp(written).ok()?),
    };
    Some(Pause { time, header: "Retry-After" })
}

/// The time until there are requests again, if none is left.
fn reset(headers: &HeaderMap, now: Timestamp) -> Option<Pause> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let limit = |(left, reset, header): (&str, &str, &'static str)| {
        let at = number(reset).filter(|_| number(left) == Some(0))?;
        // Some APIs write seconds from now, others seconds or milliseconds since 1970.
        let time = match at {
            ..1_000_000_000 => Duration::from_secs(at),
            1_000_000_000..100_000_000_000 => since(now, Timestamp::from_second(at as i64).ok()?),
            _ => since(now, Timestamp::from_millisecond(i64::try_from(at).ok()?).ok()?),
        };
        Some(Pause { time, header })
    };
    RATE_LIMIT_HEADERS.into_iter().find_map(limit)
}

/// The time from `now` to `then`; zero if it has passed.
fn since(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use sources::http::Secret;

    use super::*;

    fn requested(status: u16, headers: &[(&'static str, &'static str)]) -> Option<(u64, &'static str)> {
        let one = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        let headers: HeaderMap = headers.iter().copied().map(one).collect();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let pause = pause(StatusCode::from_u16(status).unwrap(), &headers, now)?;
        Some((pause.time.as_secs(), pause.header))
    }

    #[test]
    fn headers_require_a_pause() {
        let retry = "Retry-After";
        assert_eq!(requested(429, &[("retry-after", "30")]), Some((30, retry)));
        assert_eq!(requested(503, &[("retry-after", " 30 ")]), Some((30, retry)));
        assert_eq!(requested(403, &[("retry-after", "30")]), Some((30, retry)));
        let date = "Fri, 15 Jan 2027 08:01:00 GMT";
        assert_eq!(requested(429, &[("retry-after", date)]), Some((60, retry)));
        assert_eq!(
            requested(429, &[("retry-after", "99999999")]),
            Some((3600, retry)),
            "no longer than an hour"
        );
        for none in ["0", "-1", "soon", "", "Fri, 15 Jan 2027 07:00:00 GMT"] {
            assert_eq!(requested(429, &[("retry-after", none)]), None, "{none}");
        }
        // A value is used, whatever the header says.
        assert_eq!(requested(200, &[("retry-after", "30")]), None);
        assert_eq!(requested(500, &[("retry-after", "30")]), None);
        let spent = |reset| [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)];
        let reset = "X-RateLimit-Reset";
        for status in [200, 304, 403, 429] {
            assert_eq!(requested(status, &spent("40")), Some((40, reset)));
            assert_eq!(requested(status, &spent("1800000050")), Some((50, reset)));
            assert_eq!(requested(status, &spent("1800000070000")), Some((70, reset)));
            assert_eq!(requested(status, &spent("1700000000")), None, "it has passed");
            assert_eq!(requested(status, &spent("tomorrow")), None);
        }
        let left = [("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "40")];
        assert_eq!(requested(200, &left), None);
        let standard = [("ratelimit-remaining", "0"), ("ratelimit-reset", "20")];
        assert_eq!(requested(429, &standard), Some((20, "RateLimit-Reset")));
    }

    #[test]
    fn callers_are_named_by_credentials_and_unknown_headers() {
        let names = |endpoint: &Endpoint, header: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static(header), HeaderValue::from_static("x"));
            names_caller(endpoint, &headers)
        };
        let plain = Endpoint::at("http://source");
        assert!(!names(&plain, "accept"));
        assert!(names(&plain, "x-api-key"));
        assert!(names(&Endpoint::at("http://me:secret@source"), "accept"));
        let token = Endpoint { auth: Auth::Token(Secret::new("t")), ..plain };
        assert!(names(&token, "accept"));
    }
}
