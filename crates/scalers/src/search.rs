//! Searches of Elasticsearch and OpenSearch, and the number in what they find.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sources::http::Endpoint;

use crate::answers::{excerpt, json as read, parsed};
use crate::metric::{external, milli};
use crate::metrics_api::query::json::find;
use crate::single::{Single, Source, ask};
use crate::web::{Call, Web, path_escaped};
use crate::{Answer, Error, Scaler, Trigger};

crate::parameters! {
    /// What is searched, and which number counts.
    pub struct Searched {
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
}

/// How to speak with a server.
pub(crate) struct Access {
    /// What it is called in names and errors.
    pub(crate) product: &'static str,
    /// Where it is, or why that is not known; the first that answers counts.
    pub(crate) addresses: Result<Vec<String>, Error>,
    /// Trust, user and password.
    pub(crate) endpoint: Endpoint,
    /// What the header `authorization` says, if it is not user and password.
    pub(crate) authorization: Option<String>,
    pub(crate) within: Duration,
    pub(crate) web: Arc<Web>,
}

/// A search, and whom it is asked of.
struct Search {
    access: Access,
    searched: Searched,
    question: Question,
}

impl Searched {
    /// Either a template or a query.
    pub(crate) fn check_one(&self) -> Result<(), String> {
        match (self.template.is_empty(), self.query.is_empty()) {
            (true, true) => Err("either searchTemplateName or query must be provided".to_owned()),
            (false, false) => Err("cannot provide both searchTemplateName and query".to_owned()),
            _ => Ok(()),
        }
    }

    /// Its scaler.
    pub(crate) fn scaler(self, trigger: &Trigger, access: Access) -> Arc<dyn Scaler> {
        let what = if self.template.is_empty() { "query" } else { &self.template };
        let spec = external(trigger, &format!("{}-{what}", access.product), milli(self.target_value));
        let (activation, question) = (self.activation_target_value, Question::new(&self));
        Arc::new(Single { spec, activation, source: Search { access, searched: self, question } })
    }
}

impl Source for Search {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let Access { product, addresses, endpoint, authorization, within, web } = &self.access;
            let Searched { value_location, ignore_null_values, .. } = &self.searched;
            let mut failed = Error::new("no addresses are given");
            for address in addresses.as_ref().map_err(Clone::clone)? {
                let url = format!("{}{}", address.trim_end_matches('/'), self.question.path);
                let mut call = Call::post(url, self.question.body.clone(), *within)
                    .access(endpoint.clone())
                    .header("content-type", "application/json")?;
                if let Some(authorization) = authorization {
                    call = call.header("authorization", authorization)?;
                }
                match ask(web, call).await {
                    Ok((status, body)) => {
                        return value(product, status, &body, value_location, *ignore_null_values);
                    }
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        })
    }
}

/// What is searched for.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) path: String,
    pub(crate) body: String,
}

impl Question {
    /// By a query, or by a template and its parameters (`name:value`).
    pub(crate) fn new(of: &Searched) -> Self {
        let Searched { indexes, query, template, parameters, .. } = of;
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

/// The number in an answer.
pub(crate) fn value(
    product: &str,
    status: u16,
    body: &[u8],
    location: &str,
    ignore_null_values: bool,
) -> Result<f64, Error> {
    match status {
        200..=299 => {}
        401 => {
            return Err(Error::new(format!(
                "{product} authentication failed (HTTP 401): check username and password"
            )));
        }
        403 => {
            let why = "user has insufficient permissions";
            return Err(Error::new(format!("{product} authorization failed (HTTP 403): {why}")));
        }
        // An error is not an answer, even if the place should be there.
        _ => return Err(Error::new(format!("{product} returned {status}: {}", excerpt(body)))),
    }
    let answer = read(body)?;
    let found = find(&answer, location)?;
    let must = "valueLocation must point to value of type number but got:";
    match found.as_deref() {
        None | Some(Value::Null) if ignore_null_values => Ok(0.0),
        None | Some(Value::Null) => Err(Error::new(format!("{must} 'Null'"))),
        Some(Value::Number(number)) => {
            number.as_f64().ok_or_else(|| Error::new(format!("{must} '{number}'")))
        }
        Some(Value::String(text)) => parsed(text).ok_or_else(|| Error::new(format!("{must} 'String'"))),
        Some(Value::Bool(_)) => Err(Error::new(format!("{must} 'True' or 'False'"))),
        Some(Value::Array(_) | Value::Object(_)) => Err(Error::new(format!("{must} 'JSON'"))),
    }
}
