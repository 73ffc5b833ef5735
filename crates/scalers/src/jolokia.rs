//! Jolokia, as both ActiveMQs serve it: one number of an MBean.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::answers::{excerpt, json, kind};
use crate::parameters::Secret;
use crate::single::{Source, ask};
use crate::web::{Call, Web};
use crate::{Answer, Error};

/// An attribute of an MBean that is a number.
pub(crate) struct Attribute {
    /// Where it is read.
    pub(crate) url: String,
    /// What the header `Origin` says: Jolokia refuses requests that come from nowhere.
    pub(crate) origin: String,
    pub(crate) username: String,
    pub(crate) password: Secret,
    pub(crate) unsafe_ssl: bool,
    pub(crate) within: Duration,
    pub(crate) web: Arc<Web>,
}

impl Source for Attribute {
    fn value(&self) -> Answer<'_, f64> {
        Box::pin(async {
            let call = Call::get(&*self.url, self.within)
                .unsafe_ssl(self.unsafe_ssl)
                .basic(&self.username, &self.password)
                .header("Origin", &self.origin)?;
            let (status, body) = ask(&self.web, call).await?;
            value(status, &body)
        })
    }
}

/// The first of these that is empty is an error, in the words beside it.
pub(crate) fn all_given<const N: usize>(texts: [(&String, &str); N]) -> Result<(), String> {
    match texts.into_iter().find(|(text, _)| text.is_empty()) {
        Some((_, missing)) => Err(missing.to_owned()),
        None => Ok(()),
    }
}

/// The number that Jolokia read. It says what went wrong in the body, even where the status is 200.
pub(crate) fn value(status: u16, body: &[u8]) -> Result<f64, Error> {
    if status != 200 {
        return Err(Error::new(format!("ActiveMQ management endpoint returned {status}: {}", excerpt(body))));
    }
    let answer = json(body)?;
    match answer.get("status").and_then(Value::as_u64) {
        Some(200) => {}
        Some(status) => {
            let why = answer.get("error").and_then(Value::as_str).unwrap_or("no reason given");
            let why = excerpt(why.as_bytes());
            return Err(Error::new(format!("ActiveMQ management endpoint returned status {status}: {why}")));
        }
        None => {
            let found = kind(answer.get("status"));
            return Err(Error::new(format!("the answer has {found} at status; it is not one of Jolokia")));
        }
    }
    crate::answers::number(&answer, "/value")
}
