//! Over real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::pod::Pod;
use futures::StreamExt as _;
use futures::future::join_all;
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::client::Body;
use localkube::{Cluster, Options};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use super::Scratch;
use crate::connect::{ConnectTarget, Connection, connect, explain};
use crate::watch::{WatchEvent, WatchSource, watch};

async fn connection(scratch: &Scratch, kubeconfig: &str) -> Connection {
    let path = scratch.file("kubeconfig", kubeconfig);
    connect(&ConnectTarget { kubeconfig: Some(path), context: None }).await.unwrap()
}

fn plain(server: &str) -> String {
    format!(
        "current-context: c\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c}}}}]\n"
    )
}

async fn get(connection: &Connection, uri: &str) -> Result<Response<Body>, kube::Error> {
    connection.client.send(Request::get(uri).body(Body::empty()).unwrap()).await
}

/// Passes bytes on to `to`, and counts the connections.
async fn counting(to: String) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut far = TcpStream::connect(&to).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    (address, count)
}

#[tokio::test]
async fn many_watches_share_one_connection() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let server = cluster.serve().await.unwrap();
    let (address, connections) = counting(server.url.trim_start_matches("https://").to_owned()).await;
    let scratch = Scratch::new("shared");
    let kubeconfig = server.kubeconfig.replace(&server.url, &format!("https://{address}"));
    let connection = connection(&scratch, &kubeconfig).await;
    assert_eq!(get(&connection, "/version").await.unwrap().version(), Version::HTTP_2);

    let watches: Vec<_> =
        (0..40).map(|_| Box::pin(watch::<Pod>(connection.client.clone(), WatchSource::pods()).1)).collect();
    let mut watches = watches;
    for watch in &mut watches {
        while watch.next().await.unwrap() != WatchEvent::Listed {}
    }
    // All of them are open at the same time, and each hears of the pod.
    let next = join_all(watches.iter_mut().map(|watch| watch.next()));
    let create = async {
        let pod = br#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
        let request =
            Request::post("/api/v1/namespaces/default/pods").header("Content-Type", "application/json");
        connection.client.request::<Pod>(request.body(pod.to_vec()).unwrap()).await.unwrap();
    };
    let (reported, ()) = futures::join!(next, create);
    assert!(
        reported
            .iter()
            .all(|change| matches!(change, Some(WatchEvent::Applied(pod)) if pod.metadata.name == "a"))
    );
    let answers = join_all((0..200).map(|_| get(&connection, "/api/v1/pods"))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().version() == Version::HTTP_2));
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert!(connection.limiter.snapshot().admitted >= 242);
}

#[tokio::test]
async fn plain_http_works_and_sends_the_user_agent() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let echo = hyper::service::service_fn(|request: Request<Incoming>| async move {
                let agent = request.headers()["user-agent"].to_str().unwrap();
                Ok::<_, hyper::Error>(Response::new(Full::new(
                    format!("{} {agent}", request.uri()).into_bytes().into(),
                ))) as Result<Response<Full<bytes::Bytes>>, _>
            });
            tokio::spawn(async move {
                auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), echo).await
            });
        }
    });
    let scratch = Scratch::new("plain");
    let connection = connection(&scratch, &plain(&format!("http://{address}/prefix/"))).await;
    let answer = get(&connection, "/api?x=y").await.unwrap();
    assert_eq!(answer.version(), Version::HTTP_11);
    let text = answer.into_body().collect_bytes().await.unwrap();
    assert_eq!(text, format!("/prefix/api?x=y plimsoll/{}", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn an_unreachable_server_is_explained() {
    let scratch = Scratch::new("refused");
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
    let connection = connection(&scratch, &plain(&format!("http://{free}"))).await;
    let error = get(&connection, "/version").await.unwrap_err();
    let text = explain(&error, &connection);
    let expected = format!(
        "cannot reach the cluster at http://{free}: connection refused
  kubeconfig: {}/kubeconfig, context c
  remedy: check the address, or choose another context with --context; `plimsoll up` starts a local cluster",
        scratch.path().display()
    );
    assert_eq!(text, expected);
}

#[tokio::test]
async fn an_untrusted_certificate_is_explained() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let other = Cluster::start(Options::default()).await.unwrap();
    let (server, other) = (cluster.serve().await.unwrap(), other.serve().await.unwrap());
    let scratch = Scratch::new("untrusted");
    // The certificate of another cluster's authority.
    let connection = connection(&scratch, &other.kubeconfig.replace(&other.url, &server.url)).await;
    let error = get(&connection, "/version").await.unwrap_err();
    let text = explain(&error, &connection);
    assert!(
        text.starts_with(&format!("cannot trust the cluster at {}: its certificate is signed", server.url)),
        "{text}"
    );
}

#[tokio::test]
async fn a_server_without_tls_is_explained() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let server = cluster.serve().await.unwrap();
    let scratch = Scratch::new("tls");
    let kubeconfig = server.kubeconfig.replace(&server.url, &format!("https://{address}"));
    let connection = connection(&scratch, &kubeconfig).await;
    let error = get(&connection, "/version").await.unwrap_err();
    let text = explain(&error, &connection);
    assert!(text.contains("it does not speak TLS\n"), "{text}");
}

#[tokio::test]
async fn a_401_is_explained() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let server = cluster.serve().await.unwrap();
    let scratch = Scratch::new("unknown-user");
    let certificate =
        |line: &&str| line.contains("client-certificate-data") || line.contains("client-key-data");
    let stranger: Vec<&str> = server.kubeconfig.lines().filter(|line| !certificate(line)).collect();
    let stranger = stranger.join("\n");
    let stranger = stranger.replace("user:\n", "user: {token: wrong-token}\n");
    let connection = connection(&scratch, &stranger).await;
    let request = Request::get("/api/v1/pods").body(Vec::new()).unwrap();
    let error = connection.client.request::<Pod>(request).await.unwrap_err();
    let text = explain(&error, &connection);
    assert!(
        text.starts_with(&format!("the cluster at {} does not know who we are: Unauthorized\n", server.url)),
        "{text}"
    );
    assert!(!text.contains("wrong-token"));
}
