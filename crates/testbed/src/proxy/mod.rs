//! A proxy between a client and a real or simulated API server, which injects faults and logs requests.
//!
//! ```text
//! rule      faults, and the requests to which they apply
//! log       requests and their responses
//! serve     one port for HTTP/1.1, HTTP/2 and TLS; applies rules to requests
//! body      bodies that are cut, stalled or watched
//! upstream  the API server
//! ```
//!
//! Requests are forwarded with the administrator's credentials, unless the proxy was started with [`ProxyCaller::Client`].

mod body;
mod log;
mod rule;
mod serve;
#[cfg(test)]
mod tests;
mod upstream;

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use localkube::access::Authority;
use locks::MutexExt as _;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

pub use log::{Counts, LogEntry, shape};
pub use rule::{Fault, Predicate, Rewrite, Rule, RuleId};

use crate::encoding::quoted;
use crate::error::{Attempt as _, Error};
use log::Log;
use rule::RuleSet;
use upstream::Upstream;

/// Credentials of forwarded requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyCaller {
    /// Requests are forwarded with the credentials of the kubeconfig.
    #[default]
    Administrator,
    /// Requests are forwarded with the bearer token of the client, and without a client certificate.
    Client,
}

/// How a proxy is started.
#[derive(Clone, Copy, Debug)]
pub struct ProxyOptions {
    /// Credentials of forwarded requests.
    pub caller: ProxyCaller,
    /// Whether the first responses to lists are stored, for [`Fault::StaleList`].
    pub store_lists: bool,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self { caller: ProxyCaller::Administrator, store_lists: true }
    }
}

/// A running proxy; it ends when this is dropped.
pub struct Proxy {
    port: u16,
    authority: Authority,
    shared: Arc<ProxyShared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

/// A handle to the rules and the log of a proxy. Clones belong to the same proxy.
#[derive(Clone)]
pub struct Rules(Arc<ProxyShared>);

struct ProxyShared {
    upstream: Upstream,
    tls: TlsAcceptor,
    remember: bool,
    state: Mutex<ProxyState>,
}

#[derive(Default)]
struct ProxyState {
    rule_set: RuleSet,
    log: Log,
    watches: Vec<(Arc<Parts>, oneshot::Sender<()>)>,
    /// The first responses to lists.
    lists: HashMap<String, StoredList>,
}

#[derive(Clone)]
struct StoredList {
    headers: HeaderMap,
    body: Bytes,
}

impl Proxy {
    /// Starts a proxy on a free port. It forwards to the API server of a kubeconfig (its text), as the user of the kubeconfig.
    pub async fn start(kubeconfig: &str) -> Result<Self, Error> {
        Self::start_with(kubeconfig, ProxyOptions::default()).await
    }

    /// Starts a proxy with options.
    pub async fn start_with(kubeconfig: &str, options: ProxyOptions) -> Result<Self, Error> {
        let authority = Authority::new("testbed-proxy")?;
        let shared = ProxyShared {
            upstream: Upstream::new(kubeconfig, options.caller).await?,
            tls: tls(&authority)?,
            remember: options.store_lists,
            state: Mutex::default(),
        };
        let listener = listen(0).await?;
        let port = listener.local_addr().attempt(|| "find a free port".into())?.port();
        let shared = Arc::new(shared);
        let accepting = Mutex::new(Some(tokio::spawn(serve::accept(listener, Arc::clone(&shared)))));
        Ok(Self { port, authority, shared, accepting })
    }

    /// The URL of the proxy with TLS.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The URL of the proxy without TLS, on the same port.
    pub fn plain_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A kubeconfig for the proxy. It has no credentials, because the proxy uses those of the administrator.
    pub fn kubeconfig(&self) -> String {
        self.written("{}")
    }

    /// A kubeconfig that leads to it with a bearer token, for a proxy of [`ProxyCaller::Client`].
    pub fn kubeconfig_with(&self, token: &str) -> String {
        self.written(&format!("{{token: {}}}", quoted(token)))
    }

