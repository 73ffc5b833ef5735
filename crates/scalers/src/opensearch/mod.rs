//! opensearch: a number in what a search finds.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use sources::http::Endpoint;

use crate::backends::Backends;
use crate::elasticsearch::one_search;
use crate::elasticsearch::query::{Search, value};
use crate::metric::{external, milli, target_type};
use crate::parameters::Secret;
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger};

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
        /// What is searched, e.g. `orders;returns`.
        indexes: Vec<String> = "index" in [Authentication, Metadata], required, separator ';';
        /// The search template.
        template: String = "searchTemplateName" in [Authentication, Metadata];
        /// The query, instead of a template.
        query: String = "query" in [Authentication, Metadata];
        /// Parameters of the template, e.g. `status:open;days:7`.
        parameters: Vec<String> = "parameters" in [Metadata], separator ';';
        /// Where the number is (a path of GJSON), e.g. `hits.total.value`.
        value_location: String = "valueLocation" in [Authentication, Metadata], required;
        /// The number that one replica is for.
        target_value: f64 = "targetValue" in [Authentication, Metadata], required;
        /// The trigger is active above it.
        activation_target_value: f64 = "activationTargetValue" in [Metadata], default "0";
        /// Whether no number means 0; otherwise it is an error.
        ignore_null_values: bool = "ignoreNullValues" in [Metadata], default "false";
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
        if self.enable_tls && (self.certificate.is_empty() || self.key.reveal().is_empty()) {
            return Err("both clientCert and clientKey must be provided when enableTLS is true".to_owned());
        }
        one_search(&self.template, &self.query)
    }

    /// Trust and certificate.
    fn trust(&self) -> Endpoint {
        let own = self.enable_tls;
        let authority = (!self.authority.is_empty()).then(|| self.authority.clone().into_bytes());
        Endpoint {
            insecure: self.unsafe_ssl,
            certificate: own.then(|| self.certificate.clone().into_bytes()),
            key: own.then(|| self.key.clone()),
            system_too: authority.is_some(),
            ca_bundle: authority,
            ..Endpoint::default()
        }
    }
}

struct OpenSearch {
    parameters: Parameters,
    search: Search,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let Parameters { indexes, query, template, parameters: values, .. } = &parameters;
    let name = format!("opensearch-{}", if template.is_empty() { "query" } else { template });
    let spec = external(trigger, &name, milli(parameters.target_value));
    let search = Search::new(indexes, query, template, values);
    let activation = parameters.activation_target_value;
    let source =
        OpenSearch { parameters, search, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Source for OpenSearch {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { addresses, username, password, value_location, ignore_null_values, .. } =
                &self.parameters;
            let Search { path, body } = &self.search;
            let mut failed = Error::new("no addresses are given");
            for address in addresses {
                let url = format!("{}{path}", address.trim_end_matches('/'));
                let mut call = Call::post(url, body.clone(), self.within).access(self.parameters.trust());
                if !username.is_empty() {
                    call = call.basic(username, password);
                }
                match ask(&self.web, call.header("content-type", "application/json")?).await {
                    Ok((status, body)) => {
                        return value("opensearch", status, &body, value_location, *ignore_null_values);
                    }
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        })
    }
}
