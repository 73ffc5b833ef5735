//! huawei-cloudeye: the value of a metric of Huawei Cloud Eye.

use crate::prelude::*;

/// The scaler type `huawei-cloudeye`.
pub const TYPE: ScalerType = ScalerType {
    name: "huawei-cloudeye",
    about: "The value of a metric of Huawei Cloud Eye.",
    display: "huaweiCloudeyeScaler",
    parameters: Parameters::PARAMETERS,
    queried: false,
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
        filter: String = "metricFilter" in [Metadata], default "average", one_of ["average", "max", "min", "sum", "variance"];
        /// Distance of values, in seconds.
        period: String = "metricPeriod" in [Metadata], default "300";
        /// Endpoint of IAM.
        identity_endpoint: String = "IdentityEndpoint" in [Authentication];
        /// The project.
        project: String = "ProjectID" in [Authentication];
        /// Id of the account.
        domain_id: String = "DomainID" in [Authentication];
        /// The region.
        region: String = "Region" in [Authentication];
        /// Name of the account.
        domain: String = "Domain" in [Authentication];
        /// Domain of the host names.
        cloud: String = "Cloud" in [Authentication], default "myhuaweicloud.com";
        /// Access key.
        access_key: Secret = "AccessKey" in [Authentication];
        /// Its secret key.
        secret_key: Secret = "SecretKey" in [Authentication];
    }
}

fn build(trigger: &Trigger, _: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let name = format!("huawei-cloudeye-{}", parameters.metric_name);
    UnqueriedScaler::build(trigger, [external(trigger, &name, milli(parameters.target))])
}
