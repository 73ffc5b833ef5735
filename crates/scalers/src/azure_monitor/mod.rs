//! azure-monitor: the value of a metric of Azure Monitor.

mod query;
#[cfg(test)]
mod tests;

use crate::azure_client::{AzureClient, AzurePrincipal};
use crate::azure_clouds::{check_principal, check_sdk_cloud, check_tenant};
use crate::prelude::*;

/// Azure Resource Manager in Azure's clouds.
const ENDPOINTS: [&str; 3] = [
    "https://management.azure.com",
    "https://management.usgovcloudapi.net",
    "https://management.chinacloudapi.cn",
];

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing azure monitor metadata";

/// Aggregations of Azure Monitor.
const AGGREGATIONS: [&str; 6] = ["None", "Average", "Count", "Minimum", "Maximum", "Total"];

/// The scaler type `azure-monitor`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-monitor",
    about: "The value of a metric of Azure Monitor.",
    display: "azureMonitorScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::fixed(
        &[
            ("resourceURI", "a/b/c"),
            ("tenantId", "t"),
            ("subscriptionId", "s"),
            ("resourceGroupName", "g"),
            ("metricName", "m"),
            ("metricAggregationType", "Average"),
            ("targetValue", "5"),
        ],
        sample::AZURE_PRINCIPAL,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-monitor.
    pub struct Parameters of "error parsing azure monitor metadata: error parsing azure monitor metadata" {
        /// Target value per replica.
        target: f64 = "targetValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationTargetValue" in [Metadata], default "0";
        /// The resource, as `namespace/resource_type/resource_name`.
        resource_uri: String = "resourceURI" in [Metadata], required;
        /// The tenant.
        tenant: String = "tenantId" in [Metadata], required;
        /// The subscription.
        subscription: String = "subscriptionId" in [Metadata], required;
        /// The resource group.
        resource_group: String = "resourceGroupName" in [Metadata], required;
        /// The metric.
        metric_name: String = "metricName" in [Metadata], required;
        /// Namespace of the metric.
        metric_namespace: String = "metricNamespace" in [Metadata];
        /// Filter of its dimensions.
        metric_filter: String = "metricFilter" in [Metadata];
        /// How far back values count, as `hh:mm:ss`; 5 minutes if it is missing.
        aggregation_interval: String = "metricAggregationInterval" in [Metadata];
        /// How values are aggregated: `Average`, `Total`, `Maximum`, `Minimum`, `Count` or `None`.
        aggregation_type: String = "metricAggregationType" in [Metadata], required;
        /// Interval of the requested points, e.g. `PT1M`.
        metric_interval: String = "metricInterval" in [Metadata], since_2_21;
        /// Client id of the service principal.
        client_id: String = "activeDirectoryClientId" in [Metadata, Environment, Authentication];
        /// Its password.
        client_password: Secret = "activeDirectoryClientPassword" in [Metadata, Environment, Authentication];
        /// The cloud.
        cloud: String = "cloud" in [Metadata];
        /// Endpoint of Azure Resource Manager in a private cloud.
        resource_manager_endpoint: String = "azureResourceManagerEndpoint" in [Metadata];
        /// Token endpoint of a private cloud.
        active_directory_endpoint: String = "activeDirectoryEndpoint" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.resource_uri.split('/').count() != 3 {
            return Err(
                "resourceURI not in the correct format. Should be namespace/resource_type/resource_name"
                    .into(),
            );
        }
        match &*self.aggregation_type {
            "" => return Err("no metricAggregationType given".into()),
            given if AGGREGATIONS.contains(&given) => {}
            _ => return Err("invalid metricAggregationType given".into()),
        }
        // Parts that are no numbers are an error of the query, as in KEDA.
        if !self.aggregation_interval.is_empty() && self.aggregation_interval.split(':').count() != 3 {
            return Err("metricAggregationInterval not in the correct format. Should be hh:mm:ss".into());
        }
        let resource_manager = &self.resource_manager_endpoint;
        // KEDA names the parameter of another scaler; users need the right one.
        check_sdk_cloud(&self.cloud, "azureResourceManagerEndpoint", resource_manager)
    }

    fn check_access(&self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.target == 0.0 && !trigger.feeds_formula {
            return Err("no targetValue given".into());
        }
        check_principal(trigger, &self.client_id, &self.client_password)
    }
}

struct Monitor {
    parameters: Parameters,
    client: AzureClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check_access(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    if trigger.identity.provider != "azure-workload" {
        check_tenant(&parameters.tenant).map_err(ScalerError::new)?;
    }
    let name = format!("azure-monitor-{}", parameters.metric_name);
    let spec = external(trigger, &name, milli(parameters.target));
    let principal = AzurePrincipal {
        client: &parameters.client_id,
        tenant: &parameters.tenant,
        secret: &parameters.client_password,
        cloud: &parameters.cloud,
        authority: &parameters.active_directory_endpoint,
    };
    let own = &parameters.resource_manager_endpoint;
    let client = AzureClient::new(&principal, ENDPOINTS, own, trigger, backends);
    SingleMetricScaler::build(spec, parameters.activation, Monitor { parameters, client })
}

impl ValueSource for Monitor {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let (path, same_as) = query::path(&self.parameters, self.client.now())?;
            let (status, body) = self.client.get(&path, Some(same_as)).await?;
            query::newest(status, &body, &self.parameters.aggregation_type)
        })
    }
}
