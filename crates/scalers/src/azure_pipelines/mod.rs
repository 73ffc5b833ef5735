//! azure-pipelines: the jobs that wait for an agent of a pool of Azure Pipelines.

mod principal;
mod query;
#[cfg(test)]
mod tests;

use api::provider::Compat;
use tokio::sync::OnceCell;

use crate::prelude::*;
use query::DevOpsResponse;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing azure Pipelines metadata";

/// Maximum length of `demands`, in bytes.
const MAX_DEMANDS_BYTES: usize = 16 << 10;

/// The scaler type `azure-pipelines`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-pipelines",
    about: "How many jobs of Azure Pipelines wait for an agent of a pool.",
    display: "azurePipelinesScaler",
    parameters: Parameters::PARAMETERS,
    unit: |_| "jobs",
    build,
    samples: &[Sample::http(
        &[("organizationURL", "http://{}/org"), ("poolName", "p")],
        &[("personalAccessToken", sample::SECRET)],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-pipelines.
    pub struct Parameters of "error parsing azure Pipelines metadata: error parsing azure pipeline metadata" {
        /// URL of the organization, e.g. `https://dev.azure.com/contoso`.
        organization_url: String = "organizationURL" in [Environment, Authentication, Metadata], required;
        /// Personal access token.
        token: Secret = "personalAccessToken" in [Authentication, Environment];
        /// Name of an agent whose jobs count, also while it does not run.
        parent: String = "parent" in [Metadata];
        /// Demands that agents of this workload fulfil, separated by commas.
        demands: String = "demands" in [Metadata];
        /// The agent pool, by name; replaces `poolID`.
        pool_name: String = "poolName" in [Metadata];
        /// The agent pool, by id.
        pool_id: isize = "poolID" in [Metadata];
        /// Target number of jobs per replica.
        target: i64 = "targetPipelinesQueueLength" in [Metadata], default "1";
        /// The trigger is active above this number of jobs.
        activation: i64 = "activationTargetPipelinesQueueLength" in [Metadata], default "0";
        /// How many of the newest jobs are read; 250 if it is missing.
        jobs_to_fetch: Option<i64> = "jobsToFetch" in [Metadata];
        /// Reads all jobs that are not finished, instead of the newest.
        unfinished_only: bool = "fetchUnfinishedJobsOnly" in [Metadata];
        /// Whether jobs that an agent has already received count.
        scale_on_in_flight: bool = "scaleOnInFlight" in [Metadata], default "true", since_2_21;
        /// Counts jobs with exactly these demands only.
        require_all_demands: bool = "requireAllDemands" in [Metadata];
        /// Counts jobs with all of these demands, and perhaps others.
        require_all_and_ignore_others: bool = "requireAllDemandsAndIgnoreOthers" in [Metadata];
        /// Ignores the case of demands.
        case_insensitive_demands: bool = "caseInsensitiveDemandsProcessing" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        // The organization is what follows the last slash, or all of it.
        if self.organization_url.is_empty() || self.organization_url.ends_with('/') {
            return Err("failed to extract organization name from organizationURL".into());
        }
        if self.demands.len() > MAX_DEMANDS_BYTES {
            return Err(format!("demands has more than {MAX_DEMANDS_BYTES} bytes").into());
        }
        Ok(())
    }

    /// Whether requests carry a token. KEDA takes a variable that does not exist for an empty one.
    fn has_token(&self, trigger: &Trigger, compat: Compat) -> bool {
        let variable = trigger.metadata.get("personalAccessTokenFromEnv");
        let is_named = variable.is_some_and(|name| !name.is_empty());
        !self.token.reveal().is_empty() || (is_named && compat.is_strict())
    }

    fn check_access(&self, trigger: &Trigger, compat: Compat) -> Result<(), ParseError> {
        if self.has_token(trigger, compat) {
            return Ok(());
        }
        match (&*trigger.identity.provider, trigger.behavior().pipelines_have_service_principal) {
            ("azure-workload", _) => Ok(()),
            ("" | "none", true) if principal::is_given(trigger) => principal::check(trigger),
            ("" | "none", true) => {
                Err("no personalAccessToken, Azure service principal, or PodIdentity provider configured"
                    .into())
            }
            ("" | "none", false) => {
                Err("no personalAccessToken given or PodIdentity provider configured".into())
            }
            (other, _) => Err(format!("pod identity {other} not supported for azure pipelines").into()),
        }
    }

    fn check_pool(&self) -> Result<(), ParseError> {
        if self.pool_name.is_empty() && self.pool_id == 0 {
            return Err("no poolName or poolID given".into());
        }
        Ok(())
    }
}

/// Refuses parameters that exclude each other, also if they are not valid.
fn check_jobs(trigger: &Trigger) -> Result<(), ParseError> {
    let is_given = |key: &str| trigger.metadata.get(key).is_some_and(|text| !text.is_empty());
    for other in ["fetchUnfinishedJobsOnly", "parent"] {
        if is_given("jobsToFetch") && is_given(other) {
            return Err(format!("cannot specify both jobsToFetch and {other} at the same time").into());
        }
    }
    Ok(())
}

/// A pool of agents. The metric has the id of the pool in its name, so the pool is looked up before the first spec.
struct Pipelines {
    trigger: Trigger,
    /// Whether jobs that an agent has received count.
    in_flight: bool,
    has_token: bool,
    source: HttpSource<Parameters>,
    pool: OnceCell<i64>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let inside = |error: ParseError| ScalerError::new(error).inside(PREFIX);
    check_jobs(trigger).map_err(inside)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check_access(trigger, backends.compat).map_err(inside)?;
    parameters.check_pool().map_err(inside)?;
    // KEDA 2.20 counts only jobs that no agent has received.
    let in_flight = parameters.scale_on_in_flight && trigger.behavior().pipelines_count_in_flight;
    let has_token = parameters.has_token(trigger, backends.compat);
    let source = HttpSource::new(parameters, trigger, backends);
    Ok(Arc::new(Pipelines { trigger: trigger.clone(), in_flight, has_token, source, pool: OnceCell::new() }))
}

impl Pipelines {
    /// Reads a URL of the organization.
    async fn get(&self, path: &str) -> Result<(u16, bytes::Bytes, String), ScalerError> {
        let Parameters { organization_url, token, .. } = &self.source.parameters;
        if !self.has_token {
            bail!(
                "logging in to Azure DevOps needs a personalAccessToken: Azure identities are not possible yet"
            );
        }
        let url = format!("{organization_url}{path}");
        let call = HttpCall::get(url.clone(), self.source.within).basic("", token);
        let (status, body) = send(&self.source.web, call).await?;
        Ok((status, body, crate::urls::shown(&url)))
    }

    /// The id of the pool.
    async fn pool(&self) -> Result<i64, ScalerError> {
        let Parameters { pool_name, pool_id, .. } = &self.source.parameters;
        let find_pool = || async {
            let by_name = !pool_name.is_empty();
            let path =
                if by_name { query::pool_by_name(pool_name) } else { query::pool_by_id(*pool_id as i64) };
            let (status, body, url) = self.get(&path).await?;
            let response = DevOpsResponse { url: &url, status, body: &body };
            if by_name {
                query::id_of_pool(pool_name, response)
            } else {
                query::check_pool(*pool_id as i64, response)
            }
        };
        self.pool.get_or_try_init(find_pool).await.copied()
    }
}

impl Scaler for Pipelines {
    fn specs(&self) -> ScalerFuture<'_, Vec<MetricSpec>> {
        Box::pin(async {
            let pool = self.pool().await.map_err(|error| error.inside(PREFIX))?;
            let target = whole(self.source.parameters.target);
            Ok(vec![external(&self.trigger, &format!("azure-pipelines-{pool}"), target)])
        })
    }

    fn read<'a>(&'a self, metric: &'a str) -> ScalerFuture<'a, Reading> {
        Box::pin(async move {
            let parameters = &self.source.parameters;
            let path = query::jobs(self.pool().await?, parameters);
            let (status, body, url) = self.get(&path).await?;
            let count = query::waiting(
                parameters,
                self.in_flight,
                DevOpsResponse { url: &url, status, body: &body },
            )?;
            Ok(Reading::one(metric, whole(count), count > parameters.activation))
        })
    }
}
