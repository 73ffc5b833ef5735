//! Tokens of Microsoft Entra ID: workload identity federation and client secrets.

use std::time::Duration;

use serde_json::Value;
use sources::http::Secret;

use super::{Identities, REQUEST_TIMEOUT, is_name, send, send_to_tenant, token_file};
use crate::ScalerError;
use crate::oauth;
use crate::responses::{excerpt, hidden, json};
use crate::web::{HttpCall, SharedHttpClient, escaped};

/// The authority of the public cloud.
const PUBLIC_AUTHORITY: &str = "https://login.microsoftonline.com";
/// The authorities of Azure's clouds. A trigger cannot name another one, because the operator's token is sent there.
const AUTHORITIES: [&str; 4] = [
    PUBLIC_AUTHORITY,
    "https://login.microsoftonline.us",
    "https://login.chinacloudapi.cn",
    "https://login.partner.microsoftonline.cn",
];
/// How the assertion of a federated token is named.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The identity of a request to Azure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AzureIdentity {
    /// The federated identity of the operator's ServiceAccount (`azure-workload`); empty fields are those of its pod.
    Workload {
        /// Client id.
        client: String,
        /// Tenant id.
        tenant: String,
        /// Authority host.
        authority: String,
    },
    /// An application with a secret.
    ClientSecret {
        /// Client id.
        client: String,
        /// Tenant id.
        tenant: String,
        /// Client secret.
        secret: Secret,
        /// Authority host; the one of the public cloud if empty.
        authority: String,
    },
}

/// Identity and scope.
pub(super) type AzureCacheKey = (AzureIdentity, String);

impl AzureIdentity {
    /// The identity of a pod identity `azure-workload`.
    pub fn of(identity: &api::keda::PodIdentity) -> Self {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Self::Workload {
            client: text(&identity.identity_id),
            tenant: text(&identity.identity_tenant_id),
            authority: text(&identity.identity_authority_host),
        }
    }
}

impl Identities {
    /// A bearer token of an identity for a scope, e.g. `https://vault.azure.net/.default`.
    pub async fn azure(
        &self,
        identity: &AzureIdentity,
        scope: &str,
        web: &SharedHttpClient,
    ) -> Result<Secret, ScalerError> {
        let key = (identity.clone(), scope.to_owned());
        self.azure.get(&key, || self.azure_token(identity, scope, web)).await
    }

    async fn azure_token(
        &self,
        identity: &AzureIdentity,
        scope: &str,
        web: &SharedHttpClient,
    ) -> Result<(Secret, Duration), ScalerError> {
        let (client, tenant, authority, credential) = match identity {
            AzureIdentity::ClientSecret { client, tenant, secret, authority } => {
                let credential = Secret::new(format!("client_secret={}", escaped(secret.reveal())));
                (client.clone(), tenant.clone(), authority.clone(), credential)
            }
            AzureIdentity::Workload { client, tenant, authority } => {
                let own = |given: &str, name| match given {
                    "" => self.environment.variable(name).unwrap_or_default().to_owned(),
                    given => given.to_owned(),
                };
                let Some(file) = self.environment.variable("AZURE_FEDERATED_TOKEN_FILE") else {
                    bail!(
                        "azure-workload cannot be used: the operator's pod has no federated token \
                         (AZURE_FEDERATED_TOKEN_FILE): label its ServiceAccount and pod for workload identity"
                    );
                };
                let token = token_file(file).await?;
                let credential = Secret::new(format!(
                    "client_assertion={}&client_assertion_type={}",
                    escaped(token.reveal()),
                    escaped(ASSERTION_TYPE)
                ));
                let authority = own(authority, "AZURE_AUTHORITY_HOST");
                (own(client, "AZURE_CLIENT_ID"), own(tenant, "AZURE_TENANT_ID"), authority, credential)
            }
        };
        let who = format!("Azure client {client} in tenant {tenant} cannot be used");
        if !is_name(&client) || !is_name(&tenant) {
            bail!("{who}: client and tenant must be given by the pod identity or by the operator's pod");
        }
        let (authority, is_tenants) = self.authority(identity, &authority)?;
        let url = format!("{authority}/{tenant}/oauth2/v2.0/token");
        let form = format!(
            "client_id={client}&grant_type=client_credentials&scope={}&{}",
            escaped(scope),
            credential.reveal()
        );
        let call = HttpCall::post(url, form, REQUEST_TIMEOUT)
            .header("content-type", "application/x-www-form-urlencoded")?;
        let sent = if is_tenants { send_to_tenant(web, call).await } else { send(web, call).await };
        let (status, body) = sent.map_err(|error| error.inside(&who))?;
        if status != 200 {
            bail!("{who}: the token endpoint returned {status}: {}", refusal(&body));
        }
        oauth::answer(status, &body).map_err(|error| error.inside(who))
    }

    /// The authority without a trailing slash, and whether a tenant has chosen it: a private cloud, to which they send a secret of
    /// their own.
    fn authority(&self, identity: &AzureIdentity, requested: &str) -> Result<(String, bool), ScalerError> {
        let requested = requested.trim_end_matches('/');
        let of_process =
            self.environment.variable("AZURE_AUTHORITY_HOST").map(|host| host.trim_end_matches('/'));
        match (identity, requested) {
            (_, "") => Ok((PUBLIC_AUTHORITY.to_owned(), false)),
            (_, requested) if AUTHORITIES.contains(&requested) || of_process == Some(requested) => {
                Ok((requested.to_owned(), false))
            }
            (AzureIdentity::ClientSecret { .. }, requested) if requested.starts_with("https://") => {
                Ok((requested.to_owned(), true))
            }
            (AzureIdentity::ClientSecret { .. }, requested) => {
                Err(scaler_error!("activeDirectoryEndpoint {requested} must begin with https://"))
            }
            (AzureIdentity::Workload { .. }, requested) => Err(scaler_error!(
                "identityAuthorityHost {requested} is not an authority of Azure or of the operator"
            )),
        }
    }
}

/// Why a token was refused.
fn refusal(body: &[u8]) -> String {
    let Ok(answer) = json(body) else { return hidden(body) };
    let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default();
    excerpt(&format!("{}: {}", text("error"), text("error_description")))
}
