//! Whom the cluster trusts, as it publishes it: ConfigMap `kube-system/extension-apiserver-authentication`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use rustls::crypto::CryptoProvider;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::headers::FrontProxy;
use super::peer::Authorities;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// How often it is read again.
const PERIOD: Duration = Duration::from_mins(1);

/// How soon it is read again when that failed, or when somebody unknown came: never sooner.
const SOON: Duration = Duration::from_secs(10);

/// How long reading it may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whom to trust besides, or instead of, those the cluster publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTrust {
    /// Whether what the cluster publishes counts at all.
    pub lookup: bool,
    /// Who signs users (PEM file), instead of those the cluster publishes.
    pub clients: Option<PathBuf>,
    /// Who speaks for others, instead of the one the cluster publishes.
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
    /// Who signs them (PEM file).
    pub authority: PathBuf,
    /// The common names their certificates may have; empty: any.
    pub names: Vec<String>,
    /// Headers with the name of the user.
    pub user: Vec<String>,
    /// Headers with his uid.
    pub uid: Vec<String>,
    /// Headers with his groups.
    pub group: Vec<String>,
    /// What the names of headers with anything else begin with.
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
    /// Whether the cluster has to be asked.
    fn asks(&self) -> bool {
        self.lookup && (self.clients.is_none() || self.proxies.is_none())
    }

    /// In the place of what the cluster said.
    fn replace(&self, data: &mut BTreeMap<String, String>) -> Result<(), String> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path)
                .map_err(|error| format!("failed to read {}: {error}", path.display()))
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

/// Whose certificates are good for what.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// Counts the times it changed.
    pub(super) generation: u64,
    /// Who signs users.
    pub(super) clients: Option<Authorities>,
    /// Who speaks for others.
    pub(super) proxy: Option<FrontProxy>,
}

impl Trust {
    /// Reads the ConfigMap's data.
    pub(super) fn read(
        data: &BTreeMap<String, String>,
        provider: &Arc<CryptoProvider>,
        generation: u64,
    ) -> Result<Self, String> {
        let list = |key: &str| -> Result<Vec<String>, String> {
            let Some(text) = data.get(key) else { return Ok(Vec::new()) };
            serde_json::from_str(text).map_err(|error| format!("{key} is not a list of texts: {error}"))
        };
        let authorities = |key: &str| -> Result<Option<Authorities>, String> {
            let Some(pem) = data.get(key).filter(|pem| !pem.trim().is_empty()) else { return Ok(None) };
            let found = Authorities::new(pem, provider);
            found.map(Some).map_err(|error| format!("{key} holds no usable certificates: {error}"))
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
                    // Everything would begin with it.
                    .filter(|prefix| !prefix.is_empty())
                    .collect(),
            }),
        };
        Ok(Self { generation, clients: authorities("client-ca-file")?, proxy })
    }
}

/// Keeps what the cluster published last.
#[derive(Clone)]
pub(crate) struct Keeper {
    current: Arc<RwLock<Arc<Trust>>>,
    wanted: Arc<Notify>,
}

impl Keeper {
    /// Trusts nobody yet.
    pub(crate) fn new() -> Self {
        Self { current: Arc::default(), wanted: Arc::default() }
    }

    /// Whom to trust now.
    pub(crate) fn current(&self) -> Arc<Trust> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks for another look, soon.
    pub(super) fn look_again(&self) {
        self.wanted.notify_one();
    }

    /// Reads the ConfigMap once. What cannot be read changes nothing.
    pub(crate) async fn look(&self, client: &Client, source: &mut Source) -> bool {
        let published = if source.given.asks() {
            let late = || Err(format!("no answer within {PATIENCE:?}"));
            tokio::time::timeout(PATIENCE, fetch(client)).await.unwrap_or_else(|_| late())
        } else {
            Ok(BTreeMap::new())
        };
        let found = published.and_then(|mut data| {
            source.given.replace(&mut data)?;
            self.take(data, source)
        });
        let problem = found.err();
        if let Some(error) = problem.as_ref().filter(|error| source.problem.as_ref() != Some(error)) {
            let trusted = if self.current().generation == 0 { "none" } else { "those known before" };
            tracing::warn!(
                "failed to read ConfigMap {NAMESPACE}/{NAME}: {error}. Front proxies and client certificates that are \
                 trusted: {trusted}. To let this be read: kubectl create rolebinding plimsoll-auth-reader \
                 --namespace={NAMESPACE} --role=extension-apiserver-authentication-reader \
                 --serviceaccount=NAMESPACE:NAME"
            );
        }
        source.problem = problem;
        source.problem.is_none()
    }

    fn take(&self, data: BTreeMap<String, String>, source: &mut Source) -> Result<(), String> {
        if source.data.as_ref() == Some(&data) {
            return Ok(());
        }
        let generation = self.current().generation + 1;
        let trust = Trust::read(&data, &source.provider, generation)?;
        tracing::info!(
            clients = trust.clients.is_some(),
            front_proxy = trust.proxy.is_some(),
            "read whom the cluster trusts"
        );
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(trust);
        source.data = Some(data);
        Ok(())
    }

    /// Reads it for ever.
    pub(crate) async fn run(self, client: Client, mut source: Source) {
        let mut last = Instant::now();
        loop {
            if source.problem.is_some() {
                tokio::time::sleep_until(last + SOON).await;
            } else {
                let _ = tokio::time::timeout_at(last + PERIOD, self.wanted.notified()).await;
                tokio::time::sleep_until((last + SOON).min(last + PERIOD)).await;
            }
            last = Instant::now();
            self.look(&client, &mut source).await;
        }
    }
}

/// What was read last, and what went wrong.
pub(crate) struct Source {
    provider: Arc<CryptoProvider>,
    given: ClientTrust,
    data: Option<BTreeMap<String, String>>,
    problem: Option<String>,
}

impl Source {
    pub(crate) fn new(provider: Arc<CryptoProvider>, given: ClientTrust) -> Self {
        Self { provider, given, data: None, problem: None }
    }
}

async fn fetch(client: &Client) -> Result<BTreeMap<String, String>, String> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let found = maps.get(NAME).await.map_err(|error| error.to_string())?;
    Ok(found.data.unwrap_or_default())
}
