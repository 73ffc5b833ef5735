//! huawei-cloudeye: the value of a metric of Huawei Cloud Eye.

mod query;
#[cfg(test)]
mod tests;

use query::CloudEyeMetric;

use crate::prelude::*;

/// The scaler type `huawei-cloudeye`.
pub const TYPE: ScalerType = ScalerType {
    name: "huawei-cloudeye",
    about: "The value of a metric of Huawei Cloud Eye.",
    display: "huaweiCloudeyeScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::fixed(
        &[
            ("namespace", "SYS.ELB"),
            ("metricName", "m"),
            ("dimensionName", "d"),
            ("dimensionValue", "v"),
            ("targetMetricValue", "5"),
        ],
        &[
            ("IdentityEndpoint", "http://{}"),
            ("ProjectID", "p"),
            ("DomainID", "d"),
            ("Region", "r"),
            ("Domain", "d"),
            ("AccessKey", "a"),
            ("SecretKey", sample::SECRET),
        ],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of huawei-cloudeye.
    pub struct Parameters of "error parsing Cloudeye metadata: error parsing huawei cloudeye metadata" {
        /// Namespace of the metric.
        namespace: String = "namespace" in [Metadata], required;
        /// The metric.
        metric_name: String = "metricName" in [Metadata], required;
        /// Name of its dimension.
        dimension_name: String = "dimensionName" in [Metadata], required;
        /// Value of its dimension.
        dimension_value: String = "dimensionValue" in [Metadata], required;
        /// Target value per replica.
        target: f64 = "targetMetricValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationTargetMetricValue" in [Metadata], default "0";
        /// Replaced by `activationTargetMetricValue`.
        minimum: Option<String> = "minMetricValue" in [Metadata],
            removed "The 'minMetricValue' setting is DEPRECATED and is removed in v2.20 - Use 'activationTargetMetricValue' instead";
        /// How many seconds back values count.
        collection_time: i64 = "metricCollectionTime" in [Metadata], default "300";
        /// How values are aggregated.
        filter: String = "metricFilter" in [Metadata], default "average", one_of ["average", "max", "min", "sum"];
        /// Distance of values, in seconds.
        period: String = "metricPeriod" in [Metadata], default "300";
        /// Has no effect: requests are signed with the access key, without a token of IAM.
        identity_endpoint: String = "IdentityEndpoint" in [Authentication];
        /// The project.
        project: String = "ProjectID" in [Authentication];
        /// Has no effect.
        domain_id: String = "DomainID" in [Authentication];
        /// The region; `https://ces.REGION.CLOUD` is asked.
        region: String = "Region" in [Authentication];
        /// Has no effect.
        domain: String = "Domain" in [Authentication];
        /// Domain of the host names.
        cloud: String = "Cloud" in [Authentication], default "myhuaweicloud.com";
        /// Access key.
        access_key: Secret = "AccessKey" in [Authentication];
        /// Its secret key.
        secret_key: Secret = "SecretKey" in [Authentication];
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("huawei-cloudeye-{}", parameters.metric_name);
    let spec = external(trigger, &name, milli(parameters.target));
    let activation = parameters.activation;
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl HttpSource<Parameters> {
    fn call(&self) -> Result<HttpCall, ScalerError> {
        let Parameters { project, region, cloud, access_key, secret_key, .. } = &self.parameters;
        let given = [
            ("ProjectID", &**project),
            ("AccessKey", access_key.reveal()),
            ("SecretKey", secret_key.reveal()),
        ];
        if let Some((missing, _)) = given.iter().find(|(_, text)| text.is_empty()) {
            bail!("{missing} must be given in the TriggerAuthentication");
        }
        let Parameters { namespace, metric_name, dimension_name, dimension_value, .. } = &self.parameters;
        let metric = CloudEyeMetric {
            namespace,
            name: metric_name,
            dimension: (dimension_name, dimension_value),
            period: &self.parameters.period,
            filter: &self.parameters.filter,
        };
        let (host, now) = (query::host(region, cloud)?, self.web.now());
        let body = query::request_body(&metric, self.parameters.collection_time, now);
        let date = query::date(now);
        let authorization = query::authorization((access_key, secret_key), (&host, project), &date, &body);
        HttpCall::post(format!("https://{host}{}", query::path(project)), body, self.within)
            .signed_by(&[access_key.reveal(), secret_key.reveal(), project.as_str()])
            .header("content-type", query::CONTENT_TYPE)?
            .header("x-project-id", project)?
            .header("x-sdk-date", &date)?
            .header("authorization", &authorization)
    }
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let (status, body) = send(&self.web, self.call()?).await?;
            query::value(status, &body, &self.parameters.filter)
        })
    }
}
