//! loki: the result of a LogQL query.

mod query;
#[cfg(test)]
mod tests;

use crate::parameters::groups::HttpAuth;
use crate::prelude::*;

/// The scaler type `loki`.
pub const TYPE: ScalerType = ScalerType {
    name: "loki",
    about: "The result of a LogQL query.",
    display: "lokiScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(&[("serverAddress", "http://{}"), ("query", "q"), ("threshold", "5")], &[])],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of loki.
    pub struct Parameters of "error parsing loki metadata: error parsing loki metadata" {
        /// URL of Loki, e.g. `http://loki.monitoring.svc:3100`.
        server_address: String = "serverAddress" in [Metadata], required;
        /// The query; its result must have one element.
        query: String = "query" in [Metadata], required;
        /// Target value per replica.
        threshold: f64 = "threshold" in [Metadata], required;
        /// The trigger is active above this value.
        activation_threshold: f64 = "activationThreshold" in [Metadata], default "0";
        /// The tenant to query.
        tenant_name: Option<String> = "tenantName" in [Metadata];
        /// Treats an empty result as 0 instead of an error.
        ignore_null_values: bool = "ignoreNullValues" in [Metadata], default "true";
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// HTTP authentication.
        auth: HttpAuth;
    }
    check Parameters::check
}

impl Parameters {
    /// KEDA checks the authentication once more here, so its error is in the message twice.
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        self.auth.check_complete()
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    // A formula has its own target.
    let target = if trigger.feeds_formula { 0.0 } else { parameters.threshold };
    let activation = parameters.activation_threshold;
    let source = HttpSource::new(parameters, trigger, backends);
    Ok(Arc::new(SingleMetricScaler { spec: external(trigger, "loki", milli(target)), activation, source }))
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters {
                server_address, query, tenant_name, ignore_null_values, unsafe_ssl, auth, ..
            } = &self.parameters;
            let mut call =
                auth.sign(HttpCall::get(query::url(server_address, query), self.within), *unsafe_ssl)?;
            if let Some(tenant) = tenant_name {
                call = call.header("X-Scope-OrgID", tenant)?;
            }
            let (status, body) = send(&self.web, call).await?;
            match query::value(status, &body, query)? {
                Some(value) => Ok(value),
                None if *ignore_null_values => Ok(0.0),
                None => Err(scaler_error!("loki metrics 'loki' target may be lost, the result is empty")),
            }
        })
    }
}
