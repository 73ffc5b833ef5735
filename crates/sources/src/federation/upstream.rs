//! One upstream: asked within a time and a size, each question once at a time, and left alone while it is ill.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::provider::{
    CustomMetric, CustomMetricQuery, CustomValue, ExternalMetricQuery, ExternalValue, Failure, Objects,
};
use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::cause::{Cause, shortened};
use super::config::UpstreamConfig;
use super::flight::Flight;
use super::health::Health;
use super::turn::Scope;
use super::wire::{self, Version};
use super::{Own, hop};
use crate::http::{Ask, Auth, Cause as NoAnswer, Client, Endpoint};

/// Questions that one upstream is sent at the same time.
const AT_ONCE: usize = 64;
/// Bytes of an answer with values, and of a list of metrics.
const VALUES: usize = 16 << 20;
const LIST: usize = 8 << 20;
/// Time between two looks at what it has, while it is well and while it is ill.
const RELIST: Duration = Duration::from_secs(30);
const RELIST_ILL: Duration = Duration::from_secs(10);

type Values<T> = Result<Arc<Vec<T>>, Failure>;

/// One upstream. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub(crate) struct Upstream(Arc<Inner>);

struct Inner {
    config: UpstreamConfig,
    scope: Scope,
    endpoint: Endpoint,
    hop: HeaderValue,
    /// Made when its files can be read.
    client: Mutex<Option<Client>>,
    health: Mutex<Health>,
    announced: Mutex<Announcement>,
    version: Mutex<Version>,
    places: Semaphore,
    custom: Flight<String, Values<CustomValue>>,
    external: Flight<String, Values<ExternalValue>>,
}

/// What it has, as far as it says.
#[derive(Clone, Default)]
pub(crate) struct Announcement {
    pub(crate) custom: Arc<Vec<CustomMetric>>,
    pub(crate) external: Arc<Vec<String>>,
    custom_names: Arc<HashSet<String>>,
    external_names: Arc<HashSet<String>>,
}

/// Why there is no body.
enum Without {
    /// 404 about the question: no such metric, in these words.
    Metric(String),
    /// 404 about the path: the API is not served.
    Path,
    /// Anything else.
    Failed(Cause),
}

impl From<Cause> for Without {
    fn from(cause: Cause) -> Self {
        Self::Failed(cause)
    }
}

impl Upstream {
    pub(crate) fn new(config: UpstreamConfig, own: &Own) -> Self {
        let auth = config.auth.token_file.clone().map_or(Auth::None, Auth::TokenFile);
        let endpoint = Endpoint {
            url: config.base_url(),
            ca_file: config.tls.ca_file.clone(),
            certificate_file: config.auth.client_certificate_file.clone(),
            key_file: config.auth.client_key_file.clone(),
            insecure: config.tls.insecure,
            server_name: config.tls.server_name.clone(),
            auth,
            ..Endpoint::default()
        };
        let scope = Scope {
            metrics: config.metrics.clone(),
            namespaces: config.namespaces.clone(),
            priority: config.priority,
        };
        Self(Arc::new(Inner {
            config,
            scope,
            endpoint,
            hop: hop::name(own),
            client: Mutex::default(),
            health: Mutex::new(Health::new()),
            announced: Mutex::default(),
            version: Mutex::new(Version::V1Beta2),
            places: Semaphore::new(AT_ONCE),
            custom: Flight::new(),
            external: Flight::new(),
        }))
    }

    pub(crate) fn config(&self) -> &UpstreamConfig {
        &self.0.config
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.0.scope
    }

