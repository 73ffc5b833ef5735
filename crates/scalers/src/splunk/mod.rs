//! splunk: a field in the result of a saved search.

mod query;
#[cfg(test)]
mod tests;

use sources::http::Auth;

use crate::prelude::*;
use crate::urls::is_request_uri;

/// The scaler type `splunk`.
pub const TYPE: ScalerType = ScalerType {
    name: "splunk",
    about: "A field in the result of a saved search of Splunk.",
    display: "SplunkScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(
        &[
            ("host", "http://{}"),
            ("savedSearchName", "s"),
            ("valueField", "v"),
            ("targetValue", "5"),
            ("activationValue", "1"),
        ],
        sample::USER_AND_PASSWORD,
    )],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of splunk.
    pub struct Parameters of "error parsing Splunk metadata: error parsing splunk metadata" {
        /// API token, instead of the password.
        token: Secret = "apiToken" in [Authentication];
        /// Password.
        password: Secret = "password" in [Authentication];
        /// User name; the user also owns the saved search.
        username: String = "username" in [Authentication], required;
        /// URL of Splunk's management port, e.g. `https://splunk.logs:8089`.
        host: String = "host" in [Metadata], required;
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// Target value per replica.
        target_value: isize = "targetValue" in [Metadata], required;
        /// The trigger is active above this value.
        activation_value: isize = "activationValue" in [Metadata], required;
        /// The saved search.
        saved_search: String = "savedSearchName" in [Metadata], required;
        /// The field of its first result that holds the number.
        value_field: String = "valueField" in [Metadata], required;
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    if !is_request_uri(&parameters.host) {
        bail!(
            "error parsing Splunk metadata: invalid value for host. Must be a valid URL such as \
             https://localhost:8089"
        );
    }
    if !parameters.token.reveal().is_empty() && !parameters.password.reveal().is_empty() {
        bail!(
            "API token and Password were all set. If APIToken is set, username and password must not be used"
        );
    }
    let name = format!("splunk-{}", parameters.saved_search);
    let spec = external(trigger, &name, whole(parameters.target_value as i64));
    let activation = parameters.activation_value as f64;
    let source = HttpSource::new(parameters, trigger, backends);
    SingleMetricScaler::build(spec, activation, source)
}

impl ValueSource for HttpSource<Parameters> {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let Parameters { host, username, password, token, saved_search, value_field, .. } =
                &self.parameters;
            let url = query::url(host, username, saved_search);
            let mut call = HttpCall::get(url, self.within).unsafe_ssl(self.parameters.unsafe_ssl);
            call.access.auth = match token.reveal() {
                "" => Auth::Basic { user: username.clone(), password: password.clone() },
                _ => Auth::Token(token.clone()),
            };
            let (status, body) = send(&self.web, call).await?;
            query::value(status, &body, value_field)
        })
    }
}
