//! `/healthz`, `/livez` and `/readyz`, as Kubernetes prints them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use http::Response;

use crate::request::Query;
use crate::response::{self, Body};

type Look = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What must hold for the program to be well.
#[derive(Clone, Debug, Default)]
pub struct HealthChecks(Vec<Check>);

#[derive(Clone)]
struct Check {
    name: String,
    scope: Scope,
    look: Look,
    said: Arc<Mutex<Said>>,
}

/// What the log was told, so that it is told once.
#[derive(Default)]
struct Said {
    has_passed: bool,
    failure: Option<String>,
}

/// What the log is to be told.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// It has never passed: the program has just begun.
    NotYet,
    Passes,
    Fails,
    PassesAgain,
}

/// Which questions a check answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Ready,
    Live,
}

/// The questions.
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

    /// Adds one that answers all three questions.
    pub fn add(&mut self, name: &str, look: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.push(name, Scope::All, look);
    }

    /// Adds one without which requests should not come here; the program is not restarted for it.
    pub fn add_ready(&mut self, name: &str, look: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.push(name, Scope::Ready, look);
    }

    /// Adds one without which the program should be restarted.
    pub fn add_live(&mut self, name: &str, look: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.push(name, Scope::Live, look);
    }

    /// Adds those of another list.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    fn push(
        &mut self,
        name: &str,
        scope: Scope,
        look: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.0.push(Check { name: name.to_owned(), scope, look: Arc::new(look), said: Arc::default() });
    }

    fn of(&self, endpoint: Endpoint) -> impl Iterator<Item = &Check> {
        self.0.iter().filter(move |check| match endpoint {
            Endpoint::Healthz => true,
            Endpoint::Livez => check.scope != Scope::Ready,
            Endpoint::Readyz => check.scope != Scope::Live,
        })
    }

    /// Answers one of the questions.
    pub(crate) fn all(&self, endpoint: Endpoint, query: &Query) -> Response<Body> {
        let mut unmatched: Vec<&str> = query.all("exclude").collect();
        let (mut lines, mut well) = (String::new(), true);
        for check in self.of(endpoint) {
            if query.all("exclude").any(|name| name == check.name) {
                unmatched.retain(|name| *name != check.name);
                lines += &format!("[+]{} excluded: ok\n", check.name);
            } else if check.look().is_ok() {
                lines += &format!("[+]{} ok\n", check.name);
            } else {
                // Anybody may ask; the log knows.
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

    /// Answers for one check; none if there is no such check.
    pub(crate) fn one(&self, endpoint: Endpoint, name: &str) -> Option<Response<Body>> {
        let check = self.of(endpoint).find(|check| check.name == name)?;
        Some(match check.look() {
            Ok(()) => response::text(200, "ok"),
            Err(reason) => response::text(500, format!("internal server error: {reason}\n")),
        })
    }
}

impl Check {
    fn look(&self) -> Result<(), String> {
        let found = (self.look)();
        let news = self.said.lock().unwrap_or_else(PoisonError::into_inner).news(&found);
        let (check, reason) = (&self.name, found.as_ref().err());
        match news {
            None => {}
            Some(News::NotYet) => tracing::info!(check, reason, "a health check does not pass yet"),
            Some(News::Passes) => tracing::info!(check, "a health check passes"),
            Some(News::Fails) => tracing::warn!(check, reason, "a health check fails"),
            Some(News::PassesAgain) => tracing::info!(check, "a health check passes again"),
        }
        found
    }
}

impl Said {
    fn news(&mut self, found: &Result<(), String>) -> Option<News> {
        let had_passed = self.has_passed;
        self.has_passed |= found.is_ok();
        let failure = found.as_ref().err();
        if self.failure.as_ref() == failure {
            return None;
        }
        self.failure = failure.cloned();
        Some(match (had_passed, found.is_ok()) {
            (false, false) => News::NotYet,
            (false, true) => News::Passes,
            (true, false) => News::Fails,
            (true, true) => News::PassesAgain,
        })
    }
}

impl Endpoint {
    /// The question a path's first part asks.
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
    async fn answers_are_those_of_kubernetes() {
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
        assert_eq!(all(Endpoint::Healthz, "").await.0, 500);
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
    fn what_has_never_passed_is_no_warning_and_nothing_is_said_twice() {
        let mut said = Said::default();
        let fails = |reason: &str| Err(reason.to_owned());
        assert_eq!(said.news(&fails("no list yet")), Some(News::NotYet));
        assert_eq!(said.news(&fails("no list yet")), None);
        assert_eq!(said.news(&Ok(())), Some(News::Passes));
        assert_eq!(said.news(&Ok(())), None);
        assert_eq!(said.news(&fails("no answer")), Some(News::Fails));
        assert_eq!(said.news(&fails("refused")), Some(News::Fails));
        assert_eq!(said.news(&Ok(())), Some(News::PassesAgain));
        assert_eq!(Said::default().news(&Ok(())), None);
    }
}
