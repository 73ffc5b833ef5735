#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use cluster::Clock;
use cluster::lease::{Election, LeaseSettings};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use localkube::access::Authority;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const NAMESPACE: &str = "default";
const ELSEWHERE: &str = "kube-system";
const SERVICE: &str = "keda-operator";
const WEBHOOK: &str = "keda-admission";
const LEASE: &str = "operator.keda.sh";
const GROUPS: [(&str, &str); 2] =
    [("external.metrics.k8s.io", "v1beta1"), ("operator.plimsoll.dev", "v1alpha1")];

async fn cluster() -> localkube::Running {
    localkube::Cluster::start(localkube::Options { workloads: false, ..Default::default() }).await.unwrap()
}

/// The PEM of a CA of this name.
fn ca(name: &str) -> String {
    Authority::new(name).unwrap().certificate().to_owned()
}

async fn put(client: &Client, method: Method, path: &str, content: &'static str, object: &Value) {
    let alone = Leadership::without_election();
    write(client, &alone, method, path.to_owned(), content, object).await.unwrap();
}

async fn create(client: &Client, path: &str, object: &Value) {
    put(client, Method::POST, path, "application/json", object).await;
}

async fn create_api_service(client: &Client, name: &str, spec: Value) {
    let object = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": name}, "spec": spec});
    create(client, API_SERVICES, &object).await;
}

fn spec(group: &str, namespace: &str, service: &str) -> Value {
    json!({"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
        "service": {"namespace": namespace, "name": service, "port": 443}})
}

fn api_services() -> [String; 2] {
    GROUPS.map(|(group, version)| format!("{version}.{group}"))
}

/// The APIServices and the webhook of an operator, with its CA.
async fn objects(client: &Client, ca: &str, port: u16) {
    let bundle = STANDARD.encode(ca);
    for (group, version) in GROUPS {
        let spec = json!({"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
            "caBundle": bundle, "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port}});
        create_api_service(client, &format!("{version}.{group}"), spec).await;
    }
    let path = serve::admission::WEBHOOKS[0].path;
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": WEBHOOK},
        "webhooks": [{"name": "vscaledobject.kb.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"caBundle": bundle, "service": {"name": SERVICE, "namespace": NAMESPACE, "path": path}}}],
    });
    create(client, WEBHOOKS, &object).await;
}

/// The CAs in the APIServices and the webhook.
async fn bundles(client: &Client) -> Vec<String> {
    let api_services = api_services().map(|name| (below(API_SERVICES, [name.as_str()]), "/spec/caBundle"));
    let webhook = (below(WEBHOOKS, [WEBHOOK]), "/webhooks/0/clientConfig/caBundle");
    let mut found = Vec::new();
    for (path, pointer) in api_services.into_iter().chain([webhook]) {
        let object = read(client, &path).await.unwrap().unwrap();
        found.push(String::from_utf8(STANDARD.decode(text(&object, pointer).unwrap()).unwrap()).unwrap());
    }
    found
}

async fn lease(client: &Client, holder: &str) {
    let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"});
    let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE}, "spec": spec});
    create(client, &format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"), &object).await;
}

/// An operator in a namespace.
fn injector(client: &Client, namespace: &str, leadership: Leadership) -> CaInjector {
    let objects = CaBundleObjects {
        webhook: Some(WEBHOOK.to_owned()),
        api_services: api_services().to_vec(),
        names: vec!["localhost".to_owned(), format!("{SERVICE}.{namespace}.svc")],
    };
    let owner = OwnerLease { namespace: namespace.to_owned(), name: LEASE.to_owned() };
    CaInjector::new(client.clone(), leadership, objects, Some(owner))
}

/// An operator without an election.
fn alone(client: &Client, namespace: &str) -> CaInjector {
    injector(client, namespace, Leadership::without_election())
}

/// The leader of a namespace whose lease has no holder.
async fn elected(client: &Client, namespace: &str) -> (Election, Leadership) {
    let settings = LeaseSettings::new(namespace, LEASE, "elected");
    let (election, leadership) = Election::start(client.clone(), settings, Clock::system());
    leadership.acquired().await;
    (election, leadership)
}

/// A server behind the Service with a certificate of this CA. Returns its port.
async fn server(client: &Client, authority: &Authority) -> u16 {
    let name = format!("{SERVICE}.{NAMESPACE}.svc");
    let identity = authority.server(&[name.as_str()]).unwrap();
    let config = localkube::access::server_config(&identity, None).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper::service::service_fn(|_: http::Request<Incoming>| async {
                    Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from_static(b"{}"))))
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
    create(client, &format!("/api/v1/namespaces/{NAMESPACE}/services"), &object).await;
    port
}

#[tokio::test]
async fn only_our_own_api_services_get_our_ca() {
    let running = cluster().await;
    let client = running.client();
    create_api_service(&client, "v1.ours.dev", spec("ours.dev", "default", "it")).await;
    create_api_service(&client, "v1.theirs.dev", spec("theirs.dev", "default", "other")).await;
    create_api_service(&client, "v1.elsewhere.dev", spec("elsewhere.dev", "kube-system", "it")).await;
    let mut unverified = spec("unverified.dev", "default", "it");
    unverified["insecureSkipTLSVerify"] = json!(true);
    create_api_service(&client, "v1.unverified.dev", unverified).await;
    let names = ["ours", "theirs", "elsewhere", "unverified", "missing"].map(|name| format!("v1.{name}.dev"));
    let objects = CaBundleObjects {
        webhook: None,
        api_services: names.to_vec(),
        names: vec!["localhost".to_owned(), "it.default.svc".to_owned()],
    };
    let mut injector = CaInjector::new(client.clone(), Leadership::without_election(), objects, None);
    assert!(injector.inject("our CA").await);
    let bundle = async |name: &str| {
        let found = read(&client, &below(API_SERVICES, [name])).await.unwrap();
        found.and_then(|found| Some(found.pointer("/spec/caBundle")?.as_str()?.to_owned()))
    };
    assert_eq!(bundle("v1.ours.dev").await, Some(STANDARD.encode("our CA")));
    assert_eq!(bundle("v1.theirs.dev").await, None);
    assert_eq!(bundle("v1.elsewhere.dev").await, None);
    assert_eq!(bundle("v1.unverified.dev").await, None);
    assert_eq!(bundle("v1.missing.dev").await, None);
}

