//! elasticsearch: a number in what a search finds.

pub(crate) mod query;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::backends::Backends;
use crate::metric::{external, milli, target_type};
use crate::parameters::Secret;
use crate::single::{Single, Source, ask};
use crate::table::Type;
use crate::web::{Call, Web};
use crate::{Answer, Error, Scaler, Trigger};
use query::Search;

/// elasticsearch.
pub const TYPE: Type = Type {
    name: "elasticsearch",
    about: "A number in what an Elasticsearch search finds.",
    display: "elasticsearchScaler",
    parameters: Parameters::PARAMETERS,
    push: false,
    build,
};

crate::parameters! {
    /// What elasticsearch accepts: addresses with user and password, or a cloud id with an API key.
    pub struct Parameters of "error parsing elasticsearch metadata" {
        /// Where Elasticsearch is, e.g. `https://es-0.search:9200,https://es-1.search:9200`; the first that answers counts.
        addresses: Vec<String> = "addresses" in [Authentication, Metadata];
        /// Accepts any certificate of the server.
        unsafe_ssl: bool = "unsafeSsl" in [Metadata], default "false";
        /// User.
        username: String = "username" in [Authentication, Metadata];
        /// Password.
        password: Secret = "password" in [Authentication, Environment, Metadata];
        /// The id of a deployment in Elastic Cloud.
        cloud_id: String = "cloudID" in [Authentication, Metadata];
        /// Its API key.
        api_key: Secret = "apiKey" in [Authentication, Metadata];
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
        /// Has no effect any more.
        metric_name: Option<String> = "metricName" in [Metadata];
    }
    check Parameters::check
}

impl Parameters {
    fn check(&mut self, _: &Trigger) -> Result<(), String> {
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
            (_, true) if !user || !password => {
                "both username and password must be provided when addresses is used"
            }
            _ => return one_search(&self.template, &self.query),
        };
        Err(text.to_owned())
    }
}

/// Either a template or a query.
pub(crate) fn one_search(template: &str, query: &str) -> Result<(), String> {
    match (template.is_empty(), query.is_empty()) {
        (true, true) => Err("either searchTemplateName or query must be provided".to_owned()),
        (false, false) => Err("cannot provide both searchTemplateName and query".to_owned()),
        _ => Ok(()),
    }
}

struct Elasticsearch {
    parameters: Parameters,
    search: Search,
    within: Duration,
    web: Arc<Web>,
}

fn build(trigger: &Trigger, backends: &Backends) -> Result<Arc<dyn Scaler>, Error> {
    target_type(trigger)?;
    let parameters = Parameters::read(trigger)?;
    let Parameters { indexes, query, template, parameters: values, .. } = &parameters;
    let name = format!("elasticsearch-{}", if template.is_empty() { "query" } else { template });
    let spec = external(trigger, &name, milli(parameters.target_value));
    let search = Search::new(indexes, query, template, values);
    let activation = parameters.activation_target_value;
    let source =
        Elasticsearch { parameters, search, within: trigger.http_timeout, web: Arc::clone(&backends.web) };
    Ok(Arc::new(Single { spec, activation, source }))
}

impl Elasticsearch {
    fn call(&self, address: &str) -> Result<Call, Error> {
        let Parameters { username, password, api_key, unsafe_ssl, .. } = &self.parameters;
        let Search { path, body } = &self.search;
        let url = format!("{}{path}", address.trim_end_matches('/'));
        let call = Call::post(url, body.clone(), self.within).unsafe_ssl(*unsafe_ssl);
        let call = call.header("content-type", "application/json")?;
        match api_key.reveal() {
            "" => Ok(call.basic(username, password)),
            key => call.header("authorization", &format!("ApiKey {key}")),
        }
    }
}

impl Source for Elasticsearch {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Parameters { addresses, cloud_id, value_location, ignore_null_values, .. } = &self.parameters;
            let addresses = match &**cloud_id {
                "" => addresses.clone(),
                id => vec![query::cloud(id)?],
            };
            let mut failed = Error::new("no addresses are given");
            for address in &addresses {
                match ask(&self.web, self.call(address)?).await {
                    Ok((status, body)) => {
                        return query::value(
                            "elasticsearch",
                            status,
                            &body,
                            value_location,
                            *ignore_null_values,
                        );
                    }
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        })
    }
}
