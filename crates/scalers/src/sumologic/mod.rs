//! sumologic: the number returned by a log or metric query of Sumo Logic.

mod client;
mod query;
#[cfg(test)]
mod tests;

use client::SumoLogicClient;
use query::QueryRange;

use crate::prelude::*;

/// Prefix of errors that are found after the parameters were read.
const PREFIX: &str = "error parsing metadata";
/// The beginning of keys that hold one row of several metric queries.
const ROW_QUERY_PREFIX: &str = "query.";
/// The id of the row of a single metric query.
const SINGLE_ROW: &str = "A";

/// The scaler type `sumologic`.
pub const TYPE: ScalerType = ScalerType {
    name: "sumologic",
    about: "The number returned by a log or metric query of Sumo Logic.",
    display: "sumologicScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("host", "http://{}"),
            ("queryType", "metrics"),
            ("query", "q"),
            ("quantization", "15s"),
            ("timerange", "15m"),
            ("threshold", "5"),
            ("maxRetries", "1"),
        ],
        &[("accessID", "i"), ("accessKey", sample::SECRET)],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of sumologic.
    pub struct Parameters of "error parsing metadata: error parsing metadata" {
        /// Access id.
        access_id: String = "accessID" in [Authentication], required;
        /// Its key.
        access_key: Secret = "accessKey" in [Authentication], required;
        /// URL of the API, e.g. `https://api.sumologic.com`.
        host: String = "host" in [Metadata], required;
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata];
        /// Kind of the query.
        query_type: String = "queryType" in [Metadata], required, one_of ["logs", "metrics"];
        /// The query.
        query: String = "query" in [Metadata];
        /// One row of several metric queries; the star stands for the id of the row, e.g. `query.A`.
        rows: String = "query.*" in [Metadata];
        /// Treats a metric query without data as 0 instead of an error.
        ignore_null_values: bool = "ignoreNullValues" in [Metadata], default "false", since_2_21;
        /// The row whose result is the value.
        result_row: String = "resultQueryRowID" in [Metadata];
        /// Distance of the points of a metric query.
        quantization: Option<Duration> = "quantization" in [Metadata];
        /// How points are combined in the distance.
        rollup: String = "rollup" in [Metadata], default "Avg", one_of ["Avg", "Sum", "Count", "Min", "Max"];
        /// The field of a log query that has the number.
        result_field: String = "resultField" in [Metadata];
        /// How often a log query is asked whether it is done.
        logs_polling_interval: Duration = "logsPollingInterval" in [Metadata], default "1s";
        /// How often a request is sent if the server is overloaded or fails, at most 5 times.
        max_retries: isize = "maxRetries" in [Metadata], default "3";
        /// How far back the query goes.
        timerange: Duration = "timerange" in [Metadata], required;
        /// Time zone of the query.
        timezone: String = "timezone" in [Metadata], default "UTC";
        /// The trigger is active above this value.
        activation: f64 = "activationThreshold" in [Metadata], default "0";
        /// How the points of the result become one value.
        aggregator: String = "queryAggregator" in [Metadata], default "Avg", one_of ["Latest", "Avg", "Sum", "Count", "Min", "Max"];
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata], required;
    }
    check Parameters::check
}

/// The rows of several metric queries: ids and queries.
fn rows(trigger: &Trigger) -> impl Iterator<Item = (&str, &str)> {
    let rows =
        trigger.metadata.iter().filter_map(|(key, query)| Some((key.strip_prefix(ROW_QUERY_PREFIX)?, query)));
    rows.map(|(id, query)| (id, query.trim()))
}

impl Parameters {
    fn check(&mut self, trigger: &Trigger) -> Result<(), ParseError> {
        let several = rows(trigger).next().is_some();
        let fail = |text: &str| Err(text.into());
        match &*self.query_type {
            "logs" if self.query.is_empty() => fail("missing required metadata: query"),
            "logs" if several => fail("invalid metadata, query.<RowId> not supported for logs queryType"),
            "logs" if self.result_field.is_empty() => {
                fail("missing required metadata: resultField (required for logs queryType)")
            }
            "metrics" => self.check_metrics(trigger, several),
            _ => Ok(()),
        }
    }