#[tokio::test]
async fn ca_of_an_operator_that_renews_its_lease_is_kept() {
    let running = cluster().await;
    let client = running.client();
    let (first, second) = (ca("first"), ca("second"));
    objects(&client, &first, 443).await;
    lease(&client, "other").await;
    for namespace in [NAMESPACE, ELSEWHERE] {
        assert!(!alone(&client, namespace).inject(&second).await, "{namespace}");
        assert_eq!(bundles(&client).await, [&*first; 3], "{namespace}");
    }
    // In another namespace an election is won at once.
    let (_election, leadership) = elected(&client, ELSEWHERE).await;
    assert!(!injector(&client, ELSEWHERE, leadership).inject(&second).await);
    assert_eq!(bundles(&client).await, [&*first; 3]);
}

#[tokio::test]
async fn leader_writes_its_ca_and_others_keep_it() {
    let running = cluster().await;
    let client = running.client();
    let (second, third) = (ca("second"), ca("third"));
    objects(&client, &ca("first"), 443).await;
    let (_election, leadership) = elected(&client, NAMESPACE).await;
    assert!(injector(&client, NAMESPACE, leadership).inject(&second).await);
    assert_eq!(bundles(&client).await, [&*second; 3]);
    assert!(!alone(&client, NAMESPACE).inject(&third).await);
    assert_eq!(bundles(&client).await, [&*second; 3]);
}

#[tokio::test]
async fn ca_is_written_where_no_other_operator_lives() {
    let running = cluster().await;
    let client = running.client();
    let (second, third) = (ca("second"), ca("third"));
    objects(&client, &ca("first"), 443).await;
    assert!(alone(&client, NAMESPACE).inject(&second).await);
    assert_eq!(bundles(&client).await, [&*second; 3]);
    lease(&client, "").await;
    assert!(alone(&client, NAMESPACE).inject(&third).await);
    assert_eq!(bundles(&client).await, [&*third; 3]);
}

/// As KEDA's webhooks during a switch, whose operator has ended.
#[tokio::test]
async fn webhooks_of_another_server_keep_their_ca() {
    let running = cluster().await;
    let client = running.client();
    let first = ca("first");
    objects(&client, &first, 443).await;
    assert!(alone(&client, ELSEWHERE).inject(&ca("second")).await);
    assert_eq!(bundles(&client).await, [&*first; 3]);
}

#[tokio::test]
async fn webhook_of_another_server_keeps_its_ca_beside_ours() {
    let running = cluster().await;
    let client = running.client();
    let (first, second, third) = (ca("first"), ca("second"), ca("third"));
    let webhook = |number: usize, service: &str| {
        let own = serve::admission::WEBHOOKS[number];
        json!({"name": own.name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"caBundle": STANDARD.encode(&first),
                "service": {"name": service, "namespace": NAMESPACE, "path": own.path}}})
    };
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": WEBHOOK},
        "webhooks": [webhook(0, "other"), webhook(1, SERVICE)],
    });
    create(&client, WEBHOOKS, &object).await;
    for ours in [&second, &third] {
        // The second time there is nothing to do.
        for _ in 0..2 {
            assert!(alone(&client, NAMESPACE).inject(ours).await);
            let found = read(&client, &below(WEBHOOKS, [WEBHOOK])).await.unwrap().unwrap();
            let bundle = |number: usize| {
                let pointer = format!("/webhooks/{number}/clientConfig/caBundle");
                text(&found, &pointer).map(str::to_owned)
            };
            assert_eq!(bundle(0), Some(STANDARD.encode(&first)));
            assert_eq!(bundle(1), Some(STANDARD.encode(ours)));
        }
    }
}

#[tokio::test]
async fn ca_with_which_another_server_answers_is_kept() {
    let running = cluster().await;
    let client = running.client();
    let authority = Authority::new("first").unwrap();
    let (first, second) = (authority.certificate().to_owned(), ca("second"));
    let port = server(&client, &authority).await;
    objects(&client, &first, port).await;
    let mut other = alone(&client, NAMESPACE);
    assert!(!other.inject(&second).await);
    assert_eq!(bundles(&client).await, [&*first; 3]);
    // A renewed bundle of the server itself has the CA before it.
    let renewed = format!("{}\n{first}", ca("renewed"));
    assert!(alone(&client, NAMESPACE).inject(&renewed).await);
    assert_eq!(bundles(&client).await, [&*renewed; 3]);
    assert!(!other.inject(&second).await);
    assert_eq!(bundles(&client).await, [&*renewed; 3]);
    // No server has a certificate of this CA.
    let patch = json!({"spec": {"caBundle": STANDARD.encode(ca("dead"))}});
    for name in api_services() {
        let path = below(API_SERVICES, [name.as_str()]);
        put(&client, Method::PATCH, &path, "application/merge-patch+json", &patch).await;
    }
    assert!(other.inject(&second).await);
    assert_eq!(bundles(&client).await, [&*second; 3]);
}
