//! `plimsoll console` beside Kubernetes' own HPA controller, without any role of Plimsoll in the cluster.

use std::time::Duration;

use http::Method;
use localkube::metrics::{MetricsApi, MetricsSettings, Series};
use serde_json::{Value, json};
use testbed::harness::{Failure, WAIT_TIMEOUT, eventually, until};
use testbed::peer::Peer;
use testbed::program::{Program, TempFolder};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{METRICS_APIS, PeerEnv, env, metrics, quick};
use crate::program::program;

/// A running console and the session of its user.
struct Console {
    host: String,
    cookie: String,
    _program: Program,
}

/// A response that is read in parts, because live updates never end.
struct ResponseStream {
    stream: TcpStream,
    text: String,
}

impl Console {
    async fn start(kubeconfig: &str, words: &[&str]) -> Self {
        let temp_folder = TempFolder::new().unwrap();
        let file = temp_folder.write("kubeconfig", kubeconfig).unwrap().display().to_string();
        let fixed = ["console", "--no-browser", "--port", "0", "--kubeconfig", &file];
        let arguments: Vec<String> = fixed.iter().chain(words).map(|word| (*word).to_owned()).collect();
        let mut program = Program::start("console", program(), &arguments, temp_folder).unwrap();
        program.until_logged(Duration::from_mins(2), "stop        Ctrl-C").await.unwrap();
        let log = program.log();
        let address = log.lines().find_map(|line| line.trim().strip_prefix("console     http://")).unwrap();
        let (host, path) = address.split_once('/').unwrap();
        let mut console = Self { host: host.to_owned(), cookie: String::new(), _program: program };
        let response = console.send_request(&format!("/{path}")).await.rest().await;
        let cookie = response.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        cookie.split(';').next().unwrap().clone_into(&mut console.cookie);
        console
    }

    async fn send_request(&self, path: &str) -> ResponseStream {
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        let Self { host, cookie, .. } = self;
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        ResponseStream { stream, text: String::new() }
    }

    async fn json(&self, path: &str) -> Value {
        let response = self.send_request(path).await.rest().await;
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{response}");
        serde_json::from_str(body).unwrap()
    }
}

impl ResponseStream {
    /// Reads until a text arrives, or everything if it is empty.
    async fn until(&mut self, text: &str) {
        let mut part = vec![0; 65536];
        let reading = async {
            while text.is_empty() || !self.text.contains(text) {
                let count = self.stream.read(&mut part).await.unwrap();
                if count == 0 {
                    break;
                }
                self.text += &String::from_utf8_lossy(&part[..count]);
            }
        };
        let done = tokio::time::timeout(WAIT_TIMEOUT, reading).await;
        assert!(done.is_ok() && self.text.contains(text), "{text} did not arrive: {}", self.text);
    }

    async fn rest(mut self) -> String {
        self.until("").await;
        self.text
    }
}

impl PeerEnv {
    /// Lets a user list namespaces, and read HPAs of one of them.
    async fn allow_one_namespace(&self, user: &str, namespace: &str) {
        let group = "rbac.authorization.k8s.io";
        let name = json!({"name": user});
        let subjects = json!([{"apiGroup": group, "kind": "User", "name": user}]);
        let rule = |api: &str, resource: &str| json!([{"apiGroups": [api], "resources": [resource], "verbs": ["get", "list"]}]);
        let role = |kind: &str| json!({"apiGroup": group, "kind": kind, "name": user});
        let all = format!("/apis/{group}/v1");
        let own = format!("{all}/namespaces/{namespace}");
        let hpas = rule("autoscaling", "horizontalpodautoscalers");
        for (path, object) in [
            (format!("{all}/clusterroles"), json!({"metadata": name, "rules": rule("", "namespaces")})),
            (
                format!("{all}/clusterrolebindings"),
                json!({"metadata": name, "roleRef": role("ClusterRole"), "subjects": subjects}),
            ),
            (format!("{own}/roles"), json!({"metadata": name, "rules": hpas})),
            (
                format!("{own}/rolebindings"),
                json!({"metadata": name, "roleRef": role("Role"), "subjects": subjects}),
            ),
        ] {
            self.create(&path, &object).await;
        }
    }

