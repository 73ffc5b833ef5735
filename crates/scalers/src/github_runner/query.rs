//! Addresses of GitHub's API, and what it answers.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Error;
use crate::answers::{excerpt, json, kind};
use crate::web::path_escaped;

/// So many items come at once.
pub(super) const PAGE: usize = 100;

/// Where the repositories of an owner are listed.
pub(super) fn repositories_url(api: &str, scope: &str, owner: &str, page: usize) -> String {
    let whose = if scope == "repo" { "users" } else { "orgs" };
    format!("{}/{whose}/{}/repos?per_page={PAGE}&page={page}", base(api), path_escaped(owner))
}

/// Where the runs of a repository are listed that have a status.
pub(super) fn runs_url(api: &str, owner: &str, repository: &str, status: &str, page: usize) -> String {
    let (owner, repository) = (path_escaped(owner), path_escaped(repository));
    format!(
        "{}/repos/{owner}/{repository}/actions/runs?status={status}&per_page={PAGE}&page={page}",
        base(api)
    )
}

/// Where the jobs of a run are listed.
pub(super) fn jobs_url(api: &str, owner: &str, repository: &str, run: u64) -> String {
    let (owner, repository) = (path_escaped(owner), path_escaped(repository));
    format!("{}/repos/{owner}/{repository}/actions/runs/{run}/jobs?per_page={PAGE}", base(api))
}

/// Where an application asks for a token.
pub(super) fn token_url(api: &str, installation: i64) -> String {
    format!("{}/app/installations/{installation}/access_tokens", base(api))
}

fn base(api: &str) -> &str {
    api.trim_end_matches('/')
}

/// Names of repositories.
pub(super) fn repositories(status: u16, body: &[u8]) -> Result<Vec<String>, Error> {
    let answer = successful(status, body)?;
    let Some(list) = answer.as_array() else {
        return Err(Error::new(format!(
            "GitHub answered {} instead of a list of repositories",
            kind(Some(&answer))
        )));
    };
    list.iter().map(|one| text(one, "name").map(str::to_owned)).collect()
}

/// Ids of runs.
pub(super) fn runs(status: u16, body: &[u8]) -> Result<Vec<u64>, Error> {
    let answer = successful(status, body)?;
    let id = |run: &Value| {
        let found = run.get("id");
        found
            .and_then(Value::as_u64)
            .ok_or_else(|| Error::new(format!("GitHub answered {} as id", kind(found))))
    };
    list(&answer, "workflow_runs")?.iter().map(id).collect()
}

/// What runners of a trigger can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Labels {
    known: BTreeSet<String>,
    /// Whether jobs without labels are for runners without labels.
    bare: bool,
}

impl Labels {
    /// Labels of the trigger, and those that every runner has unless this is said otherwise.
    pub(super) fn new(labels: &[String], defaults: bool, match_unlabelled: bool) -> Self {
        let own = labels.iter().filter(|label| !label.is_empty()).map(|label| label.to_lowercase());
        let mut known: BTreeSet<String> = own.collect();
        let bare = match_unlabelled && known.is_empty();
        if defaults {
            known.extend(["self-hosted", "linux", "x64"].map(str::to_owned));
        }
        Self { known, bare }
    }

    /// Whether a job is for these runners.
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

/// How many jobs of a run wait or are being done by such runners.
pub(super) fn jobs(status: u16, body: &[u8], labels: &Labels) -> Result<usize, Error> {
    let answer = successful(status, body)?;
    let open = |job: &&Value| ["queued", "in_progress"].contains(&text(job, "status").unwrap_or_default());
    Ok(list(&answer, "jobs")?.iter().filter(open).filter(|job| labels.take(job)).count())
}

/// The token of an installation, which errors do not repeat.
pub(super) fn token(status: u16, body: &[u8]) -> Result<String, Error> {
    let answer = successful(status, body)?;
    text(&answer, "token").map(str::to_owned).map_err(|_| Error::new("GitHub answered without a token"))
}

fn text<'a>(of: &'a Value, key: &str) -> Result<&'a str, Error> {
    let found = of.get(key);
    found
        .and_then(Value::as_str)
        .ok_or_else(|| Error::new(format!("GitHub answered {} as {key}", kind(found))))
}

fn list<'a>(of: &'a Value, key: &str) -> Result<&'a [Value], Error> {
    let found = of.get(key);
    let list = found.and_then(Value::as_array).map(Vec::as_slice);
    list.ok_or_else(|| Error::new(format!("GitHub answered {} at {key} instead of a list", kind(found))))
}

fn successful(status: u16, body: &[u8]) -> Result<Value, Error> {
    if (200..300).contains(&status) {
        return json(body);
    }
    let said = json(body).ok();
    let said = said.as_ref().and_then(|answer| answer.get("message")).and_then(Value::as_str);
    let said = said.map_or_else(|| excerpt(body), |said| excerpt(said.as_bytes()));
    Err(Error::new(format!("the GitHub REST API returned {status}: {said}")))
}
