//! `plimsoll console` as a process: its address, its session, and what it shows of a cluster.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::AutoscalerKey;
use controllers::hpa::Records;
use controllers::hpa::records::{Recording, RecordingLimits};
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::setting::{Going, Setting};
use crate::{ago, sample};

/// The timeout of a wait, which is much longer than any wait here takes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// A running console, and the address and session of a browser.
struct Opened {
    process: Going,
    host: String,
    token: String,
    cookie: String,
}

impl Opened {
    async fn start(setting: &Setting, words: &[&str]) -> Self {
        let mut process = setting.start(&[&["console", "--port", "0", "--no-browser"], words].concat());
        let line = process.line().await;
        let url = line.trim().strip_prefix("console").unwrap().trim().to_owned();
        let (host, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let mut opened =
            Self { process, host: host.to_owned(), token: token.to_owned(), cookie: String::new() };
        let answer = opened.get(&format!("/?token={token}")).await;
        assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        cookie.split(';').next().unwrap().clone_into(&mut opened.cookie);
        opened
    }

    /// Sends a request and reads until the text appears or the server closes.
    async fn read(&self, path: &str, headers: &str, until: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut answer, mut part) = (Vec::new(), vec![0; 65536]);
        let reading = async {
            loop {
                let count = stream.read(&mut part).await.unwrap();
                answer.extend_from_slice(&part[..count]);
                let text = String::from_utf8_lossy(&answer);
                // The event with the text must be complete.
                let at = if until.is_empty() { None } else { text.find(until) };
                if count == 0 || at.is_some_and(|at| text[at..].contains("\n\n")) {
                    return text.into_owned();
                }
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, reading).await.unwrap()
    }

    async fn get(&self, path: &str) -> String {
        let headers = format!("Host: {}\r\nCookie: {}\r\n", self.host, self.cookie);
        self.read(path, &headers, "").await
    }

    async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    }

