//! opensearch: a number in the result of a search.

#[cfg(test)]
mod tests;

use sources::http::{Auth, Endpoint};

use crate::parameters::groups::tls_endpoint;
use crate::prelude::*;
use crate::search::{SearchAccess, SearchParameters};

/// The scaler type `opensearch`.
pub const TYPE: ScalerType = ScalerType {
    name: "opensearch",
    about: "A number in what an OpenSearch search finds.",
    display: "opensearchScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(sample::SEARCH, sample::PASSWORD)],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of opensearch.
    pub struct Parameters of "failed to parse opensearch metadata" {
        /// URLs of OpenSearch, e.g. `https://os-0.search:9200,https://os-1.search:9200`; the first that responds is used.
        addresses: Vec<String> = "addresses" in [Authentication, Metadata], required;
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// User name.
        username: String = "username" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Environment, Metadata];
        /// Uses the client certificate.
        enable_tls: bool = "enableTLS" in [Metadata, Authentication], default "false";
        /// CA certificate that must have signed the server certificate (PEM).
        authority: String = "caCert" in [Authentication, Metadata];
        /// Client certificate (PEM).
        certificate: String = "clientCert" in [Authentication, Metadata];
        /// Private key of the client certificate (PEM).
        key: Secret = "clientKey" in [Authentication, Metadata];
        /// The search, and the location of the value.
        searched: SearchParameters;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        if self.enable_tls && (self.certificate.is_empty() || self.key.reveal().is_empty()) {
            return Err("both clientCert and clientKey must be provided when enableTLS is true".into());
        }
        if !self.enable_tls && (self.username.is_empty() || self.password.reveal().is_empty()) {
            return Err("both username and password must be provided for basic auth".into());
        }
        self.searched.check_one()
    }

    /// TLS settings of the endpoint.
    fn trust(&self) -> Endpoint {
        let own = self.enable_tls.then_some((&*self.certificate, &self.key));
        Endpoint { insecure: self.unsafe_ssl, ..tls_endpoint(&self.authority, own) }
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let mut endpoint = parameters.trust();
    if !parameters.username.is_empty() {
        endpoint.auth = Auth::Basic { user: parameters.username, password: parameters.password };
    }
    let access = SearchAccess {
        product: "opensearch",
        addresses: Ok(parameters.addresses),
        endpoint,
        authorization: None,
        within: trigger.http_timeout,
        web: Arc::clone(&backends.web),
    };
    Ok(parameters.searched.scaler(trigger, access))
}
