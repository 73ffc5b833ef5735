//! The CAs of clients and front proxies that the cluster publishes in ConfigMap
//! `kube-system/extension-apiserver-authentication`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use locks::RwLockExt as _;
use rustls::crypto::CryptoProvider;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::authorities::{Authorities, AuthoritiesError};
use super::headers::FrontProxy;

const CONFIG_MAP_NAMESPACE: &str = "kube-system";
const CONFIG_MAP_NAME: &str = "extension-apiserver-authentication";

/// How often the ConfigMap is read.
const READ_PERIOD: Duration = Duration::from_mins(1);

/// The minimum pause between two reads, after a failure or a certificate of an unknown CA.
const MIN_READ_PAUSE: Duration = Duration::from_secs(10);

/// The timeout of a read.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the client CAs cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("failed to read {path}: {source}", path = path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{key} is not a list of strings: {source}")]
    List { key: String, source: serde_json::Error },
    #[error("{key} holds no usable certificates: {source}")]
    Authorities { key: String, source: AuthoritiesError },
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("no response within {READ_TIMEOUT:?}")]
    Timeout,
}

/// CAs that are trusted in addition to, or instead of, those the cluster publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTrust {
    /// Whether the ConfigMap is read.
    pub lookup: bool,
    /// CA of users (PEM file), instead of the published one.
    pub clients: Option<PathBuf>,
    /// Front proxies, instead of the published ones.
    pub proxies: Option<FrontProxyOptions>,
}

impl Default for ClientTrust {
    fn default() -> Self {
        Self { lookup: true, clients: None, proxies: None }
    }
}

/// Front proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontProxyOptions {
    /// CA of their certificates (PEM file).
    pub authority: PathBuf,
    /// The common names their certificates may have; empty: any.
    pub names: Vec<String>,
    /// Headers with the name of the user.
    pub user: Vec<String>,
    /// Headers with the user's UID.
    pub uid: Vec<String>,
    /// Headers with the user's groups.
    pub group: Vec<String>,
    /// Name prefixes of headers with extra fields.
    pub extra: Vec<String>,
}

impl FrontProxyOptions {
    /// With the usual headers.
    pub fn new(authority: PathBuf) -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            authority,
            names: Vec::new(),
            user: one("x-remote-user"),
            uid: one("x-remote-uid"),
            group: one("x-remote-group"),
            extra: one("x-remote-extra-"),
        }
    }
}

impl ClientTrust {
    /// Whether the ConfigMap is needed.
    fn needs_config_map(&self) -> bool {
        self.lookup && (self.clients.is_none() || self.proxies.is_none())
    }

    /// Replaces published values by those of the options.
    fn replace(&self, data: &mut BTreeMap<String, String>) -> Result<(), TrustError> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|source| TrustError::File { path: path.clone(), source })
        };
        if let Some(path) = &self.clients {
            data.insert("client-ca-file".to_owned(), read(path)?);
        }
        if let Some(proxies) = &self.proxies {
            data.insert("requestheader-client-ca-file".to_owned(), read(&proxies.authority)?);
            let lists = [
                ("allowed-names", &proxies.names),
                ("username-headers", &proxies.user),
                ("uid-headers", &proxies.uid),
                ("group-headers", &proxies.group),
                ("extra-headers-prefix", &proxies.extra),
            ];
            for (key, names) in lists {
                data.insert(format!("requestheader-{key}"), serde_json::json!(names).to_string());
            }
        }
        Ok(())
    }
}

/// CAs of users and front proxies.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// The number of changes.
    pub(super) generation: u64,
    /// CAs of users.
    pub(super) clients: Option<Authorities>,
    /// The front proxy.
    pub(super) proxy: Option<FrontProxy>,
}

impl Trust {
    /// Parses the ConfigMap's data.
    pub(super) fn read(
        data: &BTreeMap<String, String>,
        provider: &Arc<CryptoProvider>,
        generation: u64,
    ) -> Result<Self, TrustError> {
        let list = |key: &str| -> Result<Vec<String>, TrustError> {
            let Some(text) = data.get(key) else { return Ok(Vec::new()) };
            serde_json::from_str(text).map_err(|source| TrustError::List { key: key.to_owned(), source })
        };
        let authorities = |key: &str| -> Result<Option<Authorities>, TrustError> {
            let Some(pem) = data.get(key).filter(|pem| !pem.trim().is_empty()) else { return Ok(None) };
            let found = Authorities::new(pem, provider);
            found.map(Some).map_err(|source| TrustError::Authorities { key: key.to_owned(), source })
        };
        let proxy = match authorities("requestheader-client-ca-file")? {
            None => None,
            Some(authorities) => Some(FrontProxy {
                authorities,
                names: list("requestheader-allowed-names")?,
                user: list("requestheader-username-headers")?,
                uid: list("requestheader-uid-headers")?,
                group: list("requestheader-group-headers")?,
                extra: list("requestheader-extra-headers-prefix")?
                    .into_iter()
                    // Every header name begins with an empty prefix.
                    .filter(|prefix| !prefix.is_empty())
                    .collect(),
            }),
        };
        Ok(Self { generation, clients: authorities("client-ca-file")?, proxy })
    }
}

