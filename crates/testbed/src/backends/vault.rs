//! HashiCorp Vault.

use http::Method;
use serde_json::{Value, json};

use super::{DEADLINE, write_identity};
use crate::access::Access;
use crate::cache::Cache;
use crate::components::local;
use crate::error::{Attempt as _, Error};
use crate::parts::VAULT;
use crate::pki::Identity;
use crate::plain;
use crate::ports;
use crate::program::{Program, TempFolder};
use crate::progress::Progress;

/// A running Vault, initialized and unsealed, with stores `kv1` and `kv2` of the two versions and the login `kubernetes`.
pub struct Vault {
    port: u16,
    tls_port: u16,
    key: String,
    token: String,
    _running: Program,
}

impl Vault {
    /// Starts the server; with a certificate it also serves TLS on another port.
    pub async fn start(tls: Option<&Identity>) -> Result<Self, Error> {
        let program = Cache::of_user()?.ensure(&VAULT, &mut Progress::stderr())?.join("vault");
        let [port, tls_port] = ports::several()?;
        let temp_folder = TempFolder::new()?;
        let mut arguments = vec![format!("-listen=127.0.0.1:{port}")];
        if let Some(identity) = tls {
            write_identity(&temp_folder, identity)?;
            arguments.push(format!("-listen-tls=127.0.0.1:{tls_port}"));
            arguments.push(format!("-certificate={}", temp_folder.path("server.crt").display()));
            arguments.push(format!("-key={}", temp_folder.path("server.key").display()));
        }
        let mut running = Program::start("vault", &program, &arguments, temp_folder)?;
        let health = format!("{}/v1/sys/health", local("http", port));
        running.until(DEADLINE, async || plain::get(&health).await.is_ok()).await?;
        let mut vault = Self { port, tls_port, key: String::new(), token: String::new(), _running: running };
        let shares = json!({"secret_shares": 1, "secret_threshold": 1});
        let made = vault.request(Method::PUT, "sys/init", shares).await?;
        let text = |at: &str| made.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        (vault.key, vault.token) = (text("/keys/0"), text("/root_token"));
        vault.unseal().await?;
        for (path, version) in [("kv1", "1"), ("kv2", "2")] {
            let store = json!({"type": "kv", "options": {"version": version}});
            vault.request(Method::POST, &format!("sys/mounts/{path}"), store).await?;
        }
        vault.request(Method::POST, "sys/auth/kubernetes", json!({"type": "kubernetes"})).await?;
        Ok(vault)
    }

    /// The URL of the server.
    pub fn address(&self) -> String {
        local("http", self.port)
    }

    /// The URL of the server with TLS.
    pub fn tls_address(&self) -> String {
        local("https", self.tls_port)
    }

    /// The root token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Lets service accounts of a cluster log in; `reviewer` is the token of one that may review tokens.
    pub async fn trust(&self, cluster: &Access, reviewer: &str) -> Result<(), Error> {
        let config = json!({
            "kubernetes_host": cluster.server,
            "kubernetes_ca_cert": cluster.authority().certificate(),
            "token_reviewer_jwt": reviewer,
            "disable_local_ca_jwt": true,
        });
        self.write("auth/kubernetes/config", config).await.map(|_| ())
    }

    /// Creates a role with which a service account may read all keys of both stores.
    pub async fn allow(&self, role: &str, namespace: &str, account: &str) -> Result<(), Error> {
        let policy = r#"path "kv1/*" { capabilities = ["read"] } path "kv2/*" { capabilities = ["read"] }"#;
        self.request(Method::PUT, "sys/policies/acl/reader", json!({"policy": policy})).await?;
        let role_of = json!({
            "bound_service_account_names": [account],
            "bound_service_account_namespaces": [namespace],
            "token_policies": ["reader"],
        });
        self.write(&format!("auth/kubernetes/role/{role}"), role_of).await.map(|_| ())
    }

    /// Seals the server: it responds to requests, but with errors only.
    pub async fn seal(&self) -> Result<(), Error> {
        self.request(Method::PUT, "sys/seal", json!({})).await.map(|_| ())
    }

    /// Unseals the server, and returns when it is ready.
    pub async fn unseal(&self) -> Result<(), Error> {
        self.request(Method::PUT, "sys/unseal", json!({"key": self.key})).await?;
        let until = tokio::time::Instant::now() + DEADLINE;
        loop {
            match self.request(Method::GET, "sys/mounts", Value::Null).await {
                Ok(_) => return Ok(()),
                Err(error) if tokio::time::Instant::now() > until => return Err(error),
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    }

    /// Writes a key, and returns the response. A store of the second version is ready only some time after it was mounted, so the request is
    /// repeated until then.
    pub async fn write(&self, path: &str, body: Value) -> Result<Value, Error> {
        let until = tokio::time::Instant::now() + DEADLINE;
        let url = format!("{}/v1/{path}", self.address());
        loop {
            let answer = plain::send_json(Method::POST, &url, ("x-vault-token", &self.token), &body).await;
            match answer {
                Err(error)
                    if error.to_string().contains("pgrading") && tokio::time::Instant::now() < until =>
                {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                answer => return answer.attempt(|| format!("write {path} in Vault")),
            }
        }
    }

    /// Sends a request with the root token.
    pub async fn request(&self, method: Method, path: &str, body: Value) -> Result<Value, Error> {
        let url = format!("{}/v1/{path}", self.address());
        plain::send_json(method, &url, ("x-vault-token", &self.token), &body)
            .await
            .attempt(|| format!("ask Vault for {path}"))
    }
}
