//! Authentication and authorization, with and without the API server. A server that is reached
//! directly responds as kube-apiserver itself does.

use http::Method;
use localkube::access::Authority;
use serde_json::json;
use testbed::Access;
use testbed::harness::{self, Failure};

use crate::env::{Caller, TestNamespace, direct, on_real, send, until};

/// One path of each API, and one non-resource path.
const PATHS: [&str; 5] = [
    "/apis/metrics.k8s.io/v1beta1/nodes",
    "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods",
    "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{ns}/pods/*/http_requests",
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/{ns}/queue_depth",
    "/metrics",
];

/// A path that kube-apiserver serves itself, for comparison.
const API_SERVER_PATH: &str = "/api/v1/nodes";

async fn codes(ns: &TestNamespace, caller: &Caller) -> Vec<u16> {
    let mut codes = Vec::new();
    for path in PATHS {
        let path = path.replace("{ns}", &ns.namespace);
        let tested_server = &ns.env.tested_server;
        let port = if path.contains("custom") || path.contains("external") {
            tested_server.custom_port
        } else {
            tested_server.resource_port
        };
        codes.push(direct(port, caller, &path).await.unwrap().code);
    }
    codes
}

/// The response of kube-apiserver to the same caller.
async fn own(access: &Access, caller: &Caller) -> u16 {
    direct(access.ports.api_server, caller, API_SERVER_PATH).await.unwrap().code
}