/// Holds the CAs that were read last.
#[derive(Clone)]
pub(crate) struct ClientTrustReader {
    current: Arc<RwLock<Arc<Trust>>>,
    wanted: Arc<Notify>,
}

impl ClientTrustReader {
    /// Trusts no CA yet.
    pub(crate) fn new() -> Self {
        Self { current: Arc::default(), wanted: Arc::default() }
    }

    /// The current CAs.
    pub(crate) fn current(&self) -> Arc<Trust> {
        Arc::clone(&self.current.read_locked())
    }

    /// Requests a read soon.
    pub(super) fn request_read(&self) {
        self.wanted.notify_one();
    }

    /// Reads the ConfigMap once. A failure changes nothing.
    pub(crate) async fn read(&self, client: &Client, source: &mut TrustSource) -> bool {
        let published = if source.given.needs_config_map() {
            let late = || Err(TrustError::Timeout);
            tokio::time::timeout(READ_TIMEOUT, fetch(client)).await.unwrap_or_else(|_| late())
        } else {
            Ok(BTreeMap::new())
        };
        let found = published.and_then(|mut data| {
            source.given.replace(&mut data)?;
            self.take(data, source)
        });
        let problem = found.err().map(|error| error.to_string());
        if let Some(error) = problem.as_ref().filter(|error| source.problem.as_ref() != Some(error)) {
            let trusted = if self.current().generation == 0 { "none" } else { "those known before" };
            tracing::warn!(
                "failed to read ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP_NAME}: {error}. Front proxies and client certificates that are \
                 trusted: {trusted}. To let this be read: kubectl create rolebinding plimsoll-auth-reader \
                 --namespace={CONFIG_MAP_NAMESPACE} --role=extension-apiserver-authentication-reader \
                 --serviceaccount=NAMESPACE:NAME"
            );
        }
        source.problem = problem;
        source.problem.is_none()
    }

    fn take(&self, data: BTreeMap<String, String>, source: &mut TrustSource) -> Result<(), TrustError> {
        if source.data.as_ref() == Some(&data) {
            return Ok(());
        }
        let generation = self.current().generation + 1;
        let trust = Trust::read(&data, &source.provider, generation)?;
        tracing::info!(
            clients = trust.clients.is_some(),
            front_proxy = trust.proxy.is_some(),
            "read the cluster's client CAs"
        );
        *self.current.write_locked() = Arc::new(trust);
        source.data = Some(data);
        Ok(())
    }

    /// Reads the ConfigMap periodically.
    pub(crate) async fn run(self, client: Client, mut source: TrustSource) {
        let mut last = Instant::now();
        loop {
            if source.problem.is_some() {
                tokio::time::sleep_until(last + MIN_READ_PAUSE).await;
            } else {
                let _ = tokio::time::timeout_at(last + READ_PERIOD, self.wanted.notified()).await;
                tokio::time::sleep_until((last + MIN_READ_PAUSE).min(last + READ_PERIOD)).await;
            }
            last = Instant::now();
            self.read(&client, &mut source).await;
        }
    }
}

/// The last data and the last error of a read.
pub(crate) struct TrustSource {
    provider: Arc<CryptoProvider>,
    given: ClientTrust,
    data: Option<BTreeMap<String, String>>,
    problem: Option<String>,
}

impl TrustSource {
    pub(crate) fn new(provider: Arc<CryptoProvider>, given: ClientTrust) -> Self {
        Self { provider, given, data: None, problem: None }
    }
}

async fn fetch(client: &Client) -> Result<BTreeMap<String, String>, TrustError> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), CONFIG_MAP_NAMESPACE);
    let found = maps.get(CONFIG_MAP_NAME).await?;
    Ok(found.data.unwrap_or_default())
}
