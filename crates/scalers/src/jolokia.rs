//! Jolokia of ActiveMQ Classic and Artemis: one numeric attribute of an MBean.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sources::http::Endpoint;

use crate::parameters::Secret;
use crate::responses::{error_field, excerpt, json, kind};
use crate::single::{ValueSource, send};
use crate::web::{HttpCall, SharedHttpClient};
use crate::{ParseError, ScalerError, ScalerFuture};

/// A numeric attribute of an MBean.
pub(crate) struct Attribute {
    /// URL of the attribute.
    pub(crate) url: String,
    /// Value of the header `Origin`; Jolokia refuses requests without it.
    pub(crate) origin: String,
    pub(crate) username: String,
    pub(crate) password: Secret,
    /// TLS settings.
    pub(crate) trust: Endpoint,
    pub(crate) within: Duration,
    pub(crate) web: Arc<SharedHttpClient>,
}

impl ValueSource for Attribute {
    fn value(&self) -> ScalerFuture<'_, f64> {
        Box::pin(async {
            let call = HttpCall::get(&*self.url, self.within)
                .access(self.trust.clone())
                .basic(&self.username, &self.password)
                .header("Origin", &self.origin)?;
            let (status, body) = send(&self.web, call).await?;
            value(status, &body)
        })
    }
}

/// Fails with the message of the first empty text.
pub(crate) fn all_given<const N: usize>(texts: [(&String, &str); N]) -> Result<(), ParseError> {
    match texts.into_iter().find(|(text, _)| text.is_empty()) {
        Some((_, missing)) => Err(missing.into()),
        None => Ok(()),
    }
}

/// The number in Jolokia's response. Errors are in the body, even with HTTP status 200.
pub(crate) fn value(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    if status != 200 {
        bail!("ActiveMQ management endpoint returned {status}: {}", error_field(body, "/error"));
    }
    let answer = json(body)?;
    match answer.get("status").and_then(Value::as_u64) {
        Some(200) => {}
        Some(status) => {
            let why = answer.get("error").and_then(Value::as_str).unwrap_or("no reason given");
            let why = excerpt(why);
            bail!("ActiveMQ management endpoint returned status {status}: {why}");
        }
        None => {
            let found = kind(answer.get("status"));
            bail!("the answer has {found} at status; it is not one of Jolokia");
        }
    }
    crate::responses::number(&answer, "/value")
}
