//! gcp-stackdriver: the value of a filter of Google Cloud Monitoring.

#[cfg(test)]
mod tests;

use crate::google_credentials::GoogleCredentials;
use crate::google_monitoring::{Alignment, MonitoringClient, SeriesFilter};
use crate::parameters::NullableNumber;
use crate::prelude::*;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing Stackdriver metadata";

/// Aligners of Cloud Monitoring without `ALIGN_`, in lower case.
const ALIGNERS: [&str; 19] = [
    "none",
    "delta",
    "rate",
    "interpolate",
    "next_older",
    "min",
    "max",
    "mean",
    "count",
    "sum",
    "stddev",
    "count_true",
    "count_false",
    "fraction_true",
    "percentile_99",
    "percentile_95",
    "percentile_50",
    "percentile_05",
    "percent_change",
];

/// Reducers of Cloud Monitoring without `REDUCE_`, in lower case.
const REDUCERS: [&str; 14] = [
    "none",
    "mean",
    "min",
    "max",
    "sum",
    "stddev",
    "count",
    "count_true",
    "count_false",
    "fraction_true",
    "percentile_99",
    "percentile_95",
    "percentile_50",
    "percentile_05",
];

/// The scaler type `gcp-stackdriver`.
pub const TYPE: ScalerType = ScalerType {
    name: "gcp-stackdriver",
    about: "The value of a metric of Google Cloud Monitoring (Stackdriver).",
    display: "stackdriverScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::fixed(
        &[("projectId", "p"), ("filter", "metric.type=\"x\""), ("targetValue", "5")],
        sample::GOOGLE_KEY,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of gcp-stackdriver.
    pub struct Parameters of "error parsing Stackdriver metadata: error parsing Stackdriver metadata" {
        /// The project.
        project: String = "projectId" in [Metadata], required;
        /// The filter of Cloud Monitoring.
        filter: String = "filter" in [Metadata], required,
            deprecated "This scaler is deprecated. More info -> 'https://keda.sh/blog/2025-09-15-gcp-deprecations'";
        /// Target value per replica.
        target: f64 = "targetValue" in [Metadata], default "5";
        /// The trigger is active above this value.
        activation: f64 = "activationTargetValue" in [Metadata], default "0";
        /// The value if there is no point; otherwise that is an error.
        value_if_null: NullableNumber = "valueIfNull" in [Metadata];
        /// How many minutes back points count; 2 if it is missing.
        filter_duration: i64 = "filterDuration" in [Metadata];
        /// Alignment period in seconds.
        alignment_period: i64 = "alignmentPeriodSeconds" in [Metadata];
        /// How points of a series are aligned, e.g. `mean`.
        aligner: String = "alignmentAligner" in [Metadata];
        /// How several series become one, e.g. `sum`.
        reducer: String = "alignmentReducer" in [Metadata];
        /// Credentials.
        credentials: GoogleCredentials;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.alignment_period != 0 && self.alignment_period < 60 {
            return Err("alignmentPeriodSeconds must be at least 60".into());
        }
        Ok(())
    }

    fn check_alignment(&self) -> Result<(), ParseError> {
        // Without a period there is no alignment.
        if self.alignment_period == 0 {
            return Ok(());
        }
        let known = |list: &[&str], name: &str| name.is_empty() || list.contains(&&*name.to_lowercase());
        if !known(&ALIGNERS, &self.aligner) {
            return Err(format!("unknown aligner: {}", self.aligner).into());
        }
        if !known(&REDUCERS, &self.reducer) {
            return Err(format!("unknown reducer: {}", self.reducer).into());
        }
        Ok(())
    }
}

struct Stackdriver {
    parameters: Parameters,
    alignment: Option<Alignment>,
    client: MonitoringClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let inside = |error: ParseError| ScalerError::new(error).inside(PREFIX);
    parameters.credentials.check(trigger).map_err(inside)?;
    parameters.check_alignment().map_err(inside)?;
    let name = format!("gcp-stackdriver-{}", parameters.project);
    let spec = external(trigger, &name, milli(parameters.target));
    let alignment = (parameters.alignment_period != 0).then(|| Alignment {
        period: parameters.alignment_period,
        aligner: parameters.aligner.clone(),
        reducer: parameters.reducer.clone(),
    });
    let client = MonitoringClient::new(&parameters.credentials, trigger, backends);
    SingleMetricScaler::build(spec, parameters.activation, Stackdriver { parameters, alignment, client })
}

impl ValueSource for Stackdriver {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { project, filter, filter_duration, value_if_null, .. } = &self.parameters;
            let series = SeriesFilter {
                project,
                filter,
                minutes: *filter_duration,
                alignment: self.alignment.as_ref(),
            };
            let found = self.client.newest(&series).await?;
            found
                .or(value_if_null.0)
                .ok_or_else(|| scaler_error!("could not find stackdriver metric with filter {filter}"))
        })
    }
}
