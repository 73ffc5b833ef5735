//! `/healthz`, `/livez` and `/readyz`, as Kubernetes prints them.

use std::fmt;
use std::sync::{Arc, Mutex};

use http::Response;
use locks::MutexExt as _;
use runtime::CheckFailure;

use crate::query::Query;
use crate::response::{self, Body};

type CheckFn = Arc<dyn Fn() -> Result<(), CheckFailure> + Send + Sync>;

/// Health checks of the process.
#[derive(Clone, Debug, Default)]
pub struct HealthChecks(Vec<Check>);

#[derive(Clone)]
struct Check {
    name: String,
    scope: CheckScope,
    run: CheckFn,
    logged: Arc<Mutex<LoggedState>>,
}

/// The last logged state, so that each change is logged once.
#[derive(Default)]
struct LoggedState {
    has_passed: bool,
    failure: Option<CheckFailure>,
}

/// A change of a check's result, to be logged.
#[derive(Debug, PartialEq, Eq)]
enum CheckChange {
    /// The check has never passed: the process starts.
    NotYet,
    Passes,
    Fails,
    PassesAgain,
}

/// The endpoints that include a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckScope {
    All,
    Ready,
    Live,
}

/// The health endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Healthz,
    Livez,
    Readyz,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.name, self.scope)
    }
}

impl HealthChecks {
    /// No checks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check to all three endpoints.
    pub fn add(&mut self, name: &str, check: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static) {
        self.push(name, CheckScope::All, check);
    }

    /// Adds a check of `/readyz` only, as Kubernetes does: liveness probes of `/healthz` must not restart a process that still starts.
    pub fn add_ready(
        &mut self,
        name: &str,
        check: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static,
    ) {
        self.push(name, CheckScope::Ready, check);
    }

    /// Adds a check of `/livez` only.
    pub fn add_live(
        &mut self,
        name: &str,
        check: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static,
    ) {
        self.push(name, CheckScope::Live, check);
    }

    /// Adds the checks of another list.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The same checks with names below `prefix`: `prefix/name`.
    pub fn below(mut self, prefix: &str) -> Self {
        for check in &mut self.0 {
            check.name = format!("{prefix}/{}", check.name);
        }
        self
    }

    fn push(
        &mut self,
        name: &str,
        scope: CheckScope,
        check: impl Fn() -> Result<(), CheckFailure> + Send + Sync + 'static,
    ) {
        self.0.push(Check { name: name.to_owned(), scope, run: Arc::new(check), logged: Arc::default() });
    }

    fn of(&self, endpoint: Endpoint) -> impl Iterator<Item = &Check> {
        self.0.iter().filter(move |check| match endpoint {
            Endpoint::Healthz => check.scope == CheckScope::All,
            Endpoint::Livez => check.scope != CheckScope::Ready,
            Endpoint::Readyz => check.scope != CheckScope::Live,
        })
    }

    /// The response of an endpoint.
    pub(crate) fn all(&self, endpoint: Endpoint, query: &Query) -> Response<Body> {
        let mut unmatched: Vec<&str> = query.all("exclude").collect();
        let (mut lines, mut well) = (String::new(), true);
        for check in self.of(endpoint) {
            if query.all("exclude").any(|name| name == check.name) {
                unmatched.retain(|name| *name != check.name);
                lines += &format!("[+]{} excluded: ok\n", check.name);
            } else if check.run().is_ok() {
                lines += &format!("[+]{} ok\n", check.name);
            } else {
                // Unauthenticated clients may read this page; the reason is in the log.
                lines += &format!("[-]{} failed: reason withheld\n", check.name);
                well = false;
            }
        }
        if !unmatched.is_empty() {
            unmatched.sort_unstable();
            unmatched.dedup();
            let names: Vec<String> = unmatched.iter().map(|name| api::gotext::quote(name)).collect();
            lines +=
                &format!("warn: some health checks cannot be excluded: no matches for {}\n", names.join(","));
        }
        match (well, query.get("verbose").is_some()) {
            (false, _) => response::text(500, format!("{lines}{} check failed\n", endpoint.name())),
            (true, true) => response::text(200, format!("{lines}{} check passed\n", endpoint.name())),
            (true, false) => response::text(200, "ok"),
        }
    }

    /// The response for one check; none if there is no such check.
    pub(crate) fn one(&self, endpoint: Endpoint, name: &str) -> Option<Response<Body>> {
        let check = self.of(endpoint).find(|check| check.name == name)?;
        Some(match check.run() {
            Ok(()) => response::text(200, "ok"),
            Err(reason) => response::text(500, format!("internal server error: {reason}\n")),
        })
    }
}

