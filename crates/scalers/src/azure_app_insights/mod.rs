//! azure-app-insights: the value of a metric of Azure Application Insights.

mod query;
#[cfg(test)]
mod tests;

use crate::azure_client::{AzureClient, AzurePrincipal};
use crate::azure_clouds::{check_cloud_of, check_principal, check_sdk_cloud, check_tenant};
use crate::prelude::*;

/// Application Insights in Azure's clouds.
const ENDPOINTS: [&str; 3] = [
    "https://api.applicationinsights.io",
    "https://api.applicationinsights.us",
    "https://api.applicationinsights.azure.cn",
];

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing azure app insights metadata";

/// The scaler type `azure-app-insights`.
pub const TYPE: ScalerType = ScalerType {
    name: "azure-app-insights",
    about: "The value of a metric of Azure Application Insights.",
    display: "azureAppInsightsScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::fixed(
        &[
            ("applicationInsightsId", "a"),
            ("tenantId", "t"),
            ("metricId", "requests/count"),
            ("metricAggregationTimespan", "0:5"),
            ("metricAggregationType", "avg"),
            ("targetValue", "5"),
        ],
        sample::AZURE_PRINCIPAL,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of azure-app-insights.
    pub struct Parameters of "error parsing azure app insights metadata: error parsing azure app insights metadata" {
        /// Target value per replica.
        target: f64 = "targetValue" in [Metadata];
        /// The trigger is active above this value.
        activation: f64 = "activationTargetValue" in [Metadata], default "0";
        /// The metric.
        metric: String = "metricId" in [Metadata], required;
        /// How far back values count, as `hh:mm`.
        timespan: String = "metricAggregationTimespan" in [Metadata], required;
        /// How values are aggregated, e.g. `avg`.
        aggregation_type: String = "metricAggregationType" in [Metadata], required;
        /// Filter of the metric.
        metric_filter: String = "metricFilter" in [Metadata];
        /// Whether missing data is 0; otherwise it is an error.
        ignore_null_values: bool = "ignoreNullValues" in [Metadata], default "false";
        /// The cloud.
        cloud: String = "cloud" in [Metadata];
        /// Resource URL of Application Insights in a private cloud.
        resource_url: String = "appInsightsResourceURL" in [Metadata];
        /// Token endpoint of a private cloud.
        active_directory_endpoint: String = "activeDirectoryEndpoint" in [Metadata];
        /// The application.
        application: String = "applicationInsightsId" in [Metadata, Authentication, Environment], required;
        /// The tenant.
        tenant: String = "tenantId" in [Metadata, Authentication, Environment], required;
        /// Client id of the service principal.
        client_id: String = "activeDirectoryClientId" in [Metadata, Authentication, Environment];
        /// Its password.
        client_password: Secret = "activeDirectoryClientPassword" in [Authentication, Environment];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        // Parts that are no numbers are an error of the query, as in KEDA.
        if self.timespan.split(':').count() != 2 {
            return Err("metricAggregationTimespan not in the correct format. Should be hh:mm".into());
        }
        Ok(())
    }

    fn check_access(&self, trigger: &Trigger) -> Result<(), ParseError> {
        if self.target == 0.0 && !trigger.feeds_formula {
            return Err("no targetValue given".into());
        }
        check_sdk_cloud(&self.cloud, "appInsightsResourceURL", &self.resource_url)?;
        check_cloud_of(trigger, "activeDirectoryEndpoint")?;
        check_principal(trigger, &self.client_id, &self.client_password)
    }
}

struct AppInsights {
    parameters: Parameters,
    client: AzureClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    parameters.check_access(trigger).map_err(|error| ScalerError::new(error).inside(PREFIX))?;
    if trigger.identity.provider != "azure-workload" {
        let inside = |error: ParseError| ScalerError::new(error).inside("error getting auth config");
        check_tenant(&parameters.tenant).map_err(inside)?;
    }
    let name = format!("azure-app-insights-{}", parameters.metric);
    let spec = external(trigger, &name, milli(parameters.target));
    let principal = AzurePrincipal {
        client: &parameters.client_id,
        tenant: &parameters.tenant,
        secret: &parameters.client_password,
        cloud: &parameters.cloud,
        authority: &parameters.active_directory_endpoint,
    };
    let client = AzureClient::new(&principal, ENDPOINTS, &parameters.resource_url, trigger, backends);
    SingleMetricScaler::build(spec, parameters.activation, AppInsights { parameters, client })
}

impl ValueSource for AppInsights {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { metric, aggregation_type, ignore_null_values, .. } = &self.parameters;
            let path = query::path(&self.parameters)?;
            let (status, body) = self.client.get(&path, None).await?;
            match query::value(status, &body, metric, aggregation_type)? {
                Some(value) => Ok(value),
                None if *ignore_null_values => Ok(0.0),
                None => {
                    Err(scaler_error!("metric {metric} has no value for aggregation type {aggregation_type}"))
                }
            }
        })
    }
}
