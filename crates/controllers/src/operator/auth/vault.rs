//! Secrets of HashiCorp Vault: log in, renew, read (docs/spec/keda.md 1.3, step 7).
//!
//! `query` builds requests and decodes responses, without IO.

mod query;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::keda::{HashiCorpVault, VaultCredential};
use http::{HeaderName, HeaderValue, Method};
use locks::MutexExt as _;
use serde_json::{Value, json};
use sources::http::{Endpoint, HttpClient, HttpRequest, Secret};

use super::steps::AuthSource;
use super::{AuthFailure, SourceRef, VaultError, VaultRules, files};
use crate::operator::operator_identity::audiences::{TokenMode, check_claims, check_subject};
use crate::operator::operator_identity::outbound::DestinationError;
use query::{VaultRequest, groups, value};

/// Limits of one response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Servers whose connections are kept.
const MAX_CACHED_CLIENTS: usize = 64;

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
    ) -> Result<BTreeMap<String, String>, AuthFailure> {
        let failed = |error: VaultError| AuthFailure::Vault(Arc::new(error));
        let login = self.log_in(source, vault, seen).await.map_err(failed)?;
        login.renew().await.map_err(failed)?;
        let mut out = BTreeMap::new();
        for (group, secrets) in groups(&vault.secrets) {
            let data = login.fetch(group).await.map_err(Arc::new);
            for secret in secrets {
                let text = match &data {
                    Ok(data) => value(data, secret).map_err(|error| failed(error.into())),
                    Err(error) => Err(AuthFailure::Vault(Arc::clone(error))),
                };
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
    ) -> Result<VaultSession, VaultError> {
        let client = self.client(&vault.address)?;
        // Before any credential is read. The server is that of the client, so that both agree on what the address means.
        source.auth.rules.identity.outbound.check(client.server())?;
        let token = match vault.authentication.as_str() {
            "token" => {
                let (token, is_operators) = self.token(source, vault.credential.as_ref(), client.server())?;
                check_paths(vault, is_operators)?;
                token
            }
            "kubernetes" => {
                if vault.mount.is_empty() {
                    return Err(VaultError::NoMount);
                }
                if vault.role.is_empty() {
                    return Err(VaultError::NoRole);
                }
                let (jwt, is_operators) =
                    account_token(source, vault.credential.as_ref(), client.server(), seen).await?;
                check_paths(vault, is_operators)?;
                let login = VaultSession::new(client.clone(), vault, Secret::default());
                login.with_kubernetes(&vault.mount, &vault.role, &jwt).await?
            }
            other => return Err(VaultError::UnsupportedMethod(other.to_owned())),
        };
        Ok(VaultSession::new(client, vault, token))
    }

    /// The token of the operator where it may be used, else that of the object; and whether it is that of the operator.
    fn token(
        &self,
        source: &AuthSource<'_>,
        credential: Option<&VaultCredential>,
        server: &str,
    ) -> Result<(Secret, bool), VaultError> {
        let own = self.rules.token.as_ref().filter(|token| !token.reveal().is_empty());
        let own = own.map(|own| check_operator(source, server, "VAULT_TOKEN").map(|()| own.clone()));
        let given = credential.map(|credential| credential.token.as_str()).filter(|token| !token.is_empty());
        match (own, given) {
            (Some(Ok(own)), _) => Ok((own, true)),
            (_, Some(given)) => Ok((Secret::new(given), false)),
            (Some(Err(error)), None) => Err(error.into()),
            (None, None) => Err(VaultError::NoToken),
        }
    }

    /// The client of a server.
    fn client(&self, address: &str) -> Result<HttpClient, VaultError> {
        let mut clients = self.clients.locked();
        if let Some(client) = clients.get(address) {
            return Ok(client.clone());
        }
        let endpoint = Endpoint {
            ca_file: self.rules.ca_file.clone(),
            insecure: self.rules.insecure,
            ..Endpoint::at(address)
        };
        let client = HttpClient::with_proxies(endpoint, self.rules.dialer.clone(), &self.rules.proxies)?;
        if clients.len() >= MAX_CACHED_CLIENTS {
            clients.clear();
        }
        clients.insert(address.to_owned(), client.clone());
        Ok(client)
    }
}

/// Whether a credential of the operator may be sent to a server.
fn check_operator(
    source: &AuthSource<'_>,
    server: &str,
    credential: &'static str,
) -> Result<(), DestinationError> {
    if !source.may_use_operator_identity() {
        return Err(DestinationError::ClusterOnly { credential });
    }
    source.auth.rules.identity.outbound.check_operator(server, credential)
}

/// Whether all paths may be requested with this credential.
fn check_paths(vault: &HashiCorpVault, is_operators: bool) -> Result<(), VaultError> {
    let mut requests = groups(&vault.secrets).into_keys();
    match requests.find(|request| is_operators && !request.is_allowed_for_operator(&vault.namespace)) {
        Some(request) => Err(VaultError::NotForOperator(request.path.to_owned())),
        None => Ok(()),
    }
}

/// The token for the Kubernetes login: of a service account in the workload's namespace, or from a file of the operator; and whether
/// it is that of the operator.
async fn account_token(
    source: &AuthSource<'_>,
    credential: Option<&VaultCredential>,
    server: &str,
    seen: &mut Vec<SourceRef>,
) -> Result<(String, bool), VaultError> {
    let failed = |error: AuthFailure| VaultError::AccountToken(Box::new(error));
    let rules = &source.auth.rules.identity;
    let is_enforced = rules.token_mode == TokenMode::EnforceAudience;
    let file = match credential {
        Some(credential) if !credential.service_account_name.is_empty() => {
            rules.outbound.check_account_token(server)?;
            let namespace = source.query.namespace;
            let token = source.token(namespace, &credential.service_account_name, seen).await;
            return token.map(|token| (token, false)).map_err(failed);
        }
        Some(credential) if !credential.service_account.is_empty() => {
            let named = &credential.service_account;
            rules.token_file(named).ok_or_else(|| VaultError::UnknownFile(named.clone()))?
        }
        Some(_) if is_enforced => return Err(VaultError::NoAccount),
        _ => rules.default_token_file(),
    };
    check_operator(source, server, "the service account token")?;
    if is_enforced && rules.audiences.is_empty() {
        return Err(VaultError::NoApprovedAudiences);
    }
    if !is_enforced {
        tracing::warn!(vault = server, "a token is sent without a check of its audience (legacy mode)");
    }
    let now = source.auth.clock.now();
    let check = |token: &str| match rules.token_mode {
        TokenMode::EnforceAudience => check_claims(token, |own| rules.audiences.approves(own), now),
        TokenMode::Legacy => check_subject(token),
    };
    let token = files::token(file, check).await.map_err(|error| failed(error.into()))?;
    Ok((token, true))
}

impl VaultSession {
    fn new(client: HttpClient, vault: &HashiCorpVault, token: Secret) -> Self {
        Self { client, namespace: vault.namespace.clone(), token }
    }

    async fn with_kubernetes(&self, mount: &str, role: &str, jwt: &str) -> Result<Secret, VaultError> {
        let body = json!({"jwt": jwt, "role": role});
        let response = self.send(Method::POST, &format!("auth/{mount}/login"), Some(&body)).await?;
        let token = response.pointer("/auth/client_token").and_then(Value::as_str);
        token.map(Secret::new).ok_or(VaultError::LoginWithoutToken)
    }

    /// Checks the token, and renews it if it is renewable.
    async fn renew(&self) -> Result<(), VaultError> {
        let response = self.send(Method::GET, "auth/token/lookup-self", None).await?;
        if response.pointer("/data/renewable").and_then(Value::as_bool) == Some(true) {
            // The token is valid now, which is enough to read.
            if let Err(error) = self.send(Method::POST, "auth/token/renew-self", Some(&json!({}))).await {
                tracing::warn!(vault = self.client.server(), %error, "token was not renewed");
            }
        }
        Ok(())
    }

    /// Reads a path, or issues a certificate.
    async fn fetch(&self, group: VaultRequest<'_>) -> Result<Value, VaultError> {
        let response = match group.body() {
            Some(body) => self.send(Method::POST, group.path, Some(&body)).await,
            None => self.send(Method::GET, group.path, None).await,
        };
        let data = response.and_then(|response| Ok(group.data(response)?));
        data.map_err(|error| VaultError::Path { path: group.path.to_owned(), source: Box::new(error) })
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, VaultError> {
        if path.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(VaultError::DotSegment(path.to_owned()));
        }
        let segments = std::iter::once("v1").chain(query::segments(path));
        let mut request = HttpRequest::new(method, cluster::request::path(segments))
            .timeout(RESPONSE_TIMEOUT)
            .max_bytes(MAX_RESPONSE_BYTES);
        for (name, text) in [("x-vault-token", self.token.reveal()), ("x-vault-namespace", &self.namespace)] {
            if !text.is_empty() {
                let mut value = HeaderValue::from_str(text).map_err(|_| VaultError::Header(name))?;
                value.set_sensitive(true);
                request = request.header(HeaderName::from_static(name), value);
            }
        }
        if let Some(body) = body {
            request =
                request.header(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            request = request.body(body.to_string());
        }
        let response = self.client.send(request).await?;
        query::decode(response.status.as_u16(), &response.body)
            .map_err(|source| VaultError::Response { server: self.client.server().to_owned(), source })
    }
}