    /// The data of the first event of a kind after the event of that id.
    async fn event(&self, kind: &str, last: &str, until: &str) -> (String, Value) {
        let headers = format!("Host: {}\r\nCookie: {}\r\nLast-Event-ID: {last}\r\n", self.host, self.cookie);
        let text = self.read("/api/v1/events", &headers, until).await;
        let is_it = |event: &&str| event.contains(&format!("event: {kind}\n")) && event.contains(until);
        let event = text.split("\n\n").find(is_it).unwrap();
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        (field("id: "), serde_json::from_str(&field("data: ")).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn console_shows_list_history_and_why_to_its_session_only() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    setting.controller().await.keep(ago("web", 60, 1, &[610])).keep(ago("web", 10, 4, &[100; 4]));
    let opened = Opened::start(&setting, &[]).await;
    let (id, all) = opened.event("reset", "", "\"version\"").await;
    let rows = all["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["id"]), (1, &json!("shop/hpa/web")));
    assert!(all["notes"].as_array().unwrap().is_empty(), "{all}");
    let history = opened.json("/api/v1/autoscalers/shop/hpa/web/history").await;
    let marks = history["marks"].as_array().unwrap();
    assert_eq!((history["source"].as_str(), marks.len(), &marks[0]["to"]), (Some("decisions"), 2, &json!(4)));
    let why = opened.json(&format!("/api/v1/autoscalers/shop/hpa/web/why?at={}", marks[0]["t"])).await;
    assert!(why["headline"].as_str().unwrap().contains("scaled 1 → 4 (wanted 7)"), "{why}");
    let detail = opened.json("/api/v1/autoscalers/shop/hpa/web").await;
    assert!(detail["yaml"].as_str().unwrap().contains("name: web"), "{detail}");
    let gone = opened.get("/api/v1/autoscalers/shop/hpa/none").await;
    assert!(gone.starts_with("HTTP/1.1 404"), "{gone}");
    // A page that reconnects gets what changed.
    setting.hpa("shop", "later").await;
    let (_, change) = opened.event("change", &id, "later").await;
    let is_later = |row: &Value| row["id"] == "shop/hpa/later" && row["target"] == "Deployment/later";
    assert!(change["rows"].as_array().unwrap().iter().any(is_later), "{change}");
    let path = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/later";
    setting.send(Method::DELETE, path, &json!({})).await;
    let (_, change) = opened.event("change", &id, "\"removed\":[\"shop/hpa/later\"]").await;
    assert!(change["removed"].as_array().unwrap().contains(&json!("shop/hpa/later")), "{change}");
    // Others get nothing.
    let (host, cookie) = (&opened.host, &opened.cookie);
    let port = host.rsplit_once(':').unwrap().1;
    for (headers, expected) in [
        (format!("Host: {host}\r\n"), "401"),
        (format!("Host: {host}\r\nCookie: {cookie}0\r\n"), "401"),
        (format!("Host: evil.example:{port}\r\nCookie: {cookie}\r\n"), "421"),
        (format!("Host: {host}\r\nCookie: {cookie}\r\nSec-Fetch-Site: cross-site\r\n"), "403"),
        (format!("Host: {host}\r\nCookie: {cookie}\r\nOrigin: http://evil.example\r\n"), "403"),
    ] {
        let answer = opened.read("/api/v1/autoscalers/shop/hpa/web", &headers, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{headers}: {answer}");
        assert!(answer.contains("content-security-policy: default-src 'none'"), "{answer}");
        assert!(!answer.contains("web"), "{answer}");
    }
    assert!(!opened.get("/").await.contains(&opened.token));
    opened.process.interrupt();
    assert_eq!(opened.process.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn console_without_a_controller_names_what_is_missing() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    let status = json!({"currentReplicas": 2, "desiredReplicas": 2, "conditions": [{"type": "ScalingActive",
        "status": "False", "reason": "FailedGetResourceMetric", "message": "no metrics"}]});
    setting.status("shop", "web", &status).await;
    let opened = Opened::start(&setting, &["-n", "shop"]).await;
    let (_, all) = opened.event("reset", "", "\"version\"").await;
    assert_eq!((&all["rows"][0]["state"], &all["rows"][0]["replicas"]), (&json!("failing"), &json!(2)));
    assert_eq!(all["problems"][0]["cause"], "FailedGetResourceMetric");
    let note = all["notes"][0]["text"].as_str().unwrap();
    assert!(note.contains("does not serve decisions.plimsoll.dev/v1alpha1"), "{note}");
    let history = opened.json("/api/v1/autoscalers/shop/hpa/web/history").await;
    assert_eq!((&history["source"], &history["points"][0]["current"]), (&json!("status"), &json!(2)));
    let other = opened.get("/api/v1/autoscalers/default/hpa/web").await;
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn console_shows_a_recording_without_a_cluster() {
    let setting = Setting::nowhere();
    let folder = setting.folder.join("passes");
    let recording = Recording::start(&folder, RecordingLimits::default()).unwrap();
    let records = Records::default().with_recording(recording);
    for pass in [
        sample::record_of("web", "2026-01-05T09:14:45Z", 1, &[610]),
        sample::record_of("web", "2026-01-05T09:15:00Z", 4, &[100; 4]),
    ] {
        let key = AutoscalerKey::hpa("shop", "web");
        records.add(&key, pass.mode, pass.period, &Arc::new(pass.spec), &pass.decision);
    }
    // The files are complete when the last clone is dropped.
    drop(records);
    let opened = Opened::start(&setting, &["--recording", folder.to_str().unwrap()]).await;
    let (_, all) = opened.event("reset", "", "\"version\"").await;
    assert_eq!((&all["recording"], &all["rows"][0]["id"]), (&json!(true), &json!("shop/hpa/web")));
    assert_eq!((&all["rows"][0]["replicas"], &all["sources"][0]["kind"]), (&json!(4), &json!("recording")));
    let note = all["notes"][0]["text"].as_str().unwrap();
    assert!(note.contains("recording from 2026-01-05T09:14:45Z to 2026-01-05T09:15:00Z"), "{note}");
    let history = opened.json("/api/v1/autoscalers/shop/hpa/web/history").await;
    let (points, marks) = (history["points"].as_array().unwrap(), history["marks"].as_array().unwrap());
    assert_eq!((history["source"].as_str(), points.len(), marks.len()), (Some("passes"), 2, 2));
    let why = opened.json(&format!("/api/v1/autoscalers/shop/hpa/web/why?at={}", marks[0]["t"])).await;
    assert!(why["headline"].as_str().unwrap().contains("scaled 1 → 4 (wanted 7)"), "{why}");
    let nothing = setting.run(&["console", "--recording", "nothing"]).await;
    assert_eq!(nothing.code, 2, "{nothing:?}");
    assert!(nothing.err.contains("remedy: name a folder"), "{nothing:?}");
}

/// Runs an API server with these responses, and returns a folder with a kubeconfig for it.
async fn serve(answer: fn(&Uri) -> (u16, Value)) -> Setting {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let service = service_fn(move |request: Request<Incoming>| async move {
                    let (code, body) = answer(request.uri());
                    let response =
                        Response::builder().status(code).header("content-type", "application/json");
                    Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body.to_string()))).unwrap())
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let setting = Setting::nowhere();
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}]});
    std::fs::write(setting.folder.join("kubeconfig"), config.to_string()).unwrap();
    setting
}

