//! azure-log-analytics: the number returned by a query of Azure Log Analytics.

mod query;
#[cfg(test)]
mod tests;

use crate::Owner;
use crate::azure_client::{AzureClient, AzurePrincipal};
use crate::azure_clouds::{check_sdk_cloud, check_tenant};
use crate::prelude::*;

/// Log Analytics in Azure's clouds.
const ENDPOINTS: [&str; 3] =
    ["https://api.loganalytics.io", "https://api.loganalytics.us", "https://api.loganalytics.azure.cn"];

/// The scaler type `azure-log-analytics`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-log-analytics",
    about: "The number returned by a Kusto query of an Azure Log Analytics workspace.",
    display: "azureLogAnalyticsScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::fixed(
        &[("workspaceId", "w"), ("query", "q"), ("threshold", "5"), ("tenantId", "t"), ("clientId", "c")],
        sample::CLIENT_SECRET,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-log-analytics.
    pub struct Parameters of "error parsing azure loganalytics metadata" {
        /// The tenant of the service principal.
        tenant: String = "tenantId" in [Authentication, Metadata, Environment];
        /// Client id of the service principal.
        client_id: String = "clientId" in [Authentication, Metadata, Environment];
        /// Its secret.
        client_secret: Secret = "clientSecret" in [Authentication, Metadata, Environment];
        /// The workspace.
        workspace: String = "workspaceId" in [Authentication, Metadata, Environment], required;
        /// The query, in Kusto.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationThreshold" in [Metadata], default "0";
        /// Resource URL of Log Analytics in a private cloud.
        resource_url: String = "logAnalyticsResourceURL" in [Metadata];
        /// The cloud.
        cloud: String = "cloud" in [Metadata];
        /// Token endpoint of a private cloud.
        active_directory_endpoint: String = "activeDirectoryEndpoint" in [Metadata];
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata];
        /// Timeout of requests; the default of all HTTP requests if it is missing.
        timeout: Option<Duration> = "timeout" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        let identity = &*trigger.identity.provider;
        if !["", "none", "azure-workload"].contains(&identity) {
            let why = format!("Log Analytics Scaler doesn't support pod identity {identity}");
            return Err(format!("error parsing metadata. Details: {why}").into());
        }
        check_sdk_cloud(&self.cloud, "logAnalyticsResourceURL", &self.resource_url)?;
        if identity == "azure-workload" {
            return Ok(());
        }
        // KEDA names the last one that is missing.
        let needed = [
            ("clientSecret", self.client_secret.reveal()),
            ("clientId", &*self.client_id),
            ("tenantId", &*self.tenant),
        ];
        match needed.into_iter().find(|(_, value)| value.is_empty()) {
            Some((name, _)) => Err(not_found(name).into()),
            None => Ok(()),
        }
    }
}

/// The error of a parameter that is in none of its sources.
fn not_found(name: &str) -> String {
    format!(
        "error parsing metadata. Details: {name} was not found in metadata. Check your ScaledObject configuration"
    )
}

struct LogAnalytics {
    parameters: Parameters,
    owner: Owner,
    client: AzureClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| {
        let (object, namespace) = (&trigger.owner.name, &trigger.owner.namespace);
        error.inside(format!(
            "failed to initialize Log Analytics scaler. Scaled object: {object}. Namespace: {namespace}. Inner Error"
        ))
    })?;
    if trigger.identity.provider != "azure-workload" {
        check_tenant(&parameters.tenant).map_err(ScalerError::new)?;
    }
    let name = format!("azure-log-analytics-{}", parameters.workspace);
    let spec = external(trigger, &name, milli(parameters.threshold));
    let principal = AzurePrincipal {
        client: &parameters.client_id,
        tenant: &parameters.tenant,
        secret: &parameters.client_secret,
        cloud: &parameters.cloud,
        authority: &parameters.active_directory_endpoint,
    };
    let within = parameters.timeout.filter(|time| !time.is_zero()).unwrap_or(trigger.http_timeout);
    let client = AzureClient::new(&principal, ENDPOINTS, &parameters.resource_url, trigger, backends)
        .timeout(within)
        .unsafe_ssl(parameters.unsafe_ssl);
    let (activation, owner) = (parameters.activation, trigger.owner.clone());
    SingleMetricScaler::build(spec, activation, LogAnalytics { parameters, owner, client })
}

impl LogAnalytics {
    async fn newest(&self) -> Result<f64, ScalerError> {
        let Parameters { workspace, query, .. } = &self.parameters;
        let (status, body) = self.client.post(&query::path(workspace), query::request_body(query)).await?;
        query::value(status, &body)
    }
}

impl ValueSource for LogAnalytics {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            self.newest().await.map_err(|error| {
                let Owner { name, namespace, .. } = &self.owner;
                error.inside(format!(
                    "failed to get metrics. Scaled object: {name}. Namespace: {namespace}. Inner Error"
                ))
            })
        })
    }
}
