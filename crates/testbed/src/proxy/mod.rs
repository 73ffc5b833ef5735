//! A proxy between a client and an API server, real or not, that makes faults on purpose and writes down what is asked.
//!
//! ```text
//! rule      what goes wrong, and with which requests
//! log       what was asked, and what came of it
//! serve     one port for HTTP/1.1, HTTP/2 and TLS; what happens to a request
//! body      bodies that are cut, stalled or watched
//! upstream  the API server
//! ```
//!
//! Requests are forwarded with the administrator's credentials, unless the proxy was started with [`ProxyCaller::Itself`].

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

pub use log::{Counts, Entry, shape};
pub use rule::{Fault, Predicate, Rewrite, Rule, RuleId};

use crate::encoding::quoted;
use crate::error::{Attempt as _, Error};
use log::Log;
use rule::Book;
use upstream::Upstream;

/// Credentials of forwarded requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyCaller {
    /// With the credentials of the kubeconfig.
    #[default]
    Administrator,
    /// With the bearer token of the client, and without a client certificate.
    Itself,
}

/// How a proxy is started.
#[derive(Clone, Copy, Debug)]
pub struct ProxyOptions {
    /// Credentials of forwarded requests.
    pub caller: ProxyCaller,
    /// Whether first answers to lists are kept, for [`Fault::StaleList`].
    pub remember_lists: bool,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self { caller: ProxyCaller::Administrator, remember_lists: true }
    }
}

/// A running proxy; it ends when this is dropped.
pub struct Proxy {
    port: u16,
    authority: Authority,
    shared: Arc<ProxyShared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

/// Changes the rules of a proxy and reads its log. Clones are of the same proxy.
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
    book: Book,
    log: Log,
    watches: Vec<(Arc<Parts>, oneshot::Sender<()>)>,
    /// The first answers to lists.
    lists: HashMap<String, Remembered>,
}

#[derive(Clone)]
struct Remembered {
    headers: HeaderMap,
    body: Bytes,
}

impl Proxy {
    /// Listens on a free port of this machine, for the API server and as the user of a kubeconfig (its text).
    pub async fn start(kubeconfig: &str) -> Result<Self, Error> {
        Self::start_with(kubeconfig, ProxyOptions::default()).await
    }

    /// The same, otherwise than usual.
    pub async fn start_with(kubeconfig: &str, options: ProxyOptions) -> Result<Self, Error> {
        let authority = Authority::new("testbed-proxy")?;
        let shared = ProxyShared {
            upstream: Upstream::new(kubeconfig, options.caller).await?,
            tls: tls(&authority)?,
            remember: options.remember_lists,
            state: Mutex::default(),
        };
        let listener = listen(0).await?;
        let port = listener.local_addr().attempt(|| "find a free port".into())?.port();
        let shared = Arc::new(shared);
        let accepting = Mutex::new(Some(tokio::spawn(serve::accept(listener, Arc::clone(&shared)))));
        Ok(Self { port, authority, shared, accepting })
    }

    /// Where it listens, with TLS.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Where it listens, without TLS: the same port.
    pub fn plain_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A kubeconfig that leads to it. It holds no credentials: the proxy has those of the administrator.
    pub fn kubeconfig(&self) -> String {
        self.written("{}")
    }

    /// A kubeconfig that leads to it with a bearer token, for a proxy of [`ProxyCaller::Itself`].
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

    /// Closes all connections and refuses new ones, as an API server that is restarted.
    pub async fn down(&self) {
        let task = self.accepting().take();
        if let Some(task) = task {
            task.abort();
            // Its listener is gone when it is.
            let _ = task.await;
        }
    }

    /// Takes connections again, on the same port.
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
    /// Puts a rule in force.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut state = self.0.lock();
        if matches!(rule.fault(), Fault::CutWatches) {
            state.watches.retain(|(parts, _)| !rule.matches(parts));
        }
        state.book.add(rule)
    }

    /// Takes a rule back.
    pub fn remove(&self, id: RuleId) {
        self.0.lock().book.remove(id);
    }

    /// Takes all rules back.
    pub fn clear(&self) {
        self.0.lock().book.clear();
    }

    /// How often a rule in force was applied to a request.
    pub fn hits(&self, id: RuleId) -> u32 {
        self.0.lock().book.hits(id)
    }

    /// How many watches are open.
    pub fn watches(&self) -> usize {
        let mut state = self.0.lock();
        state.forget_ended();
        state.watches.len()
    }

    /// The requests so far.
    pub fn log(&self) -> Vec<Entry> {
        self.0.lock().log.entries()
    }

    /// How often requests were made so far, by method and [`shape`] of the path.
    pub fn counts(&self) -> Counts {
        self.0.lock().log.counts()
    }

    /// How often a request of this method and [`shape`] was made.
    pub fn count(&self, method: &http::Method, shape: &str) -> u64 {
        self.counts().get(&(method.to_string(), shape.to_owned())).copied().unwrap_or_default()
    }

    /// Forgets the requests so far.
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
    /// Notes a watch, which ends when it is forgotten; gives the number of the newest rule.
    fn open_watch(&mut self, parts: Arc<Parts>, end: oneshot::Sender<()>) -> u64 {
        self.forget_ended();
        self.watches.push((parts, end));
        self.book.newest()
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
