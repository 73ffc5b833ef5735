//! aws-cloudwatch: the value of a metric or expression of Amazon CloudWatch.

mod query;
#[cfg(test)]
mod tests;

use crate::aws::{AwsClient, AwsCredentials, AwsRequest};
use crate::prelude::*;
use query::CloudwatchPage;

/// Maximum number of pages without a value.
const MAX_PAGES: usize = 5;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing cloudwatch metadata";

/// Units of CloudWatch, in the order of its API.
const UNITS: [&str; 27] = [
    "Seconds",
    "Microseconds",
    "Milliseconds",
    "Bytes",
    "Kilobytes",
    "Megabytes",
    "Gigabytes",
    "Terabytes",
    "Bits",
    "Kilobits",
    "Megabits",
    "Gigabits",
    "Terabits",
    "Percent",
    "Count",
    "Bytes/Second",
    "Kilobytes/Second",
    "Megabytes/Second",
    "Gigabytes/Second",
    "Terabytes/Second",
    "Bits/Second",
    "Kilobits/Second",
    "Megabits/Second",
    "Gigabits/Second",
    "Terabits/Second",
    "Count/Second",
    "None",
];

/// The scaler type `aws-cloudwatch`.
pub const TYPE: ScalerType = ScalerType {
    name: "aws-cloudwatch",
    about: "The value of a metric or expression of Amazon CloudWatch.",
    display: "awsCloudwatchScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("namespace", "AWS/SQS"),
            ("metricName", "m"),
            ("dimensionName", "QueueName"),
            ("dimensionValue", "q"),
            ("targetMetricValue", "5"),
            ("minMetricValue", "0"),
            ("awsRegion", "eu-west-1"),
            ("awsEndpoint", "http://{}"),
        ],
        sample::AWS_KEYS,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of aws-cloudwatch.
    pub struct Parameters of "error parsing cloudwatch metadata: error parsing prometheus metadata" {
        /// Namespace of the metric.
        namespace: String = "namespace" in [Metadata];
        /// The metric.
        metric_name: String = "metricName" in [Metadata];
        /// Names of its dimensions, separated by semicolons.
        dimension_names: Vec<String> = "dimensionName" in [Metadata], separator ';';
        /// Their values, separated by semicolons.
        dimension_values: Vec<String> = "dimensionValue" in [Metadata], separator ';';
        /// A Metrics Insights query or metric math, instead of a metric.
        expression: String = "expression" in [Metadata];
        /// Target value per replica.
        target: f64 = "targetMetricValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation: f64 = "activationTargetMetricValue" in [Metadata], default "0";
        /// The value if there is no data.
        minimum: f64 = "minMetricValue" in [Metadata], required;
        /// Whether missing data is `minMetricValue`; otherwise it is an error.
        ignore_null_values: bool = "ignoreNullValues" in [Metadata], default "true";
        /// How many seconds back data counts.
        collection_time: i64 = "metricCollectionTime" in [Metadata], default "300";
        /// The statistic of the metric.
        statistic: String = "metricStat" in [Metadata], default "Average";
        /// The unit of the metric.
        metric_unit: String = "metricUnit" in [Metadata];
        /// The period of the statistic, in seconds.
        period: i64 = "metricStatPeriod" in [Metadata], default "300";
        /// How many seconds before now the data ends.
        end_offset: i64 = "metricEndTimeOffset" in [Metadata], default "0";
        /// The account of the metric, if it is another one that shares its metrics.
        account: String = "awsAccountId" in [Metadata];
        /// The region.
        region: String = "awsRegion" in [Metadata, Authentication], required;
        /// AWS endpoint and credentials.
        credentials: AwsCredentials;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.expression.is_empty() {
            self.check_metric()?;
        }
        let Self { period, collection_time: time, .. } = *self;
        let wrong = match period {
            ..1 => Some("can not be smaller than 1"),
            1..60 if ![1, 5, 10, 30].contains(&period) => Some("< 60 has to be one of [1, 5, 10, 30]"),
            60.. if period % 60 != 0 => Some(">= 60 has to be a multiple of 60"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(format!("metricStatPeriod {wrong}, however, {period} is provided").into());
        }
        if time < 0 || time % period != 0 {
            let must = format!("greater than 0 and a multiple of metricStatPeriod({period})");
            return Err(format!("metricCollectionTime must be {must}, {time} is given").into());
        }
        Ok(())
    }

    fn check_metric(&self) -> Result<(), ParseError> {
        let given = [
            (self.namespace.is_empty(), "namespace not given"),
            (self.metric_name.is_empty(), "metric name not given"),
            (self.dimension_names.is_empty(), "dimension name not given"),
            (self.dimension_values.is_empty(), "dimension value not given"),
        ];
        if let Some((_, missing)) = given.into_iter().find(|(missing, _)| *missing) {
            return Err(missing.into());
        }
        if self.dimension_names.len() != self.dimension_values.len() {
            return Err("dimensionName and dimensionValue are not matching in size".into());
        }
        if !self.metric_unit.is_empty() && !UNITS.contains(&&*self.metric_unit) {
            let list = UNITS.join(" ");
            return Err(format!("metricUnit '{}' is not one of [{list}]", self.metric_unit).into());
        }
        Ok(())
    }
}

struct Cloudwatch {
    parameters: Parameters,
    client: AwsClient,
    web: Arc<SharedHttpClient>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let client = AwsClient::new(&parameters.region, &parameters.credentials, trigger, backends)
        .map_err(|error| error.inside(PREFIX))?;
    let spec = external(trigger, "aws-cloudwatch", milli(parameters.target));
    let (activation, web) = (parameters.activation, Arc::clone(&backends.web));
    SingleMetricScaler::build(spec, activation, Cloudwatch { parameters, client, web })
}

impl Cloudwatch {
    /// The newest value; none without data.
    async fn newest(&self) -> Result<Option<f64>, ScalerError> {
        let now = self.web.now().as_second();
        let mut token = String::new();
        for _ in 0..MAX_PAGES {
            let request = AwsRequest {
                host: "monitoring",
                service: "monitoring",
                target: "GraniteServiceVersion20100801.GetMetricData",
                version: "1.0",
                body: query::request_body(&self.parameters, now, &token),
            };
            let (status, body) = self.client.send(request).await?;
            match query::newest(status, &body)? {
                CloudwatchPage::Value(value) => return Ok(Some(value)),
                CloudwatchPage::Nothing => return Ok(None),
                CloudwatchPage::Next(next) => token = next,
            }
        }
        Err(scaler_error!("CloudWatch answered with {MAX_PAGES} pages without a value"))
    }
}

impl ValueSource for Cloudwatch {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            match self.newest().await? {
                Some(value) => Ok(value),
                None if self.parameters.ignore_null_values => Ok(self.parameters.minimum),
                None => Err(scaler_error!(
                    "empty metric data received, ignoreNullValues is false, returning error"
                )),
            }
        })
    }
}
