//! github-runner: the number of queued and running jobs.

mod app;
mod query;
#[cfg(test)]
mod tests;

use futures::future::try_join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use locks::MutexExt as _;
use sources::http::{HttpError, HttpErrorCause};
use tokio::sync::{Mutex, Semaphore};

use app::App;
use query::{Labels, PAGE_SIZE, RateLimited};

use crate::parameters::InvalidParameters;
use crate::parameters::groups::HttpAuth;
use crate::prelude::*;

/// Maximum number of concurrent requests.
const MAX_CONCURRENT_REQUESTS: usize = 8;
/// Maximum number of pages that are read.
const MAX_PAGES: usize = 50;

/// The scaler type `github-runner`.
pub const TYPE: ScalerType = ScalerType {
    name: "github-runner",
    about: "How many jobs of GitHub Actions wait for self-hosted runners, or are being done by them.",
    display: "githubRunnerScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[("githubApiURL", "http://{}"), ("owner", "o"), ("runnerScope", "repo"), ("repos", "r")],
        &[("personalAccessToken", sample::SECRET)],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of github-runner. The trigger is active if there are at least as many jobs as the target per replica.
    pub struct Parameters of "error parsing GitHub Runner metadata: error parsing github runner metadata" {
        /// Base URL of GitHub's API.
        api: String = "githubApiURL" in [Metadata, Environment], default "https://api.github.com";
        /// The owner of the repositories.
        owner: String = "owner" in [Metadata, Environment], required;
        /// Scope of the runners: an organization, an enterprise or repositories.
        runner_scope: String = "runnerScope" in [Metadata, Environment], required, one_of ["org", "ent", "repo"];
        /// A personal access token.
        personal_access_token: Secret = "personalAccessToken" in [Authentication];
        /// The repositories, e.g. `shop,site`; by default all repositories of the owner.
        repos: Vec<String> = "repos" in [Metadata, Environment];
        /// The labels of the runners, e.g. `gpu,large`.
        labels: Vec<String> = "labels" in [Metadata, Environment];
        /// Does not assume the labels `self-hosted`, `linux` and `x64`.
        no_default_labels: bool = "noDefaultLabels" in [Metadata, Environment], default "false";
        /// Has no effect: requests for responses with an `ETag` are always conditional.
        enable_etags: bool = "enableEtags" in [Metadata, Environment], default "false";
        /// Has no effect: failing sources are always polled less often.
        enable_backoff: bool = "enableBackoff" in [Metadata, Environment], default "false";
        /// Jobs without labels match only runners without labels.
        match_unlabeled: bool = "matchUnlabeledJobsWithUnlabeledRunners" in [Metadata, Environment], default "false";
        /// Target number of jobs per replica.
        target: i64 = "targetWorkflowQueueLength" in [Metadata, Environment], default "1";
        /// Id of a GitHub App; replaces the token.
        application_id: Option<i64> = "applicationID" in [Metadata, Environment];
        /// Id of its installation.
        installation_id: Option<i64> = "installationID" in [Metadata, Environment];
        /// Its private key (PEM).
        app_key: Secret = "appKey" in [Authentication];
        /// Authentication modes; only `bearer`, which a token implies.
        auth_modes: Vec<String> = "authModes" | "authMode" in [Metadata, Authentication], since_2_21;
        /// The token of `bearer`; `personalAccessToken` if it is missing.
        bearer_token: Secret = "bearerToken" | "token" in [Authentication], since_2_21;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        if !trigger.behavior().checks_auth_modes {
            return self.check_credentials("personalAccessToken", false);
        }
        let mut own = trigger.clone();
        // The personal access token is that of the mode `bearer` if there is no other.
        if self.bearer_token.reveal().is_empty() {
            own.auth.insert("bearerToken".to_owned(), self.personal_access_token.reveal().to_owned());
        }
        let (auth, mut problems) = HttpAuth::with_problems(&own);
        // As in KEDA, the credentials are checked even if the authentication modes are wrong.
        let checked = self
            .check_credentials("personalAccessToken/bearerToken", auth.has("bearer"))
            .and_then(|()| auth.check_supported(&["bearer"]));
        problems.extend(checked.err().map(Into::into));
        if auth.has("bearer") {
            self.personal_access_token = auth.token;
        }
        if problems.is_empty() { Ok(()) } else { Err(InvalidParameters(problems).to_string().into()) }
    }

    /// Checks that there is a token (`token` names its parameters), or everything that a GitHub App needs.
    fn check_credentials(&mut self, token: &str, has_bearer: bool) -> Result<(), ParseError> {
        let key = !self.app_key.reveal().is_empty();
        if self.personal_access_token.reveal().is_empty() && !has_bearer && !key {
            return Err(format!("no {token} or appKey given").into());
        }
        // As in KEDA, 0 is no id.
        for id in [&mut self.application_id, &mut self.installation_id] {
            *id = id.filter(|id| *id != 0);
        }
        if key || self.application_id.is_some() || self.installation_id.is_some() {
            let missing = match (self.application_id, self.installation_id) {
                (None, _) => "no applicationID given",
                (_, None) => "no installationID given",
                _ if !key => "no appKey given",
                _ => return Ok(()),
            };
            return Err(missing.into());
        }
        Ok(())
    }
}

