//! The certificate that replicas share: in a Secret, as KEDA's certificate rotator stores it, or in a mounted folder.
//!
//! The first replica issues it and the others read it; of two concurrent writes the API server accepts one. The leader
//! renews it, and the others see that at their next read. Without permission for Secrets each replica has its own.
//! [`trust`] tells the API server which CA that is, unless another operator owns the objects ([`owner`]).

pub(crate) mod owner;
pub(crate) mod trust;

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::Clock;
use cluster::lease::Leadership;
use cluster::request::{ApiError, Request, path, send};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use serve::{BundleRenewal, CertificateBundle, CertificateError, CertificateLifetimes, Keyring};

/// How often the certificate is read.
const READ_PERIOD: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a conflicting write is attempted.
const MAX_WRITE_ATTEMPTS: usize = 5;
/// The keys of the Secret and the file names of the folder.
const PART_NAMES: [&str; 4] = ["ca.crt", "ca.key", "tls.crt", "tls.key"];

/// Where the shared certificate is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// Not shared: given in files, or issued by each replica.
    Nothing,
    /// In a Secret, which is created and kept up to date.
    Secret { namespace: String, name: String },
    /// In a mounted folder.
    Folder(PathBuf),
}

/// Keeps a keyring up to date.
pub(crate) struct CertificateRenewer {
    store: CertificateLocation,
    clock: Clock,
    keyring: Keyring,
    current: CertificateBundle,
    /// Whether the current bundle is not shared with other replicas.
    is_own: bool,
    logged: Option<String>,
}

enum CertificateLocation {
    Secret(Secret),
    Folder(PathBuf),
}

/// Why the shared certificate cannot be used.
#[derive(Debug, thiserror::Error)]
enum SharedCertificateError {
    #[error("{0}")]
    Api(#[from] ApiError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("failed to read {0}: {1}")]
    File(String, std::io::Error),
    #[error("conflicts with concurrent writes persist")]
    Busy,
}

/// Opens the shared certificate, if one is configured: a keyring, and the task that keeps it up to date.
pub(crate) async fn open(
    shared: &Shared,
    names: &[String],
    client: &Client,
    clock: &Clock,
) -> Option<(Keyring, CertificateRenewer)> {
    let opened = match shared {
        Shared::Nothing => return None,
        Shared::Folder(path) => {
            folder(path).map(|found| (CertificateLocation::Folder(path.clone()), found, None))
        }
        Shared::Secret { namespace, name } => {
            let secret = Secret {
                client: client.clone(),
                namespace: namespace.clone(),
                name: name.clone(),
                names: names.to_vec(),
                lives: CertificateLifetimes::default(),
            };
            secret
                .open(clock)
                .await
                .map(|(found, problem)| (CertificateLocation::Secret(secret), found, problem))
        }
    };
    let kept = opened.and_then(|(store, current, logged)| {
        let (keyring, is_own) = (Keyring::new(current.clone())?, logged.is_some());
        Ok(CertificateRenewer { store, clock: clock.clone(), keyring, current, is_own, logged })
    });
    match kept {
        Ok(kept) => Some((kept.keyring.clone(), kept)),
        Err(problem) => {
            tracing::warn!(%problem, "using a certificate of this process, not the shared one");
            None
        }
    }
}

impl CertificateRenewer {
    /// Keeps the keyring up to date for the lifetime of the process.
    pub(crate) async fn run(mut self, leadership: Leadership) {
        loop {
            tokio::time::sleep(READ_PERIOD).await;
            self.refresh(leadership.is_leader()).await;
        }
    }

    async fn refresh(&mut self, leads: bool) {
        let found = match &self.store {
            CertificateLocation::Secret(secret) => {
                secret.read_or_create(&self.current, leads, &self.clock).await
            }
            CertificateLocation::Folder(path) => folder(path),
        };
        let changed = found.and_then(|found| {
            let changed = self.keyring.replace(found.clone())?;
            (self.current, self.is_own, self.logged) = (found, false, None);
            Ok(changed)
        });
        match changed {
            Ok(false) => {}
            Ok(true) => tracing::info!("serving with a certificate that others have, too"),
            Err(problem) => {
                let problem = problem.to_string();
                if self.logged.as_ref() != Some(&problem) {
                    tracing::warn!(problem, "serving with the certificate known before");
                }
                self.logged = Some(problem);
                self.renew_own();
            }
        }
    }

    /// Renews a bundle that is not shared.
    fn renew_own(&mut self) {
        let CertificateLocation::Secret(secret) = &self.store else { return };
        if !self.is_own {
            return;
        }
        let next = self.current.next(&secret.names, &secret.lives, self.clock.now());
        if let Ok(BundleRenewal::Renew(other) | BundleRenewal::Replace(other)) = next
            && self.keyring.replace(other.clone()).is_ok()
        {
            self.current = other;
        }
    }
}

/// The Secret with the four parts.
struct Secret {
    client: Client,
    namespace: String,
    name: String,
    names: Vec<String>,
    lives: CertificateLifetimes,
}

impl Secret {
    /// The stored bundle; or one of our own, and why.
    async fn open(
        &self,
        clock: &Clock,
    ) -> Result<(CertificateBundle, Option<String>), SharedCertificateError> {
        let own = CertificateBundle::make(&self.names, &self.lives, clock.now())?;
        match self.read_or_create(&own, false, clock).await {
            Ok(found) => Ok((found, None)),
            Err(problem) => {
                let problem = problem.to_string();
                tracing::warn!(
                    secret = self.name,
                    problem,
                    "other replicas do not have the certificate of this one"
                );
                Ok((own, Some(problem)))
            }
        }
    }