    fn check_metrics(&self, trigger: &Trigger, several: bool) -> Result<(), ParseError> {
        let fail = |text: &str| Err(text.into());
        match (self.query.is_empty(), several) {
            (true, false) => {
                return fail(
                    "missing metadata: either of query or query.<RowId> must be defined for metrics queryType",
                );
            }
            (false, true) => {
                return fail(
                    "invalid metadata: only one of query or query.<RowId> must be defined for metrics queryType",
                );
            }
            _ => {}
        }
        if several && self.result_row.is_empty() {
            return fail("missing required metadata: resultQueryRowID for multi-metrics query");
        }
        if several && !rows(trigger).any(|(id, _)| id == self.result_row) {
            return Err(format!("resultQueryRowID '{}' not found in queries", self.result_row).into());
        }
        if self.quantization.is_none_or(|time| time.is_zero()) {
            return fail("missing required metadata: quantization for metrics queryType");
        }
        Ok(())
    }
}

/// A query and the API that answers it.
struct SumoLogicQuery {
    parameters: Parameters,
    /// Metric queries with their ids.
    rows: Vec<(String, String)>,
    client: SumoLogicClient,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    if rows(trigger).any(|(id, _)| id.is_empty()) {
        bail!("{PREFIX}: malformed metadata, unable to parse rowID from key: {ROW_QUERY_PREFIX}");
    }
    let empty =
        trigger.metadata.iter().find(|(key, query)| key.starts_with(ROW_QUERY_PREFIX) && query.is_empty());
    if let Some((key, _)) = empty {
        bail!("{PREFIX}: malformed metadata, invalid value for key: {key}");
    }
    let mut parameters = Parameters::read(trigger)?;
    target_type(trigger)?;
    let name = format!("sumologic-{}", parameters.query_type);
    let (spec, activation) = (external(trigger, &name, milli(parameters.threshold)), parameters.activation);
    // There is either a query or rows.
    let rows = if parameters.query.is_empty() {
        rows(trigger).map(|(id, query)| (id.to_owned(), query.to_owned())).collect()
    } else {
        SINGLE_ROW.clone_into(&mut parameters.result_row);
        vec![(SINGLE_ROW.to_owned(), parameters.query.clone())]
    };
    let client = SumoLogicClient {
        host: parameters.host.clone(),
        access_id: parameters.access_id.clone(),
        access_key: parameters.access_key.clone(),
        unsafe_ssl: parameters.unsafe_ssl,
        attempts: parameters.max_retries,
        polling_interval: parameters.logs_polling_interval,
        within: trigger.http_timeout,
        web: Arc::clone(&backends.web),
    };
    SingleMetricScaler::build(spec, activation, SumoLogicQuery { parameters, rows, client })
}

impl SumoLogicQuery {
    async fn result(&self) -> Result<f64, ScalerError> {
        let Parameters { result_row, rollup, result_field, timezone, aggregator, .. } = &self.parameters;
        let range = QueryRange::new(self.client.web.now(), self.parameters.timerange, timezone)?;
        if self.parameters.query_type == "logs" {
            let numbers = self.client.logs((&self.parameters.query, timezone), &range, result_field).await?;
            // KEDA takes a search without records for 0.
            return numbers.map_or(Ok(0.0), |numbers| query::aggregated(&numbers, aggregator));
        }
        let quantization = self.parameters.quantization.unwrap_or_default();
        let request_body = query::metrics_body(&self.rows, (quantization, rollup), &range);
        let answer = self.client.metrics(request_body).await?;
        match query::points(answer.status.as_u16(), &answer.body, result_row)? {
            Some(numbers) => query::aggregated(&numbers, aggregator),
            None if self.parameters.ignore_null_values => Ok(0.0),
            None => Err(scaler_error!("no time series data found in metrics query response")),
        }
    }
}

impl ValueSource for SumoLogicQuery {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            self.result().await.map_err(|error| error.inside("error getting metrics from sumologic"))
        })
    }
}