/// Creates a service account, with or without a role that reads all metrics, and returns its token.
async fn account(ns: &TestNamespace, name: &str, reads: bool) -> String {
    ns.create("/api/v1/namespaces/{ns}/serviceaccounts", &json!({"metadata": {"name": name}})).await;
    if reads {
        let role = format!("{}-{name}", ns.namespace);
        let rules = json!([
            {"apiGroups": ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
        ]);
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        ns.create(roles, &json!({"metadata": {"name": role}, "rules": rules})).await;
        let binding = json!({
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": ns.namespace}]
        });
        ns.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    }
    let path = format!("/api/v1/namespaces/{{ns}}/serviceaccounts/{name}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    ns.create(&path, &request).await["status"]["token"].as_str().unwrap().to_owned()
}

#[test]
fn direct_clients_are_authenticated_like_by_the_api_server() -> Result<(), Failure> {
    on_real(async |ns| {
        let access = ns.access().unwrap();
        let stranger = Authority::new("stranger").unwrap();
        let (known, proxies) = (access.authority(), access.front_proxy_authority());
        let cases = [
            ("nobody", Caller::anonymous(), 403),
            (
                "who only says who he is",
                Caller::anonymous().with("x-remote-user", "admin").with("x-remote-group", "system:masters"),
                403,
            ),
            (
                "a certificate of somebody else",
                Caller::with_certificate(&stranger.client("admin", Some("system:masters")).unwrap()),
                401,
            ),
            ("a user without rights", Caller::with_certificate(&known.client("mallory", None).unwrap()), 403),
            (
                "… who says that he is another",
                Caller::with_certificate(&known.client("mallory", None).unwrap())
                    .with("x-remote-user", "admin")
                    .with("x-remote-group", "system:masters"),
                403,
            ),
            ("the administrator", Caller::with_certificate(access.admin()), 200),
            ("the front proxy for nobody", Caller::with_certificate(access.front_proxy_client()), 401),
            (
                "the front proxy for somebody",
                Caller::with_certificate(access.front_proxy_client()).with("x-remote-user", "mallory"),
                403,
            ),
            (
                "the front proxy for the administrator",
                Caller::with_certificate(access.front_proxy_client())
                    .with("x-remote-user", "root")
                    .with("x-remote-group", "system:masters"),
                200,
            ),
            (
                "a proxy of another name",
                Caller::with_certificate(&proxies.client("another", None).unwrap())
                    .with("x-remote-user", "root")
                    .with("x-remote-group", "system:masters"),
                401,
            ),
            ("a token that nobody gave out", Caller::token("nonsense"), 401),
            ("a token without rights", Caller::token(&account(&ns, "stranger", false).await), 403),
        ];
        for (who, caller, code) in cases {
            assert_eq!(own(access, &caller).await, code, "{who}, at kube-apiserver");
            let found = codes(&ns, &caller).await;
            // A missing object is 404 for a user who may read it.
            let right = |found: &u16| *found == code || (code == 200 && *found == 404);
            assert!(found.iter().all(right), "{who}: {found:?}, not {code}");
        }
        let reader = Caller::token(&account(&ns, "reader", true).await);
        until("rights", async || {
            let found = codes(&ns, &reader).await;
            if found.iter().all(|code| matches!(code, 200 | 404)) { Ok(()) } else { Err(found) }
        })
        .await;
    })
}

#[test]
fn refusals_have_the_texts_of_the_api_server() -> Result<(), Failure> {
    on_real(async |ns| {
        let access = ns.access().unwrap();
        let mallory = Caller::with_certificate(&access.authority().client("mallory", None).unwrap());
        let tested_server = &ns.env.tested_server;
        let namespace = &ns.namespace;
        let refused = [
            (
                tested_server.resource_port,
                "/apis/metrics.k8s.io/v1beta1/nodes/busy".to_owned(),
                "nodes.metrics.k8s.io \"busy\" is forbidden: User \"mallory\" cannot get resource \"nodes\" in API group \"metrics.k8s.io\" at the cluster scope".to_owned(),
            ),
            (
                tested_server.custom_port,
                format!("/apis/custom.metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/*/qps"),
                format!("pods.custom.metrics.k8s.io \"*\" is forbidden: User \"mallory\" cannot get resource \"pods/qps\" in API group \"custom.metrics.k8s.io\" in the namespace \"{namespace}\""),
            ),
            (
                tested_server.custom_port,
                format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/queue"),
                format!("queue.external.metrics.k8s.io is forbidden: User \"mallory\" cannot list resource \"queue\" in API group \"external.metrics.k8s.io\" in the namespace \"{namespace}\""),
            ),
            (tested_server.resource_port, "/metrics".to_owned(), "forbidden: User \"mallory\" cannot get path \"/metrics\"".to_owned()),
        ];
        for (port, path, message) in refused {
            let response = direct(port, &mallory, &path).await.unwrap();
            let body = response.json();
            assert_eq!(
                (response.code, &body["reason"], &body["code"]),
                (403, &json!("Forbidden"), &json!(403)),
                "{body}"
            );
            // The API server may add a reason.
            assert!(body["message"].as_str().unwrap().starts_with(&message), "{body}");
        }
        let unknown =
            direct(tested_server.resource_port, &Caller::token("nonsense"), PATHS[0]).await.unwrap().json();
        let theirs = direct(access.ports.api_server, &Caller::token("nonsense"), API_SERVER_PATH)
            .await
            .unwrap()
            .json();
        assert_eq!(unknown, theirs);
        for page in ["/healthz", "/livez", "/readyz"] {
            assert_eq!(
                direct(tested_server.resource_port, &Caller::anonymous(), page).await.unwrap().text(),
                "ok"
            );
        }
    })
}

#[test]
fn api_server_forwards_its_users() -> Result<(), Failure> {
    on_real(async |ns| {
        let access = ns.access().unwrap();
        let nodes = "/apis/metrics.k8s.io/v1beta1/nodes";
        let as_user = async |name: &str| {
            let identity = access.authority().client(name, None).unwrap();
            harness::connect(&access.kubeconfig_for(&identity)).await.unwrap()
        };
        let user = format!("alice-{}", ns.namespace);
        let (alice, mallory) = (as_user(&user).await, as_user("mallory").await);
        assert_eq!(send(&mallory, Method::GET, nodes, None).await.0, 403);
        let role = json!({
            "metadata": {"name": user},
            "rules": [{"apiGroups": ["metrics.k8s.io"], "resources": ["nodes"], "verbs": ["list"]}]
        });
        ns.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await;
        let binding = json!({
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]
        });
        ns.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
        until("rights of a user", async || {
            let (code, body) = send(&alice, Method::GET, nodes, None).await;
            if code == 200 { Ok(()) } else { Err(body) }
        })
        .await;
        assert_eq!(send(&alice, Method::GET, &format!("{nodes}/busy"), None).await.0, 403);
    })
}