    async fn forbid(&self, user: &str) {
        for plural in ["clusterroles", "clusterrolebindings"] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}/{user}");
            self.send_request(Method::DELETE, &path, &Value::Null).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn console_shows_what_kubernetes_own_controller_does_and_what_is_missing() -> Result<(), Failure> {
    let Some(env) = env().await? else { return Ok(()) };
    let _only = METRICS_APIS.lock().await;
    let here = env.access.namespace("console").unwrap();
    let api = MetricsApi::start(MetricsSettings::default()).await.unwrap();
    api.register(&env.client, &here).await.unwrap();
    let script = api.script();
    script.set_external(&here, "queue", Series::milli(20_000));
    env.deploy(&here).await;
    let [_, (queue, replicas), ..] = metrics();
    env.autoscale(&here, &queue).await;
    let admin = env.access.kubeconfig_for(env.access.admin());
    let console = Console::start(&admin, &["-n", &here]).await;
    // The status is sampled while a page is open.
    let mut page = console.send_request("/api/v1/events").await;
    page.until(&format!("\"id\":\"{here}/hpa/web\"")).await;
    let peer = Peer::start(env.access, &quick(Some(&here))).await.unwrap();
    page.until("\"replicas\":2").await;
    script.set_external(&here, "queue", Series::milli(i64::from(replicas) * 10_000));
    page.until(&format!("\"replicas\":{replicas}")).await;
    let base = format!("/api/v1/autoscalers/{here}/hpa/web");
    let history = until("both counts in the history", async || {
        let history = console.json(&format!("{base}/history")).await;
        let points = history["points"].as_array().unwrap();
        let has_both = points.iter().any(|point| point["current"] == 2)
            && points.last().is_some_and(|point| point["current"] == replicas);
        if has_both { Ok(history) } else { Err(history) }
    })
    .await;
    assert_eq!((&history["source"], &history["metrics"][0]["name"]), (&json!("status"), &json!("queue")));
    let detail = eventually("the event of the change", async || {
        let detail = console.json(&base).await;
        let has = detail["events"].as_array()?.iter().any(|event| event["reason"] == "SuccessfulRescale");
        has.then_some(detail)
    });
    let detail = detail.await;
    assert!(detail["conditions"].as_array().is_some_and(|all| all.len() >= 3), "{detail}");
    assert!(detail["why"]["headline"].as_str().is_some_and(|text| text.contains("hpa/web")), "{detail}");
    let missing = "decisions cannot be read, so conditions are shown: this cluster does not serve decisions.plimsoll.dev/v1alpha1";
    page.until(missing).await;
    page.until("\"name\":\"decisions.plimsoll.dev\",\"kind\":\"decisions\",\"health\":\"missing\"").await;
    // A user of one namespace sees only that namespace, and a notice.
    let user = format!("viewer-{here}");
    env.allow_one_namespace(&user, &here).await;
    let identity = env.access.authority().client(&user, None).unwrap();
    let viewer = Console::start(&env.access.kubeconfig_for(&identity), &[]).await;
    let mut page = viewer.send_request("/api/v1/events").await;
    page.until(&format!("you may not list horizontalpodautoscalers of all namespaces; shown: {here}\""))
        .await;
    page.until(&format!("\"id\":\"{here}/hpa/web\"")).await;
    assert!(!page.text.contains("you may not list scaledobjects"), "the cluster has none: {}", page.text);
    let other = viewer.send_request("/api/v1/autoscalers/default/hpa/web").await.rest().await;
    assert!(other.starts_with("HTTP/1.1 403"), "{other}");
    drop(peer);
    env.forbid(&user).await;
    api.unregister(&env.client, &here).await;
    env.remove(&[&here]).await;
    Ok(())
}
