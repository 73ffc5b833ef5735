//! The TLS listener of a cluster: HTTP/1.1 and HTTP/2 on a free port of this machine.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use crate::access::User;
use crate::cluster::Cluster;
use crate::http::Api;
use crate::listen;
use crate::pause::PauseSwitch;

/// A listening cluster; it stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    /// Its URL, such as `https://127.0.0.1:41675`.
    pub url: String,
    /// A kubeconfig for its administrator.
    pub kubeconfig: String,
    /// Pauses it; clients in this process are not affected.
    pub pause: PauseSwitch,
    task: JoinHandle<()>,
}

impl Server {
    /// Listens on a port of this machine; port 0 is any free port.
    pub(crate) async fn start(cluster: Cluster, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let url = format!("https://{}", listener.local_addr()?);
        let access = &cluster.0.access;
        let acceptor = TlsAcceptor::from(Arc::new(access.pki.server_config().map_err(io::Error::other)?));
        let kubeconfig = access.pki.kubeconfig(&url);
        let pause = PauseSwitch::default();
        let switch = pause.clone();
        let serve = move |stream| {
            let (acceptor, cluster, pause) = (acceptor.clone(), cluster.clone(), switch.clone());
            async move {
                if let Some(stream) = listen::handshake(&acceptor, stream).await {
                    serve(stream, cluster, pause).await;
                }
            }
        };
        let task = tokio::spawn(listen::accept(listener, serve));
        Ok(Self { url, kubeconfig, pause, task })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TlsStream<TcpStream>, cluster: Cluster, pause: PauseSwitch) {
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let user = certificate.and_then(|certificate| User::of_certificate(certificate.as_ref()));
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        if let Some(user) = &user {
            request.extensions_mut().insert(user.clone());
        }
        let (api, pause) = (Api::new(cluster.clone()), pause.clone());
        async move {
            pause.resumed().await;
            let response = api.oneshot(request).await?;
            // A response that is ready when the pause begins waits as well.
            pause.resumed().await;
            Ok::<_, Infallible>(response.map(|body| pause.hold(body)))
        }
    });
    // A client that disconnects is not an error.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