impl Check {
    fn run(&self) -> Result<(), CheckFailure> {
        let result = (self.run)();
        let change = self.logged.locked().change(&result);
        let (check, reason) = (&self.name, result.as_ref().err().map(|failure| failure.0.as_str()));
        match change {
            None => {}
            Some(CheckChange::NotYet) => tracing::info!(check, reason, "health check does not pass yet"),
            Some(CheckChange::Passes) => tracing::info!(check, "health check passes"),
            Some(CheckChange::Fails) => tracing::warn!(check, reason, "health check fails"),
            Some(CheckChange::PassesAgain) => tracing::info!(check, "health check passes again"),
        }
        result
    }
}

impl LoggedState {
    fn change(&mut self, result: &Result<(), CheckFailure>) -> Option<CheckChange> {
        let had_passed = self.has_passed;
        self.has_passed |= result.is_ok();
        let failure = result.as_ref().err();
        if self.failure.as_ref() == failure {
            return None;
        }
        self.failure = failure.cloned();
        Some(match (had_passed, result.is_ok()) {
            (false, false) => CheckChange::NotYet,
            (false, true) => CheckChange::Passes,
            (true, false) => CheckChange::Fails,
            (true, true) => CheckChange::PassesAgain,
        })
    }
}

impl Endpoint {
    /// The endpoint of a path's first segment.
    pub(crate) fn of(segment: &str) -> Option<Self> {
        match segment {
            "healthz" => Some(Self::Healthz),
            "livez" => Some(Self::Livez),
            "readyz" => Some(Self::Readyz),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use http_body_util::BodyExt as _;

    use super::*;

    async fn read(response: Response<Body>) -> (u16, String) {
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn responses_are_those_of_kubernetes() {
        let synced = Arc::new(AtomicBool::new(false));
        let mut checks = HealthChecks::new();
        checks.add("ping", || Ok(()));
        let seen = Arc::clone(&synced);
        checks.add_ready("sync", move || seen.load(Ordering::Relaxed).then_some(()).ok_or("not yet".into()));
        checks.add_live("loop", || Ok(()));
        let all = async |endpoint, query: &str| read(checks.all(endpoint, &Query::parse(query))).await;
        let failed = "[+]ping ok\n[-]sync failed: reason withheld\nreadyz check failed\n".to_owned();
        assert_eq!(all(Endpoint::Readyz, "").await, (500, failed));
        assert_eq!(all(Endpoint::Livez, "").await, (200, "ok".into()));
        assert_eq!(
            all(Endpoint::Healthz, "verbose").await,
            (200, "[+]ping ok\nhealthz check passed\n".into())
        );
        assert_eq!(
            all(Endpoint::Readyz, "verbose&exclude=sync&exclude=zz&exclude=yy").await.1,
            "[+]ping ok\n[+]sync excluded: ok\nwarn: some health checks cannot be excluded: no matches for \
             \"yy\",\"zz\"\nreadyz check passed\n"
        );
        let one = checks.one(Endpoint::Readyz, "sync").unwrap();
        assert_eq!(read(one).await, (500, "internal server error: not yet\n".into()));
        assert!(checks.one(Endpoint::Livez, "sync").is_none());
        synced.store(true, Ordering::Relaxed);
        assert_eq!(all(Endpoint::Readyz, "").await, (200, "ok".into()));
        let verbose = "[+]ping ok\n[+]sync ok\nreadyz check passed\n".to_owned();
        assert_eq!(all(Endpoint::Readyz, "verbose").await, (200, verbose));
    }

    #[test]
    fn only_changes_are_logged_and_a_starting_check_is_no_warning() {
        let mut logged = LoggedState::default();
        let fails = |reason: &str| Err(CheckFailure::from(reason));
        assert_eq!(logged.change(&fails("no list yet")), Some(CheckChange::NotYet));
        assert_eq!(logged.change(&fails("no list yet")), None);
        assert_eq!(logged.change(&Ok(())), Some(CheckChange::Passes));
        assert_eq!(logged.change(&Ok(())), None);
        assert_eq!(logged.change(&fails("no answer")), Some(CheckChange::Fails));
        assert_eq!(logged.change(&fails("refused")), Some(CheckChange::Fails));
        assert_eq!(logged.change(&Ok(())), Some(CheckChange::PassesAgain));
        assert_eq!(LoggedState::default().change(&Ok(())), None);
    }
}