    pub(crate) fn health(&self) -> MutexGuard<'_, Health> {
        locked(&self.0.health)
    }

    pub(crate) fn announced(&self) -> Announcement {
        locked(&self.0.announced).clone()
    }

    pub(crate) fn announced_custom(&self, metric: &str) -> bool {
        locked(&self.0.announced).custom_names.contains(metric)
    }

    pub(crate) fn announced_external(&self, metric: &str) -> bool {
        locked(&self.0.announced).external_names.contains(metric)
    }

    /// Values of a custom metric.
    pub(crate) async fn custom(&self, question: &CustomMetricQuery) -> Values<CustomValue> {
        let Some(key) = wire::custom_path(Version::V1Beta2, question) else {
            return Err(Failure::no_metric(&question.metric, &question.resource));
        };
        let ask = || {
            let (inner, question) = (Arc::clone(&self.0), question.clone());
            async move { inner.ask_custom(&question).await.map(Arc::new).map_err(|w| inner.failure(w)) }
        };
        self.0.custom.ask(key, ask).await
    }

    /// Values of an external metric.
    pub(crate) async fn external(&self, question: &ExternalMetricQuery) -> Values<ExternalValue> {
        let Some(path) = wire::external_path(question) else {
            return Err(Failure::no_metric(&question.metric, "namespaces"));
        };
        let ask = || {
            let (inner, question, path) = (Arc::clone(&self.0), question.clone(), path.clone());
            async move { inner.ask_external(&path, &question).await.map(Arc::new).map_err(|w| inner.failure(w)) }
        };
        self.0.external.ask(path.clone(), ask).await
    }

    /// Looks what it has, now and from time to time; never ends.
    pub(crate) async fn keep_listing(&self) {
        // Not all upstreams at the same moment.
        let spread = self.0.config.name.bytes().fold(0_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 1000);
        loop {
            let well = self.relist().await;
            let pause = if well { RELIST } else { RELIST_ILL };
            tokio::time::sleep(pause + Duration::from_millis(spread)).await;
        }
    }

    /// Looks what it has; whether that worked.
    pub(crate) async fn relist(&self) -> bool {
        let result = self.0.list().await;
        let now = Instant::now();
        let mut health = self.health();
        match result {
            Ok(found) => {
                health.listed(now);
                drop(health);
                *locked(&self.0.announced) = found;
                true
            }
            Err(cause) => {
                if !matches!(health.state(), super::health::State::Failing(_, known) if *known == cause) {
                    tracing::warn!(upstream = %self.0.config.name, %cause, remedy = cause.remedy(), "upstream fails");
                }
                health.not_listed(now, cause);
                false
            }
        }
    }
}

impl Inner {
    async fn ask_custom(&self, question: &CustomMetricQuery) -> Result<Vec<CustomValue>, Without> {
        let first = *locked(&self.version);
        let values = match self.ask_custom_in(first, question).await {
            Err(Without::Path) => {
                let other = match first {
                    Version::V1Beta1 => Version::V1Beta2,
                    Version::V1Beta2 => Version::V1Beta1,
                };
                let answer = self.ask_custom_in(other, question).await;
                if !matches!(answer, Err(Without::Path | Without::Failed(_))) {
                    *locked(&self.version) = other;
                }
                answer?
            }
            answer => answer?,
        };
        match (&question.objects, values.len()) {
            (Objects::All(_), _) | (Objects::One(_), 1) => Ok(values),
            (Objects::One(name), 0) => {
                let missing = Failure::no_value(&question.metric, &question.resource, name);
                Err(Without::Metric(missing.to_string()))
            }
            (Objects::One(_), count) => Err(Cause::Garbage(format!("{count} values for one object")).into()),
        }
    }

    async fn ask_custom_in(
        &self,
        version: Version,
        question: &CustomMetricQuery,
    ) -> Result<Vec<CustomValue>, Without> {
        let path =
            wire::custom_path(version, question).ok_or_else(|| Without::Metric(question.metric.clone()))?;
        self.ask(&path, |body| wire::read_custom(body, question)).await
    }

    async fn ask_external(
        &self,
        path: &str,
        question: &ExternalMetricQuery,
    ) -> Result<Vec<ExternalValue>, Without> {
        self.ask(path, |body| wire::read_external(body, question)).await
    }

    /// Asks, if it may be asked, and remembers how that went.
    async fn ask<T>(&self, path: &str, read: impl FnOnce(&[u8]) -> Result<T, Cause>) -> Result<T, Without> {
        let start = Instant::now();
        if let Err((wait, cause)) = locked(&self.health).admit(start) {
            let wait = wait.as_secs() + 1;
            tracing::debug!(upstream = %self.config.name, %cause, wait, "upstream is left alone");
            return Err(cause.into());
        }
        let answer = self.fetch(path, VALUES, start).await.and_then(|body| Ok(read(&body)?));
        let (now, took) = (Instant::now(), start.elapsed());
        let mut health = locked(&self.health);
        match &answer {
            Ok(_) | Err(Without::Metric(_) | Without::Path) => health.answered(now, took),
            Err(Without::Failed(cause)) => {
                let was_open = health.is_open();
                health.failed(now, took, cause.clone());
                if health.is_open() && !was_open {
                    let remedy = cause.remedy();
                    tracing::warn!(upstream = %self.config.name, %cause, remedy, "upstream is left alone for a while");
                }
            }
        }
        answer
    }

