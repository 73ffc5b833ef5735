//! Who is let in: over TLS, with localkube as the API server that is asked.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::cluster::{put, reviewed, token};
use common::{DECISIONS, Desk, Visitor};
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use localkube::Cluster;
use localkube::access::Authority;
use serde_json::json;
use serve::{App, Exposition, Server, ServerOptions};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn app() -> App {
    let text = "up 1\n".to_owned();
    let metrics = move || Exposition { content_type: "text/plain; version=0.0.4".into(), text: text.clone() };
    App { decisions: Some(Arc::new(Desk)), metrics: Some(Arc::new(metrics)), ..App::default() }
}

fn options() -> ServerOptions {
    ServerOptions { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), ..ServerOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_sees_what_he_may_see() {
    let cluster = Cluster::start(localkube::Options::default()).await.unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let denied = &["alice", "dave", "system:serviceaccount:default:poor"];
    let client = reviewed(&cluster, denied, &asked);
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
    assert_eq!(nobody.ask(list, &[]).await, no("system:anonymous", ""));
    let text = "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"".to_owned();
    assert_eq!(nobody.ask("/metrics", &[]).await, (403, text));
    assert_eq!(nobody.ask("/readyz/ping", &[]).await.0, 403);
    // He says so himself.
    let forged = [("x-remote-user", "root"), ("x-remote-group", "system:masters")];
    assert_eq!(nobody.ask(list, &forged).await, no("system:anonymous", ""));

    // Tokens: nonsense, without rights, with rights.
    let bad = [("authorization", "Bearer nonsense")];
    assert_eq!(nobody.ask(list, &bad).await, unknown);
    assert_eq!(nobody.ask("/readyz", &bad).await, unknown);
    let (poor, rich) = (token(&client, "poor").await, token(&client, "rich").await);
    let poor = [("authorization", poor.as_str())];
    assert_eq!(nobody.ask(list, &poor).await, no("system:serviceaccount:default:poor", ": no rule"));
    let rich = [("authorization", rich.as_str())];
    assert_eq!(nobody.ask(list, &rich).await, fine);
    assert_eq!(nobody.get("/metrics", &rich).await, (200, "up 1\n".into()));
    assert_eq!(nobody.get("/readyz/ping", &rich).await, (200, "ok".into()));
    // A header beside a token is nothing either.
    let both = [poor[0], forged[0], forged[1]];
    assert_eq!(nobody.ask(list, &both).await, no("system:serviceaccount:default:poor", ": no rule"));
    let other = [rich[0], ("impersonate-user", "root")];
    assert_eq!(nobody.ask(list, &other).await.0, 403);

    // Certificates of users: they speak for themselves only.
    let alice = Visitor::new(&server, Some(&clients.client("alice", None).unwrap()));
    assert_eq!(alice.ask(list, &[]).await, no("alice", ": no rule"));
    assert_eq!(alice.ask(list, &forged).await, no("alice", ": no rule"));
    let bob = Visitor::new(&server, Some(&clients.client("bob", Some("team")).unwrap()));
    assert_eq!(bob.ask(list, &[]).await, fine);
    let chief = Visitor::new(&server, Some(&clients.client("chief", Some("system:masters")).unwrap()));
    assert_eq!(chief.ask(list, &[]).await, fine);

    // A stranger's certificate, even with the right name; with a token the token counts.
    let stranger = Authority::new("proxies").unwrap().client("front-proxy-client", None).unwrap();
    let stranger = Visitor::new(&server, Some(&stranger));
    assert_eq!(stranger.ask(list, &forged).await, unknown);
    assert_eq!(stranger.ask("/readyz", &[]).await, unknown);
    assert_eq!(stranger.ask(list, &rich).await, fine);

    // The front proxy speaks for others; another certificate of its authority does not.
    let proxy = Visitor::new(&server, Some(&proxies.client("front-proxy-client", None).unwrap()));
    assert_eq!(proxy.ask(list, &[("x-remote-user", "carol")]).await, fine);
    assert_eq!(proxy.ask(list, &[("x-remote-user", "dave")]).await, no("dave", ": no rule"));
    assert_eq!(proxy.ask(list, &forged).await, fine);
    assert_eq!(proxy.ask(list, &[]).await, unknown);
    let other = Visitor::new(&server, Some(&proxies.client("other", None).unwrap()));
    assert_eq!(other.ask(list, &[("x-remote-user", "carol")]).await, unknown);

    // What was asked a moment ago is not asked again, whatever the answer was.
    let before = asked.load(Ordering::Relaxed);
    assert_eq!(bob.ask(list, &[]).await, fine);
    assert_eq!(alice.ask(list, &[]).await.0, 403);
    assert_eq!(asked.load(Ordering::Relaxed), before);
    assert_eq!(bob.ask(&format!("{DECISIONS}/decisions"), &[]).await, fine);
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
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
    assert_eq!(nobody.ask(list, &[]).await.0, 500);
    assert_eq!(nobody.ask(list, &[("authorization", "Bearer x")]).await.0, 401);
    let chief = Authority::new("x").unwrap().client("chief", Some("system:masters")).unwrap();
    assert_eq!(Visitor::new(&server, Some(&chief)).ask(list, &[]).await.0, 401);
    server.stop().await;
}
