//! Authentication and authorization over TLS, with localkube as the API server that reviews clients.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::cluster::{put, reviewed, token};
use common::{DECISIONS, FakeDecisionSource, Visitor, tls};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use localkube::Cluster;
use localkube::access::Authority;
use rustls::pki_types::ServerName;
use serde_json::json;
use serve::{App, Exposition, Server, ServerLimits, ServerOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::util::BoxCloneSyncService;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn app() -> App {
    let text = "up 1\n".to_owned();
    let metrics = move || Exposition { content_type: "text/plain; version=0.0.4".into(), text: text.clone() };
    App { decisions: Some(Arc::new(FakeDecisionSource)), metrics: Some(Arc::new(metrics)), ..App::default() }
}

fn options() -> ServerOptions {
    ServerOptions { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), ..ServerOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_see_what_rbac_allows() {
    let cluster = Cluster::start(localkube::Options::default()).await.unwrap();
    let requested = Arc::new(AtomicU32::new(0));
    let denied = &["alice", "dave", "system:serviceaccount:default:poor"];
    let client = reviewed(&cluster, denied, &requested);
    let (clients, proxies) = (Authority::new("clients").unwrap(), Authority::new("proxies").unwrap());
    let map = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let data = json!({"client-ca-file": clients.certificate(), "requestheader-client-ca-file": proxies.certificate()});
    put(&client, "PATCH", map, &json!({"data": data})).await;
    let server = Server::start(options(), client.clone(), app()).await.unwrap();
    let list = &format!("{DECISIONS}/namespaces/a/decisions");
    let no = |user: &str, why: &str| {
        let text = format!(
            "decisions.decisions.plimsoll.dev is forbidden: User \"{user}\" cannot list resource \"decisions\" in API \
             group \"decisions.plimsoll.dev\" in the namespace \"a\"{why}"
        );
        (403, text)
    };
    let unknown = (401, "Unauthorized".to_owned());
    let fine = (200, String::new());

    let nobody = Visitor::new(&server, None);
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(nobody.get(path, &[]).await, (200, "ok".into()), "{path}");
    }
    assert_eq!(nobody.get_message(list, &[]).await, no("system:anonymous", ""));
    let text = "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"".to_owned();
    assert_eq!(nobody.get_message("/metrics", &[]).await, (403, text));
    assert_eq!(nobody.get_message("/readyz/ping", &[]).await.0, 403);
    // Forged headers of a proxy do not change that.
    let forged = [("x-remote-user", "root"), ("x-remote-group", "system:masters")];
    assert_eq!(nobody.get_message(list, &forged).await, no("system:anonymous", ""));

    // Tokens: nonsense, without rights, with rights.
    let bad = [("authorization", "Bearer nonsense")];
    assert_eq!(nobody.get_message(list, &bad).await, unknown);
    assert_eq!(nobody.get_message("/readyz", &bad).await, unknown);
    let (poor, rich) = (token(&client, "poor").await, token(&client, "rich").await);
    let poor = [("authorization", poor.as_str())];
    assert_eq!(nobody.get_message(list, &poor).await, no("system:serviceaccount:default:poor", ": no rule"));
    let rich = [("authorization", rich.as_str())];
    assert_eq!(nobody.get_message(list, &rich).await, fine);
    assert_eq!(nobody.get("/metrics", &rich).await, (200, "up 1\n".into()));
    assert_eq!(nobody.get("/readyz/ping", &rich).await, (200, "ok".into()));
    // A user header is ignored if the request has a token, and impersonation is refused.
    let both = [poor[0], forged[0], forged[1]];
    assert_eq!(nobody.get_message(list, &both).await, no("system:serviceaccount:default:poor", ": no rule"));
    let other = [rich[0], ("impersonate-user", "root")];
    assert_eq!(nobody.get_message(list, &other).await.0, 403);

    // A client certificate of a user authenticates that user only; its user headers are ignored.
    let alice = Visitor::new(&server, Some(&clients.client("alice", None).unwrap()));
    assert_eq!(alice.get_message(list, &[]).await, no("alice", ": no rule"));
    assert_eq!(alice.get_message(list, &forged).await, no("alice", ": no rule"));
    let bob = Visitor::new(&server, Some(&clients.client("bob", Some("team")).unwrap()));
    assert_eq!(bob.get_message(list, &[]).await, fine);
    let chief = Visitor::new(&server, Some(&clients.client("chief", Some("system:masters")).unwrap()));
    assert_eq!(chief.get_message(list, &[]).await, fine);

    // A certificate of an unknown CA is refused, whatever its name; a valid token with it counts.
    let stranger = Authority::new("proxies").unwrap().client("front-proxy-client", None).unwrap();
    let stranger = Visitor::new(&server, Some(&stranger));
    assert_eq!(stranger.get_message(list, &forged).await, unknown);
    assert_eq!(stranger.get_message("/readyz", &[]).await, unknown);
    assert_eq!(stranger.get_message(list, &rich).await, fine);

    // User headers count with the certificate of the front proxy, and not with another certificate of its CA.
    let proxy = Visitor::new(&server, Some(&proxies.client("front-proxy-client", None).unwrap()));
    assert_eq!(proxy.get_message(list, &[("x-remote-user", "carol")]).await, fine);
    assert_eq!(proxy.get_message(list, &[("x-remote-user", "dave")]).await, no("dave", ": no rule"));
    assert_eq!(proxy.get_message(list, &forged).await, fine);
    assert_eq!(proxy.get_message(list, &[]).await, unknown);
    let other = Visitor::new(&server, Some(&proxies.client("other", None).unwrap()));
    assert_eq!(other.get_message(list, &[("x-remote-user", "carol")]).await, unknown);

    // A recent review is not repeated, whatever its result.
    let before = requested.load(Ordering::Relaxed);
    assert_eq!(bob.get_message(list, &[]).await, fine);
    assert_eq!(alice.get_message(list, &[]).await.0, 403);
    assert_eq!(requested.load(Ordering::Relaxed), before);
    assert_eq!(bob.get_message(&format!("{DECISIONS}/decisions"), &[]).await, fine);
    assert_eq!(requested.load(Ordering::Relaxed), before + 1);
    server.stop().await;
}

/// A route that reads the whole body before it answers, and counts the requests that have arrived.
fn echo(arrived: &Arc<AtomicU32>) -> (String, serve::Route) {
    let arrived = Arc::clone(arrived);
    let echo = tower::service_fn(move |request: Request<serve::Body>| {
        arrived.fetch_add(1, Ordering::SeqCst);
        async {
            let length = request.into_body().collect().await.map_or(0, |body| body.to_bytes().len());
            Ok::<_, Infallible>(serve::response::text(200, length.to_string()))
        }
    });
    ("/echo".to_owned(), BoxCloneSyncService::new(echo))
}

/// A request to [`echo`] whose last byte is missing, with these lines in its head.
async fn slow_request(server: &Server, lines: &str) -> TlsStream<TcpStream> {
    let mut config = tls(server.ca_pem().unwrap(), None);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut slow = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let head = format!("POST /echo HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: 4\r\n\r\nabc");
    slow.write_all(head.as_bytes()).await.unwrap();
    slow
}

/// Anonymous clients may send the bodies of AdmissionReviews, and may send them slowly.
#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_of_anonymous_clients_leave_room_for_users() {
    let cluster = Cluster::start(localkube::Options::default()).await.unwrap();
    let client = reviewed(&cluster, &[], &Arc::default());
    let limits = ServerLimits { requests: 2, ..ServerLimits::default() };
    let mut options = ServerOptions { limits, ..options() };
    options.open_paths.push("/echo".to_owned());
    let routes = vec![echo(&Arc::default())];
    let server = Server::start(options, client.clone(), App { routes, ..app() }).await.unwrap();
    let rich = token(&client, "rich").await;

    let mut slow = slow_request(&server, "").await;
    let nobody = Visitor::new(&server, None);
    let is_full = async { while nobody.get("/echo", &[]).await.0 != 429 {} };
    tokio::time::timeout(Duration::from_mins(1), is_full).await.unwrap();

    let list = &format!("{DECISIONS}/namespaces/a/decisions");
    assert_eq!(nobody.get_message(list, &[("authorization", rich.as_str())]).await.0, 200);
    assert_eq!(nobody.get("/readyz", &[]).await.0, 200);
    slow.write_all(b"d").await.unwrap();
    server.stop().await;
}