    async fn fetch(&self, path: &str, limit: usize, start: Instant) -> Result<Bytes, Without> {
        let deadline = start + self.config.timeout.0;
        let client = self.client()?;
        let permit = timeout_at(deadline, self.places.acquire()).await;
        let Ok(Ok(_permit)) = permit else { return Err(Cause::Busy.into()) };
        let ask = Ask::get(path)
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            .header(hop::HOP, self.hop.clone())
            .within(deadline.saturating_duration_since(Instant::now()))
            .at_most(limit);
        let answer = client.send(ask).await.map_err(|error| match error.cause {
            // Waiting for a place counts, too.
            NoAnswer::TimedOut(_) => Cause::NoAnswer(NoAnswer::TimedOut(self.config.timeout.0)),
            cause => Cause::NoAnswer(cause),
        })?;
        match answer.status {
            StatusCode::OK => Ok(answer.body),
            StatusCode::LOOP_DETECTED if answer.headers.get(hop::HOP) == Some(&self.hop) => {
                Err(Cause::Ourselves.into())
            }
            status => Err(Self::refused(status.as_u16(), &answer.body)),
        }
    }

    /// What an error means.
    fn refused(code: u16, body: &[u8]) -> Without {
        const NO_PATH: &str = "the server could not find the requested resource";
        let said = wire::read_status(body);
        let message = || match &said {
            Some(message) => shortened(message),
            None => shortened(&String::from_utf8_lossy(body.get(..body.len().min(2048)).unwrap_or_default())),
        };
        match (code, &said) {
            (404, Some(message)) if message != NO_PATH => Without::Metric(shortened(message)),
            (404, _) => Without::Path,
            (401 | 403, _) => Without::Failed(Cause::Denied { code, message: message() }),
            (400..=599, _) => Without::Failed(Cause::Status { code, message: message() }),
            _ => Without::Failed(Cause::Garbage(format!("it answered with code {code}"))),
        }
    }

    /// All that it announces and may be asked for.
    async fn list(&self) -> Result<Announcement, Cause> {
        let mut found = Announcement::default();
        if self.config.group.custom() {
            let mut body = self.fetch(Version::V1Beta2.path(), LIST, Instant::now()).await;
            let mut version = Version::V1Beta2;
            if matches!(body, Err(Without::Path | Without::Metric(_))) {
                version = Version::V1Beta1;
                body = self.fetch(version.path(), LIST, Instant::now()).await;
            }
            let all = wire::read_announced(&body.map_err(|w| no_list(w, "custom.metrics.k8s.io"))?)?;
            *locked(&self.version) = version;
            let mut all: Vec<CustomMetric> = all.iter().filter_map(wire::Announced::custom).collect();
            all.retain(|one| self.scope.admits(&one.metric));
            found.custom_names = Arc::new(wire::metric_names(&all));
            found.custom = Arc::new(all);
        }
        if self.config.group.external() {
            let body = self.fetch(wire::EXTERNAL, LIST, Instant::now()).await;
            let all = wire::read_announced(&body.map_err(|w| no_list(w, "external.metrics.k8s.io"))?)?;
            let names = all.into_iter().map(|one| one.name);
            let names: Vec<String> =
                names.filter(|name| !name.contains('/') && self.scope.admits(name)).collect();
            found.external_names = Arc::new(names.iter().cloned().collect());
            found.external = Arc::new(names);
        }
        Ok(found)
    }

    fn client(&self) -> Result<Client, Cause> {
        let mut client = locked(&self.client);
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let made = Client::new(self.endpoint.clone()).map_err(|error| Cause::NoAnswer(error.cause))?;
        Ok(client.insert(made).clone())
    }

    fn failure(&self, without: Without) -> Failure {
        match without {
            Without::Metric(message) => Failure::NoMetric(message),
            Without::Path => {
                let cause = not_served("this API");
                // It answered, but what it says there is of no use.
                locked(&self.health).not_listed(Instant::now(), cause.clone());
                cause.failure(&self.config.name)
            }
            Without::Failed(cause) => cause.failure(&self.config.name),
        }
    }
}

fn no_list(without: Without, api: &str) -> Cause {
    match without {
        Without::Path | Without::Metric(_) => not_served(api),
        Without::Failed(cause) => cause,
    }
}

fn not_served(api: &str) -> Cause {
    Cause::Garbage(format!("it does not serve {api}"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