struct GitHub {
    parameters: Parameters,
    labels: Labels,
    app: Option<App>,
    within: Duration,
    web: Arc<SharedHttpClient>,
    /// Limits concurrent requests, because GitHub punishes many of them.
    requests: Semaphore,
    /// The last count, which stands while GitHub limits our rate.
    last_count: std::sync::Mutex<Option<usize>>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("github-runner-{}", parameters.owner);
    let spec = external(trigger, &name, whole(parameters.target));
    // A count equal to the target is active; counts are whole numbers.
    let activation = parameters.target as f64 - 1.0;
    let app = match (parameters.application_id, parameters.installation_id) {
        (Some(id), Some(installation)) => {
            Some(App { id, installation, key: parameters.app_key.clone(), token: Mutex::default() })
        }
        _ => None,
    };
    let labels = Labels::new(&parameters.labels, !parameters.no_default_labels, parameters.match_unlabeled);
    let (within, web) = (trigger.http_timeout, Arc::clone(&backends.web));
    let (requests, last_count) = (Semaphore::new(MAX_CONCURRENT_REQUESTS), std::sync::Mutex::default());
    let source = GitHub { parameters, labels, app, within, web, requests, last_count };
    SingleMetricScaler::build(spec, activation, source)
}

/// Whether GitHub limits our rate, or did so before and gets no request meanwhile.
fn is_limited(error: &ScalerError) -> bool {
    let is_paused = |error: &HttpError| matches!(error.cause, HttpErrorCause::RateLimited { .. });
    error.cause::<RateLimited>().is_some() || error.cause().is_some_and(is_paused)
}

impl GitHub {
    async fn get(&self, url: String, token: &Secret) -> Result<(u16, bytes::Bytes), ScalerError> {
        let call = HttpCall::get(url, self.within)
            .header("authorization", &format!("Bearer {}", token.reveal()))?
            .header("accept", "application/vnd.github+json")?
            .header("x-github-api-version", "2022-11-28")?;
        // Never closed.
        let _permit = self.requests.acquire().await;
        let response = self.web.send(call).await?;
        query::check_rate_limit(&response)?;
        Ok((response.status.as_u16(), response.body))
    }

    async fn token(&self) -> Result<Secret, ScalerError> {
        match &self.app {
            Some(app) => {
                app.token(&self.web, &self.parameters.api, self.within, self.web.now().as_second()).await
            }
            None => Ok(self.parameters.personal_access_token.clone()),
        }
    }

    async fn repositories(&self, token: &Secret) -> Result<Vec<String>, ScalerError> {
        let Parameters { api, owner, runner_scope, repos, .. } = &self.parameters;
        if !repos.is_empty() {
            return Ok(repos.clone());
        }
        let mut all = Vec::new();
        for page in 1..=MAX_PAGES {
            let url = query::repositories_url(api, runner_scope, owner, page);
            let (status, body) = self.get(url, token).await?;
            let some = query::repositories(status, &body)?;
            let last = some.len() < PAGE_SIZE;
            all.extend(some);
            if last {
                break;
            }
        }
        Ok(all)
    }

    /// The number of queued and running jobs of all repositories.
    async fn count(&self) -> Result<usize, ScalerError> {
        let token = self.token().await?;
        let repositories = self.repositories(&token).await?;
        let requested = repositories.into_iter().map(|repository| self.jobs(repository, token.clone()));
        let counts = stream::iter(requested).buffer_unordered(MAX_CONCURRENT_REQUESTS);
        let counts: Vec<Option<usize>> = counts.try_collect().await?;
        // One repository may have been deleted; if none is found, the owner or the token is wrong, and there is no count.
        if !counts.is_empty() && counts.iter().all(Option::is_none) {
            bail!("GitHub returned 404 for every repository of {}", self.parameters.owner);
        }
        Ok(counts.into_iter().flatten().sum())
    }

    /// The number of queued and running jobs of a repository; none if it does not exist.
    async fn jobs(&self, repository: String, token: Secret) -> Result<Option<usize>, ScalerError> {
        let (repository, token) = (&*repository, &token);
        let Parameters { api, owner, .. } = &self.parameters;
        let mut runs = Vec::new();
        for state in ["queued", "in_progress"] {
            for page in 1..=MAX_PAGES {
                let url = query::runs_url(api, owner, repository, state, page);
                let (status, body) = self.get(url, token).await?;
                let Some(some) = query::runs(status, &body)? else { return Ok(None) };
                runs.extend(some.open);
                if some.is_last {
                    break;
                }
            }
        }
        // A run may move from queued to in progress between the requests, so runs are deduplicated.
        runs.sort_unstable();
        runs.dedup();
        let mut count = 0;
        for some in runs.chunks(MAX_CONCURRENT_REQUESTS) {
            let requested = some.iter().map(async |run| {
                let (status, body) = self.get(query::jobs_url(api, owner, repository, *run), token).await?;
                query::jobs(status, &body, &self.labels)
            });
            count += try_join_all(requested).await?.into_iter().sum::<usize>();
        }
        Ok(Some(count))
    }
}

impl ValueSource for GitHub {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            match self.count().await {
                Ok(count) => {
                    *self.last_count.locked() = Some(count);
                    Ok(count as f64)
                }
                // Like KEDA: the last count stands until GitHub answers again.
                Err(error) if is_limited(&error) => {
                    (*self.last_count.locked()).map(|count| count as f64).ok_or(error)
                }
                Err(error) => Err(error),
            }
        })
    }
}
