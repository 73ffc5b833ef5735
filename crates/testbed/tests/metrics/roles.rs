//! It works under the roles of `deploy/metrics`, is never refused, and needs what it is given. localkube knows no roles:
//! there, only that nothing more is asked for than they grant.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use testbed::program::{Program, Room};
use testbed::proxy::{Caller as As, Proxy, ProxyOptions};
use testbed::twin::{Failure, LOCAL};

use crate::faults::admin;
use crate::granted::{check_answers, granted, needed};
use crate::site::subject::{kubelet_flags, prometheus_flags, serving_flags, started};
use crate::site::{Caller, Plot, direct, free_port, on_both, peers, program, until};

const SYSTEM: &str = "plimsoll-system";
const ACCOUNT: &str = "plimsoll-metrics";

/// What the role grants and nobody here needs: for kubelets, which ask the API server about their callers, and for what
/// is switched on by flags (`--shares`, `--upstreams`).
const ELSEWHERE: [&str; 3] = ["nodes/metrics", "endpointslices", "namespaces"];

/// The objects of a folder of the repository, in the order in which kubectl applies them.
fn folder(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    let objects = |file: &PathBuf| -> Vec<Value> {
        let (name, text) = (file.display().to_string(), std::fs::read_to_string(file).unwrap());
        let documents = api::text::parse(&api::text::Source::new(name.as_str(), text.as_str()));
        let documents = documents.unwrap_or_else(|problem| panic!("{}", problem.render(false)));
        documents.iter().map(|document| document.root.to_json()).collect()
    };
    files.iter().flat_map(objects).collect()
}

/// The path of an object.
fn path(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let place = match text("/metadata/namespace") {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    let kind = match text("/kind").to_lowercase() {
        kind if kind.ends_with('s') => format!("{kind}es"),
        kind => format!("{kind}s"),
    };
    format!("{root}/{version}{place}/{kind}/{}", text("/metadata/name"))
}

/// Applies objects strictly; those that would start something or take over an API, only to see what the server would say.
async fn apply(plot: &Plot, objects: &[Value]) {
    for object in objects {
        let version = object["apiVersion"].as_str().unwrap();
        let known = !version.starts_with("rbac.") && !version.starts_with("policy/");
        if plot.site.cluster.name == LOCAL && !known {
            continue;
        }
        let kind = object["kind"].as_str().unwrap();
        let really = matches!(kind, "Namespace" | "ServiceAccount") || kind.contains("Role");
        let dry = if really { "" } else { "&dryRun=All" };
        let uri = format!("{}?fieldManager=deploy&force=true&fieldValidation=Strict{dry}", path(object));
        let request = Request::builder().method(Method::PATCH).uri(&uri);
        let request = request.header("content-type", "application/apply-patch+yaml");
        let body = Body::from(object.to_string().into_bytes());
        let answer = plot.client().send(request.body(body).unwrap()).await.unwrap();
        let code = answer.status();
        let said = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(code.is_success(), "{uri}: {code} {}", String::from_utf8_lossy(&said));
    }
}

async fn token(plot: &Plot) -> String {
    let path = format!("/api/v1/namespaces/{SYSTEM}/serviceaccounts/{ACCOUNT}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    plot.create(&path, &request).await["status"]["token"].as_str().unwrap().to_owned()
}

#[test]
fn it_works_under_its_roles_and_needs_them() -> Result<(), Failure> {
    if peers() {
        return Ok(());
    }
    on_both(async |plot| {
        let objects: Vec<Value> =
            ["deploy", "deploy/metrics", "deploy/metrics/prometheus"].into_iter().flat_map(folder).collect();
        apply(&plot, &objects).await;
        plot.pod("busy", "web", "web-0", &[("app", 100, 64 << 20)]).await;
        plot.serve("web-0", 10.0).await;

        let options = ProxyOptions { caller: As::Itself, remember_lists: false };
        let proxy = Proxy::start_with(&plot.site.cluster.kubeconfig, options).await.unwrap();
        let (room, port) = (Room::new().unwrap(), free_port());
        let mut arguments = vec!["metrics".to_owned()];
        arguments.extend(serving_flags(&room, &proxy.kubeconfig_with(&token(&plot).await), port));
        arguments.push(format!("--kubeconfig={}", room.path("kubeconfig").display()));
        arguments.extend(kubelet_flags(&room, &plot.site.kubelets));
        arguments.extend(prometheus_flags(&room, &plot.site.front.url()));
        let mut server = started("plimsoll", &program(), &arguments, room, port).await.unwrap();

        let namespace = &plot.namespace;
        let pages = [
            format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/web-0"),
            format!("/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/*/http_requests"),
            format!(
                "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/*/http_requests?labelSelector=app%3Dweb"
            ),
            format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/queue_depth"),
        ];
        for page in &pages {
            answered(port, &admin(&plot), page, 200, &server).await;
        }
        if plot.access().is_some() {
            // It asks the API server about a token and about rights.
            answered(port, &Caller::token(&token(&plot).await), &pages[0], 403, &server).await;
        }
        assert_eq!(server.ended(), None, "{}", server.log());
        let log = proxy.rules().log();
        check_answers(namespace, &log);
        let mut role = granted(&objects, ACCOUNT);
        role.extend(granted(&objects, "plimsoll-metrics-described"));
        let needed = needed(&log);
        // Reviews and whom to trust come with roles of Kubernetes' own.
        let own = |group: &str| !matches!(group, "authentication.k8s.io" | "authorization.k8s.io");
        let missing: Vec<_> = needed
            .iter()
            .filter(|need| own(&need.group) && !role.iter().any(|held| held.covers(need)))
            .collect();
        assert!(missing.is_empty(), "asked for, but not granted: {missing:#?}");
        let idle: Vec<_> = granted(&objects, ACCOUNT)
            .into_iter()
            .filter(|held| !ELSEWHERE.contains(&held.resource.as_str()))
            .filter(|held| !needed.iter().any(|need| held.covers(need)))
            .collect();
        assert!(idle.is_empty(), "granted, but never needed: {idle:#?}");
    })
}

async fn answered(port: u16, caller: &Caller, page: &str, code: u16, server: &Program) {
    until(page, async || {
        let answer = direct(port, caller, page).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        match answer {
            Some(answer) if answer.code == code => Ok(()),
            other => Err((other.map(|answer| (answer.code, answer.text())), server.log())),
        }
    })
    .await;
}