    fn written(&self, user: &str) -> String {
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: proxy
  cluster:
    server: {}
    certificate-authority-data: {}
users:
- name: proxy
  user: {user}
contexts:
- name: proxy
  context: {{cluster: proxy, user: proxy}}
current-context: proxy
",
            quoted(&self.url()),
            STANDARD.encode(self.authority.certificate()),
        )
    }

    /// The handle for rules and the log.
    pub fn rules(&self) -> Rules {
        Rules(Arc::clone(&self.shared))
    }

    /// Closes all connections and refuses new ones, as an API server does that is restarted.
    pub async fn down(&self) {
        let task = self.accepting().take();
        if let Some(task) = task {
            task.abort();
            // The listener is closed when the task has ended.
            let _ = task.await;
        }
    }

    /// Accepts connections again, on the same port.
    pub async fn up(&self) -> Result<(), Error> {
        if self.accepting().is_some() {
            return Ok(());
        }
        let listener = listen(self.port).await?;
        let task = tokio::spawn(serve::accept(listener, Arc::clone(&self.shared)));
        *self.accepting() = Some(task);
        Ok(())
    }

    fn accepting(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.accepting.locked()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(task) = self.accepting().take() {
            task.abort();
        }
    }
}

impl Rules {
    /// Adds a rule.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut state = self.0.lock();
        if matches!(rule.fault(), Fault::CutWatches) {
            state.watches.retain(|(parts, _)| !rule.matches(parts));
        }
        state.rule_set.add(rule)
    }

    /// Removes a rule.
    pub fn remove(&self, id: RuleId) {
        self.0.lock().rule_set.remove(id);
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.0.lock().rule_set.clear();
    }

    /// The number of requests to which a rule was applied.
    pub fn hits(&self, id: RuleId) -> u32 {
        self.0.lock().rule_set.hits(id)
    }

    /// The number of open watches.
    pub fn watches(&self) -> usize {
        let mut state = self.0.lock();
        state.forget_ended();
        state.watches.len()
    }

    /// The logged requests.
    pub fn log(&self) -> Vec<LogEntry> {
        self.0.lock().log.entries()
    }

    /// The numbers of requests so far, by method and [`shape`] of the path.
    pub fn counts(&self) -> Counts {
        self.0.lock().log.counts()
    }

    /// The number of requests with this method and [`shape`].
    pub fn count(&self, method: &http::Method, shape: &str) -> u64 {
        self.counts().get(&(method.to_string(), shape.to_owned())).copied().unwrap_or_default()
    }

    /// Clears the log and the counts.
    pub fn clear_log(&self) {
        self.0.lock().log.clear();
    }
}

impl ProxyShared {
    fn lock(&self) -> MutexGuard<'_, ProxyState> {
        // Only predicates of tests can panic while the lock is held, and they do not change the state.
        self.state.locked()
    }
}

impl ProxyState {
    /// Adds an open watch, which ends when it is removed. Returns the number of the newest rule.
    fn open_watch(&mut self, parts: Arc<Parts>, end: oneshot::Sender<()>) -> u64 {
        self.forget_ended();
        self.watches.push((parts, end));
        self.rule_set.newest()
    }

    fn forget_ended(&mut self) {
        self.watches.retain(|(_, end)| !end.is_closed());
    }
}

async fn listen(port: u16) -> Result<TcpListener, Error> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).await.attempt(|| format!("listen on {address}"))
}

fn tls(authority: &Authority) -> Result<TlsAcceptor, Error> {
    let failed = || "set up TLS".to_owned();
    let identity = authority.server(&["127.0.0.1", "localhost"])?;
    let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes());
    let chain = vec![chain.map_err(io::Error::other).attempt(failed)?];
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes());
    let key = key.map_err(io::Error::other).attempt(failed)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other).attempt(failed)?.with_no_client_auth();
    let mut config = config.with_single_cert(chain, key).map_err(io::Error::other).attempt(failed)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
