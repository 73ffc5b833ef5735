//! URLs and responses of Azure DevOps, without IO.

use std::collections::HashSet;

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
    value: Option<Vec<AgentPool>>,
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
    if (200..=299).contains(&status) {
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
    // As in KEDA the list counts, not the number beside it.
    let pools: Option<AgentPools> = decoded(succeeded(response)?)?;
    match pools.and_then(|pools| pools.value).unwrap_or_default().as_slice() {
        [pool] => Ok(pool.id),
        [] => Err(scaler_error!("agent pool with name `{name}` not found")),
        all => Err(scaler_error!("found {} agent pool with name `{name}`", all.len())),
    }
}

/// The id of a pool, if it exists.
pub(super) fn check_pool(id: i64, response: DevOpsResponse<'_>) -> Result<i64, ScalerError> {
    let body =
        succeeded(response).map_err(|error| error.inside(format!("agent pool with id `{id}` not found")))?;
    decoded::<Option<serde_json::Map<String, serde_json::Value>>>(body)?;
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
    let agents = TriggerAgents::new(parameters);
    let count = jobs.value.iter().filter(open).filter(|job| agents.can_take(job)).count();
    i64::try_from(count).map_err(|_| scaler_error!("too many jobs"))
}

/// The agents of a trigger. Their demands are split once, because a response has many jobs.
struct TriggerAgents<'a> {
    parameters: &'a Parameters,
    demands: HashSet<String>,
}

impl<'a> TriggerAgents<'a> {
    fn new(parameters: &'a Parameters) -> Self {
        let demands = plain_demands(parameters.demands.split(','), parameters.case_insensitive_demands);
        Self { parameters, demands }
    }

    /// Whether they can take a job. Azure DevOps matches demands with a parent; without one we compare them.
    fn can_take(&self, job: &Job) -> bool {
        let Self { parameters, demands: own } = self;
        if !parameters.parent.is_empty() {
            return job.matched_agents.iter().flatten().any(|agent| agent.name == parameters.parent);
        }
        if parameters.demands.is_empty() {
            return true;
        }
        let wanted = job.demands.iter().flatten().map(String::as_str);
        let wanted = plain_demands(wanted, parameters.case_insensitive_demands);
        if parameters.require_all_demands {
            *own == wanted
        } else if parameters.require_all_and_ignore_others {
            own.is_subset(&wanted)
        } else {
            wanted.is_subset(own)
        }
    }
}

/// Demands as they are compared. Every job demands a version of the agent, which is left out.
fn plain_demands<'d>(demands: impl Iterator<Item = &'d str>, ignores_case: bool) -> HashSet<String> {
    let plain = |text: &str| {
        let text = text.trim();
        if ignores_case { text.to_lowercase() } else { text.to_owned() }
    };
    let known = |demand: &String| !demand.is_empty() && !demand.to_lowercase().starts_with("agent.version");
    demands.map(plain).filter(known).collect()
}
