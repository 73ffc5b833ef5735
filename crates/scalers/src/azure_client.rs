//! Requests to the APIs of Azure with the service principal or the pod identity of a trigger.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use crate::azure_clouds::of_cloud;
use crate::backends::Backends;
use crate::identity::{AzureIdentity, Identities};
use crate::parameters::Secret;
use crate::responses::{excerpt, hidden, json};
use crate::single::send;
use crate::web::{HttpCall, SharedHttpClient};
use crate::{ScalerError, Trigger};

/// The authorities of Azure's clouds; that of the public one is the default.
const AUTHORITIES: [&str; 3] = ["", "https://login.microsoftonline.us", "https://login.chinacloudapi.cn"];

/// The authority of Azure's cloud in Germany, whose name KEDA accepts. That cloud has ended, so a login fails, but the secret of a
/// service principal is not sent to another cloud.
const GERMAN_AUTHORITY: &str = "https://login.microsoftonline.de";

/// The service principal and the cloud in the parameters of a trigger.
pub(crate) struct AzurePrincipal<'a> {
    pub(crate) client: &'a str,
    pub(crate) tenant: &'a str,
    pub(crate) secret: &'a Secret,
    pub(crate) cloud: &'a str,
    /// Token endpoint of a private cloud.
    pub(crate) authority: &'a str,
}

impl AzurePrincipal<'_> {
    /// The identity of a trigger: its pod identity, or else the service principal.
    pub(crate) fn identity(&self, trigger: &Trigger) -> AzureIdentity {
        if trigger.identity.provider == "azure-workload" {
            return AzureIdentity::of(&trigger.identity);
        }
        self.client_secret()
    }

    /// The authority that gives tokens; empty for that of the public cloud. Only private clouds have one that a tenant names.
    fn authority_url(&self) -> &str {
        match of_cloud(self.cloud, AUTHORITIES) {
            Some(authority) => authority,
            None if self.cloud.eq_ignore_ascii_case("AzureGermanCloud") => GERMAN_AUTHORITY,
            None => self.authority,
        }
    }

    /// The identity of the service principal.
    pub(crate) fn client_secret(&self) -> AzureIdentity {
        AzureIdentity::ClientSecret {
            client: self.client.to_owned(),
            tenant: self.tenant.to_owned(),
            secret: self.secret.clone(),
            authority: self.authority_url().to_owned(),
        }
    }
}

/// Sends requests to an API of Azure for one trigger.
pub(crate) struct AzureClient {
    /// URL of the API without a trailing slash, or why the identity is not sent there.
    endpoint: Result<String, ScalerError>,
    identity: AzureIdentity,
    identities: Arc<Identities>,
    unsafe_ssl: bool,
    /// Timeout of requests.
    within: Duration,
    web: Arc<SharedHttpClient>,
}

