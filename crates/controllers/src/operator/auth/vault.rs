//! Secrets of HashiCorp Vault: log in, renew, read (docs/spec/keda.md 1.3, step 7).
//!
//! ```text
//! query    requests and responses, without IO
//! ```

mod query;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::keda::{HashiCorpVault, VaultCredential};
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use sources::http::{Endpoint, HttpClient, HttpRequest, Secret};

use super::steps::AuthSource;
use super::{SourceRef, VaultRules, files};
use query::{VaultRequest, groups, value};

/// Limits of one response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Servers whose connections are kept.
const MAX_CACHED_CLIENTS: usize = 64;
/// The token of the operator's own service account.
const OWN_TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Vault servers, each with its connections.
#[derive(Clone)]
pub(super) struct Vaults {
    rules: Arc<VaultRules>,
    clients: Arc<Mutex<BTreeMap<String, HttpClient>>>,
}

/// A session on a server.
struct VaultSession {
    client: HttpClient,
    namespace: String,
    token: Secret,
}

impl Vaults {
    pub(super) fn new(rules: VaultRules) -> Self {
        Self { rules: Arc::new(rules), clients: Arc::default() }
    }

    /// All Vault parameters of a TriggerAuthentication.
    pub(super) async fn read(
        &self,
        source: &AuthSource<'_>,
        vault: &HashiCorpVault,
        seen: &mut Vec<SourceRef>,
    ) -> Result<BTreeMap<String, String>, String> {
        let login = self.log_in(source, vault, seen).await?;
        login.renew().await?;
        let mut out = BTreeMap::new();
        for (group, secrets) in groups(&vault.secrets) {
            let data = login.fetch(group).await;
            for secret in secrets {
                let text = data.as_ref().map_err(Clone::clone).and_then(|data| value(data, secret));
                out.insert(secret.parameter.clone(), source.lenient(text)?);
            }
        }
        Ok(out)
    }

    async fn log_in(
        &self,
        source: &AuthSource<'_>,
        vault: &HashiCorpVault,
        seen: &mut Vec<SourceRef>,
    ) -> Result<VaultSession, String> {
        let client = self.client(&vault.address)?;
        let none = VaultCredential::default();
        let credential = vault.credential.as_ref().unwrap_or(&none);
        let mut login = VaultSession { client, namespace: vault.namespace.clone(), token: Secret::default() };
        login.token = match vault.authentication.as_str() {
            "token" => self.token(credential)?,
            "kubernetes" => {
                if vault.mount.is_empty() {
                    return Err("auth mount not in config".to_owned());
                }
                if vault.role.is_empty() {
                    return Err("k8s role not in config".to_owned());
                }
                let jwt = account_token(source, credential, seen).await?;
                login.with_kubernetes(&vault.mount, &vault.role, &jwt).await?
            }
            other => {
                return Err(format!(
                    "vault auth method {other:?} is not supported; token and kubernetes are"
                ));
            }
        };
        Ok(login)
    }

    fn token(&self, credential: &VaultCredential) -> Result<Secret, String> {
        let own = self.rules.token.clone().filter(|token| !token.reveal().is_empty());
        let given = || (!credential.token.is_empty()).then(|| Secret::new(credential.token.clone()));
        own.or_else(given)
            .ok_or_else(|| "vault token is neither in VAULT_TOKEN nor in credential.token".to_owned())
    }

    /// The client of a server.
    fn client(&self, address: &str) -> Result<HttpClient, String> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(address) {
            return Ok(client.clone());
        }
        let endpoint = Endpoint {
            ca_file: self.rules.ca_file.clone(),
            insecure: self.rules.insecure,
            ..Endpoint::at(address)
        };
        let client = HttpClient::new(endpoint).map_err(|error| error.to_string())?;
        if clients.len() >= MAX_CACHED_CLIENTS {
            clients.clear();
        }
        clients.insert(address.to_owned(), client.clone());
        Ok(client)
    }
}

/// The token for the Kubernetes login: of a service account in the workload's namespace, or from a file.
async fn account_token(
    source: &AuthSource<'_>,
    credential: &VaultCredential,
    seen: &mut Vec<SourceRef>,
) -> Result<String, String> {
    if !credential.service_account_name.is_empty() {
        let namespace = source.asked.namespace;
        return source.token(namespace, &credential.service_account_name, seen).await;
    }
    match credential.service_account.as_str() {
        "" => files::token(OWN_TOKEN_FILE).await,
        path => files::token(path).await,
    }
}

impl VaultSession {
    async fn with_kubernetes(&self, mount: &str, role: &str, jwt: &str) -> Result<Secret, String> {
        let body = json!({"jwt": jwt, "role": role});
        let answer = self.ask(Method::POST, &format!("auth/{mount}/login"), Some(&body)).await?;
        let token = answer.pointer("/auth/client_token").and_then(Value::as_str);
        token.map(Secret::new).ok_or_else(|| "vault login gave no token".to_owned())
    }

    /// Checks the token, and renews it if it is renewable.
    async fn renew(&self) -> Result<(), String> {
        let answer = self.ask(Method::GET, "auth/token/lookup-self", None).await?;
        if answer.pointer("/data/renewable").and_then(Value::as_bool) == Some(true) {
            // The token is valid now, which is enough to read.
            if let Err(error) = self.ask(Method::POST, "auth/token/renew-self", Some(&json!({}))).await {
                tracing::warn!(vault = self.client.server(), %error, "token was not renewed");
            }
        }
        Ok(())
    }

    /// Reads a path, or issues a certificate.
    async fn fetch(&self, group: VaultRequest<'_>) -> Result<Value, String> {
        let answer = match group.body() {
            Some(body) => self.ask(Method::POST, group.path, Some(&body)).await,
            None => self.ask(Method::GET, group.path, None).await,
        };
        let named = |error: String| format!("vault secret {:?}: {error}", group.path);
        group.data(answer.map_err(named)?).map_err(named)
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let segments = std::iter::once("v1").chain(path.split('/').filter(|part| !part.is_empty()));
        let mut ask = HttpRequest::new(method, cluster::request::path(segments))
            .timeout(RESPONSE_TIMEOUT)
            .max_bytes(MAX_RESPONSE_BYTES);
        for (name, text) in [("x-vault-token", self.token.reveal()), ("x-vault-namespace", &self.namespace)] {
            if !text.is_empty() {
                let mut value = HeaderValue::from_str(text).map_err(|_| format!("{name} cannot be sent"))?;
                value.set_sensitive(true);
                ask = ask.header(HeaderName::from_static(name), value);
            }
        }
        if let Some(body) = body {
            ask = ask.header(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            ask = ask.body(body.to_string());
        }
        let response = self.client.send(ask).await.map_err(|error| error.to_string())?;
        query::answer(response.status.as_u16(), &response.body)
            .map_err(|error| format!("vault {}: {error}", self.client.server()))
    }
}
