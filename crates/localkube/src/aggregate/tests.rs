#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use futures::StreamExt as _;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::access::{Authority, Identity, parts, roots};

/// A TLS server on this machine; with an authority it requires a client certificate signed by it.
pub(crate) async fn serve<F>(identity: &Identity, clients: Option<&str>, answer: F) -> SocketAddr
where
    F: Fn(http::request::Parts, Bytes) -> Response<ResponseBody> + Clone + Send + Sync + 'static,
{
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(pem) => {
            let roots = Arc::new(roots(pem.as_bytes()).unwrap());
            config.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(roots, provider).build().unwrap(),
            )
        }
    };
    let (chain, key) = parts(identity).unwrap();
    let mut config = config.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), answer.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let answer = answer.clone();
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await?.to_bytes();
                        Ok::<_, hyper::Error>(answer(parts, body))
                    }
                });
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    address
}

pub(crate) fn body(text: impl Into<Bytes>) -> ResponseBody {
    respond(200, PLAIN_TEXT, text).into_body()
}

fn upstream(port: u16, authority: Option<&str>, pki: &Pki) -> Upstream {
    let mut spec = json!({"group": "metrics.k8s.io", "version": "v1beta1",
        "service": {"namespace": "kube-system", "name": "metrics", "port": port}});
    match authority {
        Some(pem) => spec["caBundle"] = json!(STANDARD.encode(pem)),
        None => spec["insecureSkipTLSVerify"] = json!(true),
    }
    Upstream::of(&json!({"spec": spec}), pki).unwrap()
}

fn get(path: &str) -> Parts {
    Request::get(path).body(()).unwrap().into_parts().0
}

async fn text(response: Response<ResponseBody>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn forwarded_request_has_front_proxy_headers_and_no_client_credentials() {
    let pki = Pki::new().unwrap();
    let authority = Authority::new("upstream").unwrap();
    let identity = authority.server(&["metrics.kube-system.svc"]).unwrap();
    let echo = |parts: http::request::Parts, sent: Bytes| {
        let header = |name: &str| -> Vec<String> {
            parts.headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
        };
        let names = [
            "x-remote-user",
            "x-remote-group",
            "x-remote-extra-scopes%2fa",
            "x-remote-uid",
            "authorization",
            "x-custom",
        ];
        let seen = json!({"method": parts.method.as_str(), "path": parts.uri.path_and_query().unwrap().as_str(),
            "headers": names.map(header), "body": String::from_utf8_lossy(&sent)});
        let mut response = Response::new(body(seen.to_string()));
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    };
    // The server accepts only clients of the front-proxy authority.
    let address = serve(&identity, Some(&pki.front_proxy_ca_pem()), echo).await;
    let upstream = Arc::new(upstream(address.port(), Some(authority.certificate()), &pki));
    let request = Request::post("https://cluster/apis/metrics.k8s.io/v1beta1/pods?watch=1&a=b%20c")
        .header("authorization", "Bearer x")
        .header("x-remote-user", "evil")
        .header("x-remote-group", "evil")
        .header("x-remote-uid", "evil")
        .header("x-custom", "1");
    let mut user = User::service_account("team", "bob");
    user.extra.insert("Scopes/a".into(), vec!["s".into()]);
    let answer = forward(upstream, request.body(()).unwrap().into_parts().0, Bytes::from("hello"), &user)
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::IM_A_TEAPOT);
    let seen: Value = serde_json::from_str(&text(answer).await).unwrap();
    assert_eq!(seen["method"], "POST");
    assert_eq!(seen["path"], "/apis/metrics.k8s.io/v1beta1/pods?watch=1&a=b%20c");
    assert_eq!(seen["body"], "hello");
    assert_eq!(
        seen["headers"],
        json!([["system:serviceaccount:team:bob"], user.groups, ["s"], [], [], ["1"]])
    );
}

#[tokio::test]
async fn forwarded_answer_is_streamed() {
    let pki = Pki::new().unwrap();
    let authority = Authority::new("upstream").unwrap();
    let identity = authority.server(&["metrics.kube-system.svc"]).unwrap();
    let address = serve(&identity, None, |_, _| {
        let first = futures::stream::iter([Ok(Frame::data(Bytes::from("event")))]);
        Response::new(StreamBody::new(first.chain(futures::stream::pending())).boxed_unsync())
    })
    .await;
    let upstream = Arc::new(upstream(address.port(), Some(authority.certificate()), &pki));
    let path = get("/apis/metrics.k8s.io/v1beta1/pods?watch=1");
    let mut body = forward(upstream, path, Bytes::new(), &User::admin()).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "event");
}

#[tokio::test]
async fn unreachable_server_is_unavailable() {
    let pki = Pki::new().unwrap();
    let answer =
        forward(Arc::new(upstream(1, None, &pki)), get("/apis"), Bytes::new(), &User::admin()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(text(answer).await, "service unavailable\n");
}

#[tokio::test]
async fn availability_conditions_match_the_real_aggregator() {
    let pki = Pki::new().unwrap();
    let authority = Authority::new("upstream").unwrap();
    let identity = authority.server(&["metrics.kube-system.svc"]).unwrap();
    let good = serve(&identity, None, |_, _| Response::new(body("{}"))).await.port();
    let bad = serve(&identity, None, |_, _| {
        let mut response = Response::new(body("boom"));
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
    .await
    .port();
    let other = Authority::new("other").unwrap();
    let said = async |upstream: Option<Upstream>| {
        let condition = availability(upstream.as_ref()).await;
        let text = |field: &str| condition[field].as_str().unwrap().to_owned();
        format!("{} {}: {}", text("status"), text("reason"), text("message"))
    };
    let path = "/apis/metrics.k8s.io/v1beta1";
    assert_eq!(said(None).await, "True Local: Local APIServices are always available");
    assert_eq!(said(Some(upstream(good, None, &pki))).await, "True Passed: all checks passed");
    assert_eq!(
        said(Some(upstream(good, Some(authority.certificate()), &pki))).await,
        "True Passed: all checks passed"
    );
    assert_eq!(
        said(Some(upstream(good, None, &pki).resolved_by(|_, _, _| None))).await,
        "False ServiceNotFound: service/metrics in \"kube-system\" is not present"
    );
    let failing = |port: u16, why: &str| {
        format!(
            "False FailedDiscoveryCheck: failing or missing response from https://localhost:{port}{path}: {why}"
        )
    };
    assert_eq!(
        said(Some(upstream(bad, None, &pki))).await,
        failing(bad, &format!("bad status from https://localhost:{bad}{path}: 500"))
    );
    assert_eq!(
        said(Some(upstream(1, None, &pki))).await,
        failing(
            1,
            &format!("Get \"https://localhost:1{path}\": dial tcp 127.0.0.1:1: connect: connection refused")
        )
    );
    assert_eq!(
        said(Some(upstream(good, Some(other.certificate()), &pki))).await,
        failing(
            good,
            &format!(
                "Get \"https://localhost:{good}{path}\": tls: failed to verify certificate: x509: certificate signed by \
                 unknown authority"
            )
        )
    );
}

#[test]
fn local_apis_have_no_upstream() {
    let pki = Pki::new().unwrap();
    assert!(Upstream::of(&json!({"spec": {"group": "apps", "version": "v1"}}), &pki).is_none());
    assert!(Upstream::of(&json!({"spec": {"service": null}}), &pki).is_none());
}