impl AzureClient {
    /// A client of the API at one of `endpoints` (see [`of_cloud`]), in other clouds at `own`.
    pub(crate) fn new(
        principal: &AzurePrincipal<'_>,
        endpoints: [&'static str; 3],
        own: &str,
        trigger: &Trigger,
        backends: &Backends,
    ) -> Self {
        let endpoint = match of_cloud(principal.cloud, endpoints) {
            Some(endpoint) => Ok(endpoint.to_owned()),
            // A token of the operator is sent to Azure's own hosts only.
            None if trigger.identity.provider == "azure-workload" => Err(scaler_error!(
                "azure-workload can be used in Azure's own clouds only: give a service principal in cloud {}",
                principal.cloud
            )),
            None => Ok(own.trim_end_matches('/').to_owned()),
        };
        Self::at(endpoint, principal, trigger, backends)
    }

    /// A client of the API at a URL without a trailing slash. It is checked already that a token of the operator may be sent there.
    pub(crate) fn at(
        endpoint: Result<String, ScalerError>,
        principal: &AzurePrincipal<'_>,
        trigger: &Trigger,
        backends: &Backends,
    ) -> Self {
        Self {
            endpoint,
            identity: principal.identity(trigger),
            identities: backends.state(),
            unsafe_ssl: false,
            within: trigger.http_timeout,
            web: Arc::clone(&backends.web),
        }
    }

    /// The same with another timeout.
    pub(crate) fn timeout(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Accepts any server certificate, unless a token of the operator is sent.
    pub(crate) fn unsafe_ssl(self, yes: bool) -> Self {
        let unsafe_ssl = yes && matches!(self.identity, AzureIdentity::ClientSecret { .. });
        Self { unsafe_ssl, ..self }
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.web.now()
    }

    /// Sends `GET`; returns status and body. Requests with the same key share a response, if there is a key.
    pub(crate) async fn get(&self, path: &str, same_as: Option<String>) -> Result<(u16, Bytes), ScalerError> {
        let call = HttpCall::get(format!("{}{path}", self.endpoint()?), self.within);
        self.send(HttpCall { same_as, ..call }).await
    }

    /// Sends JSON with `POST`; returns status and body.
    pub(crate) async fn post(&self, path: &str, body: String) -> Result<(u16, Bytes), ScalerError> {
        let call = HttpCall::post(format!("{}{path}", self.endpoint()?), body, self.within);
        self.send(call.header("content-type", "application/json")?).await
    }

    async fn send(&self, call: HttpCall) -> Result<(u16, Bytes), ScalerError> {
        let scope = format!("{}/.default", self.endpoint()?);
        let token = self.identities.azure(&self.identity, &scope, &self.web).await?;
        let call = call.header("authorization", &format!("Bearer {}", token.reveal()))?;
        send(&self.web, call.unsafe_ssl(self.unsafe_ssl)).await
    }

    fn endpoint(&self) -> Result<&str, ScalerError> {
        self.endpoint.as_deref().map_err(Clone::clone)
    }
}

/// An error unless the response is one of success; it quotes the message in the response.
pub(crate) fn check_azure_status(product: &str, status: u16, body: &[u8]) -> Result<(), ScalerError> {
    if status == 200 {
        return Ok(());
    }
    let message = json(body).ok().and_then(|answer| {
        let found = answer.pointer("/error/message").or_else(|| answer.get("message"));
        found.and_then(Value::as_str).map(excerpt)
    });
    Err(scaler_error!("{product} returned {status}: {}", message.unwrap_or_else(|| hidden(body))))
}

/// The object in a response of an API of Azure, or the error in it.
pub(crate) fn azure_answer(product: &str, status: u16, body: &[u8]) -> Result<Value, ScalerError> {
    check_azure_status(product, status, body)?;
    match json(body)? {
        object @ Value::Object(_) => Ok(object),
        _ => Err(scaler_error!("the answer of {product} is not an object: {}", hidden(body))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_of_triggers() {
        let secret = Secret::new("hunter2");
        let principal =
            |cloud, authority| AzurePrincipal { client: "c", tenant: "t", secret: &secret, cloud, authority };
        let authority = |cloud, authority| match principal(cloud, authority).identity(&Trigger::default()) {
            AzureIdentity::ClientSecret { client, tenant, authority, .. } => {
                assert_eq!((&*client, &*tenant), ("c", "t"));
                authority
            }
            other @ AzureIdentity::Workload { .. } => panic!("{other:?}"),
        };
        // Only private clouds have a token endpoint of their own.
        assert_eq!(authority("", "https://evil.example"), "");
        assert_eq!(authority("AzureChinaCloud", ""), "https://login.chinacloudapi.cn");
        assert_eq!(authority("Private", "https://login.example"), "https://login.example");
        // A cloud that has ended does not become the public one.
        assert_eq!(authority("azureGermanCloud", "https://evil.example"), "https://login.microsoftonline.de");
        let mut trigger = Trigger::default();
        trigger.identity.provider = "azure-workload".to_owned();
        assert!(matches!(principal("", "").identity(&trigger), AzureIdentity::Workload { .. }));
    }

    #[test]
    fn answers_are_objects() {
        assert!(azure_answer("Azure", 200, b"{}").is_ok());
        let error = |status, body: &str| azure_answer("Azure", status, body.as_bytes()).unwrap_err().message;
        assert_eq!(
            error(403, r#"{"error": {"code": "x", "message": "denied"}}"#),
            "Azure returned 403: denied"
        );
        assert_eq!(
            error(400, r#"{"code": "x", "message": "no such metric"}"#),
            "Azure returned 400: no such metric"
        );
        assert_eq!(error(503, "busy"), "Azure returned 503: (4 bytes, not shown)");
        assert_eq!(error(200, "[]"), "the answer of Azure is not an object: (2 bytes, not shown)");
        assert!(error(200, "<html>").contains("not JSON"));
    }
}