fn refusal(code: u16, reason: &str) -> (u16, Value) {
    let text = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "not for you", "reason": reason, "code": code});
    (code, text)
}

fn one_hpa() -> (u16, Value) {
    let metadata = json!({"resourceVersion": "7"});
    (200, json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": [sample::hpa("web")]}))
}

fn texts(notes: &Value) -> Vec<&str> {
    notes.as_array().unwrap().iter().filter_map(|note| note["text"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn user_of_one_namespace_sees_that_namespace_and_is_told() {
    let setting = serve(|uri| match uri.path() {
        "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers" => one_hpa(),
        "/apis/autoscaling/v2/horizontalpodautoscalers" | "/api/v1/namespaces" => refusal(403, "Forbidden"),
        _ => refusal(404, "NotFound"),
    })
    .await;
    let opened = Opened::start(&setting, &[]).await;
    let (_, all) = opened.event("reset", "", "\"version\"").await;
    let rows = all["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["id"]), (1, &json!("shop/hpa/web")));
    let notes = texts(&all["notes"]);
    assert_eq!(notes[0], "you may not list horizontalpodautoscalers of all namespaces; shown: shop");
    let late = "Changes appear late: you may not list everything, so the list is read every 2 s to 1 min.";
    assert!(notes.contains(&late), "{notes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn user_who_may_not_watch_sees_lists_and_is_told() {
    let setting = serve(|uri| match (uri.path(), uri.query().unwrap_or_default()) {
        ("/apis/autoscaling/v2/horizontalpodautoscalers", query) if query.contains("watch=true") => {
            refusal(403, "Forbidden")
        }
        ("/apis/autoscaling/v2/horizontalpodautoscalers", _) => one_hpa(),
        _ => refusal(404, "NotFound"),
    })
    .await;
    let opened = Opened::start(&setting, &[]).await;
    let (id, all) = opened.event("reset", "", "\"version\"").await;
    assert_eq!(all["rows"][0]["id"], "shop/hpa/web");
    let (_, change) = opened.event("change", &id, "Changes appear late").await;
    let notes = texts(&change["notes"]);
    assert!(
        notes.iter().any(|note| note.contains("you may not watch horizontalpodautoscalers")),
        "{notes:?}"
    );
}
