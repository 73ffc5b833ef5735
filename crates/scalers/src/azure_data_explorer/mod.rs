//! azure-data-explorer: the number returned by a query of Azure Data Explorer.

mod query;
#[cfg(test)]
mod tests;

use crate::Owner;
use crate::azure_client::{AzureClient, AzurePrincipal};
use crate::azure_clouds::check_cloud_of;
use crate::prelude::*;
use crate::urls::is_url;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "failed to parse azure data explorer metadata";

/// The scaler type `azure-data-explorer`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-data-explorer",
    about: "The number returned by a Kusto query of Azure Data Explorer.",
    display: "azureDataExplorerScaler",
    parameters: Parameters::PARAMETERS,
    build,
    // The token endpoint has a fixed address.
    samples: &[Sample::fixed(
        &[
            ("databaseName", "d"),
            ("endpoint", "https://{}"),
            ("query", "T | count"),
            ("threshold", "5"),
            ("tenantId", "t"),
            ("clientId", "c"),
        ],
        sample::CLIENT_SECRET,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-data-explorer.
    pub struct Parameters of "failed to parse azure data explorer metadata: error parsing azure data explorer metadata" {
        /// The database.
        database: String = "databaseName" in [Metadata], required;
        /// URL of the cluster.
        endpoint: String = "endpoint" in [Metadata], required;
        /// The query, in Kusto.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationThreshold" in [Metadata], default "0";
        /// The tenant of the service principal.
        tenant: String = "tenantId" in [Metadata, Authentication, Environment];
        /// Client id of the service principal.
        client_id: String = "clientId" in [Metadata, Authentication, Environment];
        /// Its secret.
        client_secret: Secret = "clientSecret" in [Authentication];
        /// The cloud.
        cloud: String = "cloud" in [Metadata];
        /// Token endpoint of a private cloud.
        active_directory_endpoint: String = "activeDirectoryEndpoint" in [Metadata];
    }
}

impl Parameters {
    fn check_access(&self, trigger: &Trigger) -> Result<(), ParseError> {
        check_cloud_of(trigger, "activeDirectoryEndpoint")?;
        match &*trigger.identity.provider {
            "" | "none" => {}
            "azure-workload" => return Ok(()),
            _ => return Err("error parsing auth params".into()),
        }
        if self.tenant.is_empty() {
            return Err("missing required parameter tenantId".into());
        }
        if self.client_id.is_empty() {
            return Err("missing required parameter clientId".into());
        }
        if self.client_secret.reveal().is_empty() {
            return Err(
                "error parsing metadata. Details: clientSecret was not found in metadata. Check your \
                        ScaledObject configuration"
                    .into(),
            );
        }
        Ok(())
    }
}

/// The URL in the endpoint, which is read as by KEDA's client: it is a connection string, whose other keys are unknown here, with a
/// scheme in any case. Tokens are sent over TLS only.
fn cluster_url(endpoint: &str) -> Result<String, ScalerError> {
    const KIND: &str = "Op(OpServConn): Kind(KClientArgs)";
    let (url, others) = endpoint.split_once(';').unwrap_or((endpoint, ""));
    if url.contains('=') || others.split(';').any(|key| !key.trim().is_empty()) {
        bail!("endpoint must be a URL without the other keys of a connection string");
    }
    if !is_url(url) {
        let quoted = api::gotext::quote(url);
        bail!("{KIND}: could not parse the endpoint({url}): parse {quoted}: it is no URL");
    }
    match url.split_once(':') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => Ok(format!("https:{rest}")),
        _ => bail!(
            "{KIND}: cannot use token provider with http endpoint, as it would send the token in clear text"
        ),
    }
}

struct DataExplorer {
    parameters: Parameters,
    owner: Owner,
    client: AzureClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check_access(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    let url = cluster_url(&parameters.endpoint).map_err(|error| {
        error.inside("failed to create azure data explorer client: failed to create kusto client")
    })?;
    let name = format!("azure-data-explorer-{}", parameters.database);
    let spec = external(trigger, &name, milli(parameters.threshold));
    let principal = AzurePrincipal {
        client: &parameters.client_id,
        tenant: &parameters.tenant,
        secret: &parameters.client_secret,
        cloud: &parameters.cloud,
        authority: &parameters.active_directory_endpoint,
    };
    let is_workload = trigger.identity.provider == "azure-workload";
    let endpoint = query::endpoint(&url, is_workload);
    let client = AzureClient::at(endpoint, &principal, trigger, backends);
    let (activation, owner) = (parameters.activation, trigger.owner.clone());
    SingleMetricScaler::build(spec, activation, DataExplorer { parameters, owner, client })
}

impl DataExplorer {
    async fn newest(&self) -> Result<f64, ScalerError> {
        let Parameters { database, query, .. } = &self.parameters;
        let (status, body) = self.client.post(query::PATH, query::request_body(database, query)).await?;
        query::value(status, &body)
    }
}

impl ValueSource for DataExplorer {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            self.newest().await.map_err(|error| {
                let Owner { name, namespace, .. } = &self.owner;
                error.inside(format!(
                    "failed to get metrics for scaled object {name} in namespace {namespace}"
                ))
            })
        })
    }
}
