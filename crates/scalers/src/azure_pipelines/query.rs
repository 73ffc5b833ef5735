//! URLs and responses of Azure DevOps, without IO.

use serde::Deserialize;

use super::Parameters;
use crate::responses::hidden;
use crate::web::escaped;
use crate::{ScalerError, tree};

/// Default number of jobs that are read.
const DEFAULT_JOBS: i64 = 250;

/// Pools that have a name.
#[derive(Deserialize)]
struct AgentPools {
    count: i64,
    #[serde(default)]
    value: Vec<AgentPool>,
}

#[derive(Deserialize)]
struct AgentPool {
    id: i64,
}

#[derive(Deserialize)]
struct Jobs {
    value: Vec<Job>,
}

/// A job of a pool, finished or not.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    /// How it ended; missing while it waits or runs.
    result: Option<String>,
    /// When an agent took it; missing while it waits.
    receive_time: Option<String>,
    #[serde(default)]
    demands: Option<Vec<String>>,
    #[serde(default)]
    matched_agents: Option<Vec<Agent>>,
}

#[derive(Deserialize)]
struct Agent {
    name: String,
}

/// The path of the pools with a name.
pub(super) fn pool_by_name(name: &str) -> String {
    format!("/_apis/distributedtask/pools?poolName={}", escaped(name))
}

/// The path of the pool with an id.
pub(super) fn pool_by_id(id: i64) -> String {
    format!("/_apis/distributedtask/pools?poolID={id}")
}

/// The path of the jobs of a pool: all unfinished ones if the trigger has a parent.
pub(super) fn jobs(pool: i64, parameters: &Parameters) -> String {
    let path = format!("/_apis/distributedtask/pools/{pool}/jobrequests");
    if parameters.unfinished_only || !parameters.parent.is_empty() {
        return format!("{path}?completedRequestCount=0");
    }
    format!("{path}?$top={}", parameters.jobs_to_fetch.unwrap_or(DEFAULT_JOBS))
}

/// A response.
#[derive(Clone, Copy)]
pub(super) struct DevOpsResponse<'a> {
    pub(super) url: &'a str,
    pub(super) status: u16,
    pub(super) body: &'a [u8],
}

/// The body of a successful response.
fn succeeded(response: DevOpsResponse<'_>) -> Result<&[u8], ScalerError> {
    let DevOpsResponse { url, status, body } = response;
    if status == 200 {
        return Ok(body);
    }
    let body = hidden(body);
    Err(scaler_error!(
        "the Azure DevOps REST API returned error. urlString: {url} status: {status} response: {body}"
    ))
}

fn decoded<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ScalerError> {
    tree::check_values(body).map_err(|error| scaler_error!("{error}"))?;
    serde_json::from_slice(body)
        .map_err(|_| scaler_error!("the response of Azure DevOps cannot be read: {}", hidden(body)))
}

/// The id of the only pool with a name.
pub(super) fn id_of_pool(name: &str, response: DevOpsResponse<'_>) -> Result<i64, ScalerError> {
    let pools: AgentPools = decoded(succeeded(response)?)?;
    match (pools.count, pools.value.first()) {
        (1, Some(pool)) => Ok(pool.id),
        (0, _) | (1, None) => Err(scaler_error!("agent pool with name `{name}` not found")),
        (count, _) => Err(scaler_error!("found {count} agent pool with name `{name}`")),
    }
}

/// The id of a pool, if it exists.
pub(super) fn check_pool(id: i64, response: DevOpsResponse<'_>) -> Result<i64, ScalerError> {
    let body =
        succeeded(response).map_err(|error| error.inside(format!("agent pool with id `{id}` not found")))?;
    decoded::<serde_json::Map<String, serde_json::Value>>(body)?;
    Ok(id)
}

/// How many jobs wait, or also run, that agents of the trigger can take.
pub(super) fn waiting(
    parameters: &Parameters,
    in_flight: bool,
    response: DevOpsResponse<'_>,
) -> Result<i64, ScalerError> {
    let jobs: Jobs = decoded(succeeded(response)?)?;
    let open = |job: &&Job| job.result.is_none() && (in_flight || job.receive_time.is_none());
    let count = jobs.value.iter().filter(open).filter(|job| is_ours(job, parameters)).count();
    i64::try_from(count).map_err(|_| scaler_error!("too many jobs"))
}

/// Whether agents of the trigger can take a job. Azure DevOps matches demands with a parent; without one we compare them.
fn is_ours(job: &Job, parameters: &Parameters) -> bool {
    if !parameters.parent.is_empty() {
        let agents = job.matched_agents.iter().flatten();
        return agents.into_iter().any(|agent| agent.name == parameters.parent);
    }
    if parameters.demands.is_empty() {
        return true;
    }
    let plain = |text: &str| {
        let text = text.trim();
        if parameters.case_insensitive_demands { text.to_lowercase() } else { text.to_owned() }
    };
    // Every job demands a version of the agent.
    let known = |demand: &String| !demand.is_empty() && !demand.to_lowercase().starts_with("agent.version");
    let own: Vec<String> = parameters.demands.split(',').map(plain).filter(known).collect();
    let wanted = job.demands.iter().flatten();
    let wanted: Vec<String> = wanted.map(|demand| plain(demand)).filter(known).collect();
    let all_own = own.iter().all(|demand| wanted.contains(demand));
    let all_demanded = wanted.iter().all(|demand| own.contains(demand));
    if parameters.require_all_demands {
        all_own && all_demanded
    } else if parameters.require_all_and_ignore_others {
        all_own
    } else {
        all_demanded
    }
}
