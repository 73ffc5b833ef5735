//! elasticsearch: a number in the result of a search.

pub(crate) mod query;
#[cfg(test)]
mod tests;

use sources::http::{Auth, Endpoint};

use crate::prelude::*;
use crate::search::{SearchAccess, SearchParameters};

/// The scaler type `elasticsearch`.
pub const TYPE: ScalerType = ScalerType {
    name: "elasticsearch",
    about: "A number in what an Elasticsearch search finds.",
    display: "elasticsearchScaler",
    parameters: Parameters::PARAMETERS,
    build,
    samples: &[Sample::http(sample::SEARCH, sample::PASSWORD)],
    ..ScalerType::DEFAULT
};

crate::parameters! {
    /// Parameters of elasticsearch: addresses with user and password, or a cloud id with an API key.
    pub struct Parameters of "error parsing elasticsearch metadata" {
        /// URLs of Elasticsearch, e.g. `https://es-0.search:9200,https://es-1.search:9200`; the first that responds is used.
        addresses: Vec<String> = "addresses" in [Authentication, Metadata];
        /// Accepts any server certificate.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// User name.
        username: String = "username" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Environment, Metadata];
        /// The id of a deployment in Elastic Cloud.
        cloud_id: String = "cloudID" in [Authentication, Metadata];
        /// Its API key.
        api_key: Secret = "apiKey" in [Authentication, Metadata];
        /// The search, and the location of the value.
        searched: SearchParameters;
        /// Has no effect.
        metric_name: Option<String> = "metricName" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), ParseError> {
        let given = |secret: &Secret| !secret.reveal().is_empty();
        let (id, key) = (!self.cloud_id.is_empty(), given(&self.api_key));
        let (user, password) = (!self.username.is_empty(), given(&self.password));
        let (cloud, endpoint) = (id || key, !self.addresses.is_empty() || user || password);
        let text = match (cloud, endpoint) {
            (true, true) => "can't provide both cloud config and endpoint addresses",
            (false, false) => "must provide either cloud config or endpoint addresses",
            (true, _) if !id || !key => {
                "both cloudID and apiKey must be provided when cloudID or apiKey is used"
            }
            (_, true) if !(self.addresses.is_empty() || user && password) => {
                "both username and password must be provided when addresses is used"
            }
            _ => return self.searched.check_one(),
        };
        Err(text.into())
    }
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, ScalerError> {
    target_type(trigger)?;
    let Parameters { addresses, unsafe_ssl, username, password, cloud_id, api_key, searched, .. } =
        Parameters::read(trigger)?;
    let (addresses, authorization) = match &*cloud_id {
        "" => (Ok(addresses), None),
        id => (query::cloud(id).map(|address| vec![address]), Some(format!("ApiKey {}", api_key.reveal()))),
    };
    let auth = match authorization {
        Some(_) => Auth::None,
        None => Auth::Basic { user: username, password },
    };
    let access = SearchAccess {
        product: "elasticsearch",
        addresses,
        endpoint: Endpoint { insecure: unsafe_ssl, auth, ..Endpoint::default() },
        authorization,
        within: trigger.http_timeout,
        web: Arc::clone(&backends.web),
    };
    Ok(searched.scaler(trigger, access))
}
