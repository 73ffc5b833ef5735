//! influxdb: the result of a query in Flux (version 2), SQL or InfluxQL (version 3).

mod query;
#[cfg(test)]
mod tests;

use crate::parameters::Removed;
use crate::prelude::*;
use crate::urls::{is_url, shown};

/// The scaler type `influxdb`.
pub const TYPE: ScalerType = ScalerType {
    name: "influxdb",
    about: "The result of a query to InfluxDB, version 2 or 3.",
    display: "influxDBScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("serverURL", "http://{}"),
            ("query", "from(bucket: \"b\")"),
            ("thresholdValue", "5"),
            ("organizationName", "o"),
        ],
        &[("authToken", sample::SECRET)],
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of influxdb.
    pub struct Parameters of "error parsing influxdb metadata" {
        /// Refused in metadata: the token must come from authentication or the environment.
        plain_token: Removed = "authToken" in [Metadata],
            removed "The 'authToken' setting from triggerMetadata is DEPRECATED and is removed in v2.20 - Use 'authToken' from resolvedEnv or authParams instead";
        /// The token.
        token: Secret = "authToken" in [Environment, Authentication];
        /// The organization (version 2).
        organization: String = "organizationName" in [Metadata, Environment, Authentication];
        /// The query: Flux for version 2, SQL or InfluxQL for version 3.
        query: String = "query" in [Metadata], required;
        /// The version of InfluxDB.
        version: String = "influxVersion" in [Metadata], default "2", one_of ["2", "3"];
        /// The language (version 3): `InfluxQL`, or `FlightSQL` for SQL.
        query_type: String = "queryType" in [Metadata], default "InfluxQL";
        /// The database (version 3).
        database: String = "database" in [Metadata, Authentication];
        /// The column of the value (version 3).
        metric_key: String = "metricKey" in [Metadata];
        /// URL of InfluxDB, e.g. `http://influxdb.monitoring:8086`.
        server_url: String = "serverURL" in [Metadata, Authentication], required;
        /// Accepts any server certificate (version 2).
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// Target value per replica.
        threshold: Option<f64> = "thresholdValue" in [Metadata];
        /// The trigger is active above this value.
        activation_threshold: f64 = "activationThresholdValue" in [Metadata], default "0";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        match &*self.version {
            "2" if self.organization.is_empty() => {
                Err("organizationName is required if influxVersion is 2".into())
            }
            "3" if self.database.is_empty() => Err("database is required if influxVersion is 3".into()),
            "3" if self.metric_key.is_empty() => Err("metricKey is required if influxVersion is 3".into()),
            "3" if !["influxql", "flightsql"].contains(&&*self.query_type.to_lowercase()) => {
                Err("query type must be 'influxql' or 'flightsql'".into())
            }
            _ => Ok(()),
        }
    }

    fn is_three(&self) -> bool {
        self.version == "3"
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    const PREFIX: &str = "error parsing influxdb metadata";
    target_type(trigger)?;
    let parameters = Parameters::read(trigger).map_err(|error| error.inside(PREFIX))?;
    if parameters.threshold.unwrap_or(0.0) == 0.0 && !trigger.feeds_formula {
        return Err(scaler_error!("no threshold value given").inside(PREFIX));
    }
    let three = parameters.is_three();
    if three && parameters.token.reveal().is_empty() {
        bail!("error creating influxdb v3 client: no token specified");
    }
    if three && !is_url(&parameters.server_url) {
        let url = api::gotext::quote(&shown(&parameters.server_url));
        bail!("error creating influxdb v3 client: parsing host URL: parse {url}: it is no URL");
    }
    let name = format!("influxdb-{}", if three { &parameters.database } else { &parameters.organization });
    let spec = external(trigger, &name, milli(parameters.threshold.unwrap_or(0.0)));
    let activation = parameters.activation_threshold;
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { server_url, query, organization, database, metric_key, query_type, .. } =
                &self.parameters;
            let three = self.parameters.is_three();
            let (url, body) = if three {
                query::rows_question(server_url, database, query, query_type)
            } else {
                query::flux_question(server_url, organization, query)
            };
            let mut call = HttpCall::post_query(url, body, self.within)
                .unsafe_ssl(self.parameters.unsafe_ssl && !three)
                .header("content-type", "application/json")?;
            let token = self.parameters.token.reveal();
            if !token.is_empty() {
                let scheme = if three { "Bearer" } else { "Token" };
                call = call.header("authorization", &format!("{scheme} {token}"))?;
            }
            let (status, body) = send(&self.web, call).await?;
            if three { query::rows(status, &body, metric_key) } else { query::table(status, &body) }
        })
    }
}
