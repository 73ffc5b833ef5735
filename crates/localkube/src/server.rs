//! The TLS listener of a cluster: HTTP/1.1 and HTTP/2 on a free port of this machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use crate::access::User;
use crate::cluster::Cluster;
use crate::http::Api;
use crate::listen;

/// A listening cluster; it stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    /// Its URL, such as `https://127.0.0.1:41675`.
    pub url: String,
    /// A kubeconfig for its administrator.
    pub kubeconfig: String,
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
        let serve = move |stream| {
            let (acceptor, cluster) = (acceptor.clone(), cluster.clone());
            async move {
                if let Some(stream) = listen::handshake(&acceptor, stream).await {
                    serve(stream, cluster).await;
                }
            }
        };
        let task = tokio::spawn(listen::accept(listener, serve));
        Ok(Self { url, kubeconfig, task })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TlsStream<TcpStream>, cluster: Cluster) {
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let user = certificate.and_then(|certificate| User::of_certificate(certificate.as_ref()));
    let api = Api::new(cluster).map_request(move |mut request: http::Request<hyper::body::Incoming>| {
        if let Some(user) = &user {
            request.extensions_mut().insert(user.clone());
        }
        request
    });
    let service = TowerToHyperService::new(api);
    // A client that disconnects is not an error.
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