/// A tenant may wait for metrics of a source that answers slowly, in many requests at once.
#[tokio::test(flavor = "multi_thread")]
async fn slow_requests_of_one_user_leave_room_for_others() {
    let cluster = Cluster::start(localkube::Options::default()).await.unwrap();
    let client = reviewed(&cluster, &[], &Arc::default());
    let limits = ServerLimits { requests: 3, ..ServerLimits::default() };
    let mut options = ServerOptions { limits, ..options() };
    options.open_paths.push("/echo".to_owned());
    let arrived = Arc::new(AtomicU32::new(0));
    let routes = vec![echo(&arrived)];
    let server = Server::start(options, client.clone(), App { routes, ..app() }).await.unwrap();
    let (tenant, rich) = (token(&client, "tenant").await, token(&client, "rich").await);

    let line = format!("Authorization: {tenant}\r\n");
    let mut slow = [slow_request(&server, &line).await, slow_request(&server, &line).await];
    let visitor = Visitor::new(&server, None);
    let (of_tenant, of_rich) = ([("authorization", tenant.as_str())], [("authorization", rich.as_str())]);
    let both = async {
        while arrived.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), both).await.unwrap();

    let list = &format!("{DECISIONS}/namespaces/a/decisions");
    assert_eq!(visitor.get(list, &of_tenant).await.0, 429);
    assert_eq!(visitor.get(list, &of_rich).await.0, 200);
    for slow in &mut slow {
        slow.write_all(b"d").await.unwrap();
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_api_server_it_starts_and_refuses_requests() {
    let gone = tower::service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, Error>("the API server is away".into())
    });
    let server = Server::start(options(), Client::new(gone, "default"), app()).await.unwrap();
    let nobody = Visitor::new(&server, None);
    assert_eq!(nobody.get("/readyz", &[]).await, (200, "ok".into()));
    let list = &format!("{DECISIONS}/decisions");
    assert_eq!(nobody.get_message(list, &[]).await.0, 500);
    assert_eq!(nobody.get_message(list, &[("authorization", "Bearer x")]).await.0, 401);
    let chief = Authority::new("x").unwrap().client("chief", Some("system:masters")).unwrap();
    assert_eq!(Visitor::new(&server, Some(&chief)).get_message(list, &[]).await.0, 401);
    server.stop().await;
}
