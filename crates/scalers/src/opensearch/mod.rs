//! opensearch: a number in what a search finds.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use sources::http::{Auth, Endpoint};

use crate::backends::Backends;
use crate::metric::target_type;
use crate::parameters::Secret;
use crate::search::{Access, Searched};
use crate::table::Type;
use crate::{Error, Scaler, Trigger};

/// opensearch.
pub const TYPE: Type = Type {
    name: "opensearch",
    about: "A number in what an OpenSearch search finds.",
    display: "opensearchScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What opensearch accepts.
    pub struct Parameters of "failed to parse opensearch metadata" {
        /// Where OpenSearch is, e.g. `https://os-0.search:9200,https://os-1.search:9200`; the first that answers counts.
        addresses: Vec<String> = "addresses" in [Authentication, Metadata], required;
        /// Accepts any certificate of the server.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// User.
        username: String = "username" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Environment, Metadata];
        /// Shows our certificate.
        enable_tls: bool = "enableTLS" in [Metadata], default "false";
        /// The authority that the server's certificate must be of (PEM).
        authority: String = "caCert" in [Authentication];
        /// Our certificate (PEM).
        certificate: String = "clientCert" in [Authentication];
        /// Its key (PEM).
        key: Secret = "clientKey" in [Authentication];
        /// What is searched, and which number counts.
        searched: Searched;
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        if self.enable_tls && (self.certificate.is_empty() || self.key.reveal().is_empty()) {
            return Err("both clientCert and clientKey must be provided when enableTLS is true".to_owned());
        }
        self.searched.check_one()
    }

    /// Trust and certificate.
    fn trust(&self) -> Endpoint {
        let own = self.enable_tls;
        let authority = (!self.authority.is_empty()).then(|| self.authority.clone().into_bytes());
        Endpoint {
            insecure: self.unsafe_ssl,
            certificate: own.then(|| self.certificate.clone().into_bytes()),
            key: own.then(|| self.key.clone()),
            system_roots_too: authority.is_some(),
            ca_bundle: authority,
            ..Endpoint::default()
        }
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let mut endpoint = parameters.trust();
    if !parameters.username.is_empty() {
        endpoint.auth = Auth::Basic { user: parameters.username, password: parameters.password };
    }
    let access = Access {
        product: "opensearch",
        addresses: Ok(parameters.addresses),
        endpoint,
        authorization: None,
        within: trigger.http_timeout,
        web: Arc::clone(&backends.web),
    };
    Ok(parameters.searched.scaler(trigger, access))
}
