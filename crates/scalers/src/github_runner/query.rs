//! URLs of GitHub's API, and its responses.

use std::collections::BTreeSet;

use serde_json::Value;
use sources::http::HttpResponse;

use crate::ScalerError;
use crate::responses::{error_field, json, kind};
use crate::web::path_escaped;

/// Number of items per page.
pub(super) const PAGE_SIZE: usize = 100;

/// The URL that lists the repositories of an owner.
pub(super) fn repositories_url(api: &str, scope: &str, owner: &str, page: usize) -> String {
    let whose = if scope == "repo" { "users" } else { "orgs" };
    format!("{}/{whose}/{}/repos?per_page={PAGE_SIZE}&page={page}", base(api), path_escaped(owner))
}

/// The URL that lists the runs of a repository with a status.
pub(super) fn runs_url(api: &str, owner: &str, repository: &str, status: &str, page: usize) -> String {
    let (owner, repository) = (path_escaped(owner), path_escaped(repository));
    format!(
        "{}/repos/{owner}/{repository}/actions/runs?status={status}&per_page={PAGE_SIZE}&page={page}",
        base(api)
    )
}

/// The URL that lists the jobs of a run.
pub(super) fn jobs_url(api: &str, owner: &str, repository: &str, run: u64) -> String {
    let (owner, repository) = (path_escaped(owner), path_escaped(repository));
    format!("{}/repos/{owner}/{repository}/actions/runs/{run}/jobs?per_page={PAGE_SIZE}", base(api))
}

/// The URL that issues tokens for an app.
pub(super) fn token_url(api: &str, installation: i64) -> String {
    format!("{}/app/installations/{installation}/access_tokens", base(api))
}

fn base(api: &str) -> &str {
    api.trim_end_matches('/')
}

/// Names of repositories.
pub(super) fn repositories(status: u16, body: &[u8]) -> Result<Vec<String>, ScalerError> {
    let answer = successful(status, body)?;
    let Some(list) = answer.as_array() else {
        bail!("GitHub answered {} instead of a list of repositories", kind(Some(&answer)));
    };
    list.iter().map(|one| text(one, "name").map(str::to_owned)).collect()
}

/// A page of runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RunPage {
    /// Ids of the runs that are queued or in progress. GitHub also lists runs that ended under the state that they had before.
    pub(super) open: Vec<u64>,
    /// Whether no page follows.
    pub(super) is_last: bool,
}

/// The runs of a page; none if the repository does not exist, or not for this token.
pub(super) fn runs(status: u16, body: &[u8]) -> Result<Option<RunPage>, ScalerError> {
    if status == 404 {
        return Ok(None);
    }
    let answer = successful(status, body)?;
    let id = |run: &Value| {
        let found = run.get("id");
        found.and_then(Value::as_u64).ok_or_else(|| scaler_error!("GitHub answered {} as id", kind(found)))
    };
    let runs = list(&answer, "workflow_runs")?;
    let open = runs.iter().filter(|run| run.get("status").is_none_or(is_open)).map(id);
    Ok(Some(RunPage { open: open.collect::<Result<_, _>>()?, is_last: runs.len() < PAGE_SIZE }))
}

/// The labels of a trigger's runners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Labels {
    known: BTreeSet<String>,
    /// Whether these runners can run jobs without labels.
    bare: bool,
}

impl Labels {
    /// The labels of the trigger, and the default labels unless they are disabled.
    pub(super) fn new(labels: &[String], defaults: bool, match_unlabelled: bool) -> Self {
        let own = labels.iter().filter(|label| !label.is_empty()).map(|label| label.to_lowercase());
        let mut known: BTreeSet<String> = own.collect();
        // A job without labels demands nothing, so any runner can run it, unless the trigger leaves it to runners without labels.
        let bare = !match_unlabelled || known.is_empty();
        if defaults {
            known.extend(["self-hosted", "linux", "x64"].map(str::to_owned));
        }
        Self { known, bare }
    }

    /// Whether these runners can run a job.
    fn take(&self, job: &Value) -> bool {
        let labels =
            job.get("labels").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let mut labels = labels.peekable();
        match labels.peek() {
            None => self.bare,
            Some(_) => labels.all(|label| self.known.contains(&label.to_lowercase())),
        }
    }
}

/// The number of queued and running jobs of a run that these runners can run.
pub(super) fn jobs(status: u16, body: &[u8], labels: &Labels) -> Result<usize, ScalerError> {
    // A run that was deleted since has no jobs.
    if status == 404 {
        return Ok(0);
    }
    let answer = successful(status, body)?;
    let open = list(&answer, "jobs")?.iter().filter(|job| job.get("status").is_some_and(is_open));
    Ok(open.filter(|job| labels.take(job)).count())
}

/// Whether a run or a job with this status waits or runs.
fn is_open(status: &Value) -> bool {
    ["queued", "in_progress"].iter().any(|open| status == open)
}

/// The token of an installation; errors do not quote the body, because it may contain the token.
pub(super) fn token(status: u16, body: &[u8]) -> Result<String, ScalerError> {
    let answer = successful(status, body)?;
    text(&answer, "token").map(str::to_owned).map_err(|_| scaler_error!("GitHub answered without a token"))
}

/// GitHub refuses requests because of its rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rate limit of GitHub is exceeded")]
pub(super) struct RateLimited;

/// An error caused by [`RateLimited`] if a response says that nothing remains of the rate limit, or how long to wait.
pub(super) fn check_rate_limit(response: &HttpResponse) -> Result<(), ScalerError> {
    let HttpResponse { status, headers, body } = response;
    let is_spent = headers.get("x-ratelimit-remaining").is_some_and(|remaining| remaining.as_bytes() == b"0");
    match status.as_u16() {
        429 => {}
        403 if is_spent || headers.contains_key("retry-after") => {}
        _ => return Ok(()),
    }
    Err(ScalerError::caused_by(refused(status.as_u16(), body), RateLimited))
}

fn text<'a>(of: &'a Value, key: &str) -> Result<&'a str, ScalerError> {
    let found = of.get(key);
    found.and_then(Value::as_str).ok_or_else(|| scaler_error!("GitHub answered {} as {key}", kind(found)))
}

fn list<'a>(of: &'a Value, key: &str) -> Result<&'a [Value], ScalerError> {
    let found = of.get(key);
    let list = found.and_then(Value::as_array).map(Vec::as_slice);
    list.ok_or_else(|| scaler_error!("GitHub answered {} at {key} instead of a list", kind(found)))
}

fn successful(status: u16, body: &[u8]) -> Result<Value, ScalerError> {
    if (200..300).contains(&status) {
        return json(body);
    }
    Err(ScalerError::new(refused(status, body)))
}

fn refused(status: u16, body: &[u8]) -> String {
    format!("the GitHub REST API returned {status}: {}", error_field(body, "/message"))
}
