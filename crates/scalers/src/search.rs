//! Searches of Elasticsearch and OpenSearch, and the number in their results.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sources::http::Endpoint;

use crate::metric::{external, milli};
use crate::metrics_api::query::stream::find;
use crate::responses::{error_field, no_json, parsed};
use crate::single::{SingleMetricScaler, ValueSource, send};
use crate::web::{HttpCall, SharedHttpClient, path_escaped};
use crate::{ParseError, Scaler, ScalerError, ScalerFuture, Trigger};

crate::parameters! {
    /// The search, and the location of the value.
    pub struct SearchParameters {
        /// The indexes, e.g. `orders;returns`.
        indexes: Vec<String> = "index" in [Authentication, Metadata], required, separator ';';
        /// The search template.
        template: String = "searchTemplateName" in [Authentication, Metadata];
        /// The query; replaces the template.
        query: String = "query" in [Authentication, Metadata];
        /// Parameters of the template, e.g. `status:open;days:7`.
        parameters: Vec<String> = "parameters" in [Metadata], separator ';';
        /// Path of the number (GJSON syntax), e.g. `hits.total.value`.
        value_location: String = "valueLocation" in [Authentication, Metadata], required;
        /// Target value per replica.
        target_value: f64 = "targetValue" in [Authentication, Metadata], required;
        /// The trigger is active above this value.
        activation_target_value: f64 = "activationTargetValue" in [Metadata], default "0";
        /// Treats a missing number as 0 instead of an error.
        ignore_null_values: bool = "ignoreNullValues" in [Metadata], default "false";
    }
}

/// Addresses, credentials and TLS settings.
pub(crate) struct SearchAccess {
    /// Name of the product in metric names and errors.
    pub(crate) product: &'static str,
    /// The addresses, or why they are invalid; the first that responds is used.
    pub(crate) addresses: Result<Vec<String>, ScalerError>,
    /// TLS settings, user and password.
    pub(crate) endpoint: Endpoint,
    /// The header `authorization`, if it is not basic authentication.
    pub(crate) authorization: Option<String>,
    pub(crate) within: Duration,
    pub(crate) web: Arc<SharedHttpClient>,
}

/// A search and its server.
struct Search {
    access: SearchAccess,
    searched: SearchParameters,
    request: SearchRequest,
}

impl SearchParameters {
    /// Checks that there is either a template or a query.
    pub(crate) fn check_one(&self) -> Result<(), ParseError> {
        match (self.template.is_empty(), self.query.is_empty()) {
            (true, true) => Err("either searchTemplateName or query must be provided".into()),
            (false, false) => Err("cannot provide both searchTemplateName and query".into()),
            _ => Ok(()),
        }
    }

    /// Builds the scaler.
    pub(crate) fn scaler(self, trigger: &Trigger, access: SearchAccess) -> Arc<dyn Scaler> {
        let what = if self.template.is_empty() { "query" } else { &self.template };
        let spec = external(trigger, &format!("{}-{what}", access.product), milli(self.target_value));
        let (activation, request) = (self.activation_target_value, SearchRequest::new(&self));
        Arc::new(SingleMetricScaler { spec, activation, source: Search { access, searched: self, request } })
    }
}

impl ValueSource for Search {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let SearchParameters { value_location, ignore_null_values, .. } = &self.searched;
            let (status, body) = self.access.search(&self.request).await?;
            value(self.access.product, status, &body, value_location, *ignore_null_values)
        })
    }
}

impl SearchAccess {
    /// Sends JSON to the first address that responds; returns status and body.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Result<(u16, Bytes), ScalerError> {
        self.send(path, body, HttpCall::post).await
    }

    /// The same for a search, whose response equal searches share.
    async fn search(
        &self,
        SearchRequest { path, body }: &SearchRequest,
    ) -> Result<(u16, Bytes), ScalerError> {
        self.send(path, body, HttpCall::post_query).await
    }

    async fn send(
        &self,
        path: &str,
        body: &str,
        post: fn(String, String, Duration) -> HttpCall,
    ) -> Result<(u16, Bytes), ScalerError> {
        let mut failed = scaler_error!("no addresses are given");
        for address in self.addresses.as_ref().map_err(Clone::clone)? {
            let url = format!("{}{path}", address.trim_end_matches('/'));
            let mut call = post(url, body.to_owned(), self.within)
                .access(self.endpoint.clone())
                .header("content-type", "application/json")?;
            if let Some(authorization) = &self.authorization {
                call = call.header("authorization", authorization)?;
            }
            match send(&self.web, call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// Path and body of a search request.
#[derive(Clone, Debug)]
pub(crate) struct SearchRequest {
    pub(crate) path: String,
    pub(crate) body: String,
}

impl SearchRequest {
    /// A search with a query, or with a template and its parameters (`name:value`).
    pub(crate) fn new(of: &SearchParameters) -> Self {
        let SearchParameters { indexes, query, template, parameters, .. } = of;
        let indexes: Vec<String> = indexes.iter().map(|index| path_escaped(index)).collect();
        let indexes = indexes.join(",");
        if template.is_empty() {
            return Self { path: format!("/{indexes}/_search"), body: query.clone() };
        }
        let pairs = parameters.iter().filter_map(|parameter| parameter.split_once(':'));
        let params: Map<String, Value> =
            pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().into())).collect();
        let body = json!({"id": template, "params": params}).to_string();
        Self { path: format!("/{indexes}/_search/template"), body }
    }
}

/// The number in a response.
pub(crate) fn value(
    product: &str,
    status: u16,
    body: &[u8],
    location: &str,
    ignore_null_values: bool,
) -> Result<f64, ScalerError> {
    match status {
        200..=299 => {}
        401 => {
            bail!("{product} authentication failed (HTTP 401): check username and password");
        }
        403 => {
            let why = "user has insufficient permissions";
            bail!("{product} authorization failed (HTTP 403): {why}");
        }
        // An error response is not decoded, even if it has a number at the location.
        _ => bail!("{product} returned {status}: {}", error_field(body, "/error/reason")),
    }
    let found = find(body, location).map_err(|error| error.described(|error| no_json(error, body)))?;
    let must = "valueLocation must point to value of type number but got:";
    match &found {
        None | Some(Value::Null) if ignore_null_values => Ok(0.0),
        None | Some(Value::Null) => Err(scaler_error!("{must} 'Null'")),
        Some(Value::Number(number)) => number.as_f64().ok_or_else(|| scaler_error!("{must} '{number}'")),
        Some(Value::String(text)) => parsed(text).ok_or_else(|| scaler_error!("{must} 'String'")),
        Some(Value::Bool(_)) => Err(scaler_error!("{must} 'True' or 'False'")),
        Some(Value::Array(_) | Value::Object(_)) => Err(scaler_error!("{must} 'JSON'")),
    }
}