    /// The stored bundle, or `own`, which is then stored. The leader renews a bundle that is due; any replica replaces an unusable one.
    async fn read_or_create(
        &self,
        own: &CertificateBundle,
        leads: bool,
        clock: &Clock,
    ) -> Result<CertificateBundle, SharedCertificateError> {
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let Some(found) = self.read().await? else {
                match self.create(own).await {
                    Ok(()) => {
                        tracing::info!(secret = self.name, "a certificate was made for all replicas");
                        return Ok(own.clone());
                    }
                    // Another replica was faster.
                    Err(error) if error.code == Some(409) => continue,
                    Err(error) => return Err(error.into()),
                }
            };
            let known = material(&found);
            let (other, is_usable) = match known.next(&self.names, &self.lives, clock.now())? {
                BundleRenewal::Renew(other) if leads => (other, true),
                BundleRenewal::Keep | BundleRenewal::Renew(_) => return Ok(known),
                BundleRenewal::Replace(other) => (other, false),
            };
            match self.write(found, &other).await {
                Ok(()) => {
                    tracing::info!(secret = self.name, "the certificate of all replicas was renewed");
                    return Ok(other);
                }
                Err(error) if error.code == Some(409) => {}
                Err(error) if is_usable => {
                    tracing::warn!(%error, secret = self.name, "the certificate of all replicas was not renewed");
                    return Ok(known);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(SharedCertificateError::Busy)
    }

    fn place(&self, name: Option<&str>) -> String {
        path(["api", "v1", "namespaces", &self.namespace, "secrets"].into_iter().chain(name))
    }

    async fn read(&self) -> Result<Option<Value>, ApiError> {
        let request =
            Request::get(self.place(Some(&self.name)), "secrets", REQUEST_TIMEOUT).named(&self.name);
        match send(&self.client, request).await {
            Ok(body) => Ok(serde_json::from_slice(&body).ok()),
            Err(error) if error.code == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, material: &CertificateBundle) -> Result<(), ApiError> {
        let labels = json!({"app.kubernetes.io/part-of": "plimsoll"});
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data(material),
            "metadata": {"name": self.name, "namespace": self.namespace, "labels": labels},
        });
        self.send(Method::POST, self.place(None), &secret).await
    }

    /// Updates the Secret that was read; a concurrent write is a conflict.
    async fn write(&self, mut found: Value, material: &CertificateBundle) -> Result<(), ApiError> {
        let parts = data(material);
        if let (Some(fields), Value::Object(parts)) = (found.as_object_mut(), parts) {
            let all = fields.entry("data").or_insert_with(|| json!({}));
            if !all.is_object() {
                *all = json!({});
            }
            if let Some(all) = all.as_object_mut() {
                all.extend(parts);
            }
        }
        self.send(Method::PUT, self.place(Some(&self.name)), &found).await
    }

    async fn send(&self, method: Method, uri: String, body: &Value) -> Result<(), ApiError> {
        let body = Some(("application/json", body.to_string().into_bytes()));
        let request =
            Request { method, body, ..Request::get(uri, "secrets", REQUEST_TIMEOUT).named(&self.name) };
        send(&self.client, request).await.map(drop)
    }
}

fn data(material: &CertificateBundle) -> Value {
    let texts = [&material.authorities, &material.authority_key, &material.certificate, &material.key];
    let parts =
        PART_NAMES.iter().zip(texts).map(|(name, text)| ((*name).to_owned(), json!(STANDARD.encode(text))));
    Value::Object(parts.collect())
}

/// A missing or undecodable part is empty, which makes the bundle unusable.
fn material(secret: &Value) -> CertificateBundle {
    let part = |name: &str| {
        let text = secret.get("data").and_then(|data| data.get(name)).and_then(Value::as_str);
        let bytes = text.and_then(|text| STANDARD.decode(text).ok());
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    };
    let [authorities, authority_key, certificate, key] = PART_NAMES.map(part);
    CertificateBundle { authorities, authority_key, certificate, key }
}

/// Reads the bundle of a mounted folder.
fn folder(path: &Path) -> Result<CertificateBundle, SharedCertificateError> {
    let read = |name: &str| {
        let file = path.join(name);
        std::fs::read_to_string(&file)
            .map_err(|error| SharedCertificateError::File(file.display().to_string(), error))
    };
    let [authorities, _, certificate, key] = PART_NAMES;
    Ok(CertificateBundle {
        authorities: read(authorities)?,
        authority_key: String::new(),
        certificate: read(certificate)?,
        key: read(key)?,
    })
}

#[cfg(test)]
mod tests;
