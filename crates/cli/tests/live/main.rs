//! The commands on a cluster: localkube over TLS, with decisions behind its aggregation layer.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod bundle;
mod console;
mod controller;
mod metrics;
mod migrate;
mod one_process;
#[allow(dead_code, reason = "the binary's own tests use the rest")]
#[path = "../../src/live/sample.rs"]
mod sample;
mod setting;

use std::time::Duration;

use api::decisions::DecisionRecord;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use setting::{Ended, Setting};

/// A decision of this many seconds ago.
fn ago(name: &str, seconds: i64, replicas: i32, usages: &[i64]) -> DecisionRecord {
    let at = Timestamp::now() - SignedDuration::from_secs(seconds);
    sample::record_of(name, &at.to_string(), replicas, usages)
}

fn failed(ended: &Ended, code: i32, text: &str) {
    assert_eq!((ended.code, ended.err.as_str()), (code, text), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_explains_the_last_decision() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    setting.controller().await.keep(ago("web", 60, 1, &[610])).keep(ago("web", 10, 4, &[100; 4]));
    for words in [&["why", "hpa/web", "-n", "shop"][..], &["why", "hpa", "web", "-n", "shop"]] {
        let ended = setting.run(words).await;
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(ended.out.starts_with("hpa/web in shop · "), "{}", ended.out);
        assert!(
            ended.out.contains(" UTC · stayed at 4: cpu is within tolerance of its target\n\n"),
            "{}",
            ended.out
        );
        assert!(ended.out.contains("400m used of 800m requested = 50 %, target 50 %\n"), "{}", ended.out);
    }
    let before = setting.run(&["why", "hpa/web", "-n", "shop", "--at", "30s"]).await;
    assert!(
        before.out.contains(
            " UTC · scaled 1 → 4 (wanted 7): the limit of one step without behavior allows at most 4\n"
        ),
        "{before:?}"
    );
    let json = setting.run(&["why", "hpa/web", "-n", "shop", "-o", "json"]).await;
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["autoscaler"], "hpa/web");
    assert_eq!(json["decision"]["desired"], 4);
    assert_eq!(json["times"], 1);
    assert_eq!(json["causes"][0]["id"], "within-tolerance");
    let early = setting.run(&["why", "hpa/web", "-n", "shop", "--at", "1h"]).await;
    assert_eq!(early.code, 1);
    assert!(early.err.contains("no decision from before then is kept; the oldest"), "{early:?}");
    let since = setting.run(&["why", "hpa/web", "-n", "shop", "--since", "10m"]).await;
    let lines: Vec<&str> = since.out.lines().collect();
    assert_eq!(lines.len(), 3, "{since:?}");
    assert!(lines[1].contains("1 → 4") && lines[1].ends_with("scale-up limit is 4 this time"), "{since:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_standard_input_is_an_error() {
    let setting = Setting::nowhere();
    for words in [
        &["convert", "-", "--to", "autoscaling/v1"][..],
        &["migrate", "values", "--from", "keda", "-"],
        &["metrics", "lint", "-"],
        &["lint", "-"],
    ] {
        let ended = setting.run(words).await;
        failed(&ended, 2, "error: standard input is empty: did the command before the pipe fail?\n");
        assert_eq!(ended.out, "");
    }
}

/// As in `plimsoll up --speed`.
#[tokio::test(flavor = "multi_thread")]
async fn times_are_those_of_a_cluster_whose_clock_is_ahead() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    setting.controller().await.keep(ago("web", -3600, 1, &[610])).keep(ago("web", -7200, 4, &[100; 4]));
    for (words, expected) in
        [(["--since", "10m"], " 4 "), (["--since", "2h"], "1 → 4"), (["--at", "10m"], "scaled 1 → 4")]
    {
        let ended = setting.run(&[&["why", "hpa/web", "-n", "shop"][..], &words].concat()).await;
        assert!(ended.code == 0 && ended.out.contains(expected), "{ended:?}");
    }
    let described = setting.run(&["describe", "hpa/web", "-n", "shop", "--at", "10m"]).await;
    assert!(described.code == 0 && described.out.starts_with("Status of the pass at "), "{described:?}");
    let listed = setting.run(&["get", "-n", "shop"]).await;
    assert!(listed.code == 0 && listed.out.contains(" 120m "), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_name_is_reported_with_existing_names() {
    let setting = Setting::new().await;
    setting.hpa("shop", "checkout").await;
    setting.hpa("default", "php-apache").await;
    setting.controller().await.keep(ago("checkout", 5, 1, &[610]));
    for command in ["why", "get"] {
        let ended = setting.run(&[command, "hpa/php-apche"]).await;
        failed(
            &ended,
            1,
            "error: there is no hpa/php-apche in namespace default\n  did you mean hpa/php-apache?\n",
        );
        let ended = setting.run(&[command, "hpa/checkout"]).await;
        failed(
            &ended,
            1,
            "error: there is no hpa/checkout in namespace default\n  it exists in namespace shop: add -n shop\n",
        );
    }
    let ended = setting.run(&["why", "hpa/a/b"]).await;
    assert_eq!(ended.code, 2, "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_without_a_controller_uses_the_object() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    setting
        .status("shop", "web", &json!({"currentReplicas": 2, "desiredReplicas": 2, "conditions": [
            {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "no metrics"}]}))
        .await;
    let ended = setting.run(&["why", "hpa/web", "-n", "shop"]).await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (
            0,
            "\
hpa/web in shop · at 2

target      Deployment/web
metrics     cpu: <unknown>/50% (now/target)
limits      min 1, max 10
conditions  ScalingActive=False (FailedGetResourceMetric): no metrics
note        this is all that the object itself shows; decisions cannot be read
            cause: this cluster does not serve decisions.plimsoll.dev/v1alpha1
            remedy: run `plimsoll controller` on it, with its APIService
"
        ),
        "{ended:?}"
    );
    let past = setting.run(&["why", "hpa/web", "-n", "shop", "--since", "1h"]).await;
    failed(
        &past,
        1,
        "error: decisions cannot be read: this cluster does not serve decisions.plimsoll.dev/v1alpha1\n  remedy: run \
         `plimsoll controller` on it, with its APIService\n",
    );
    let got = setting.run(&["get", "-n", "shop"]).await;
    assert!(got.out.contains("FailedGetResourceMetric: no metrics"), "{got:?}");
    assert!(got.err.starts_with("note: decisions cannot be read: "), "{got:?}");
    let report = setting.run(&["shadow", "report"]).await;
    assert_eq!(report.code, 1, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_controller_differs_from_missing_controller() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    setting.register(1).await;
    let ended = setting.run(&["why", "hpa/web", "-n", "shop"]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended.out.contains("cause: the controller behind decisions.plimsoll.dev/v1alpha1 does not answer")
    );
    assert!(ended.out.contains("remedy: check that its pods run and that its Service leads to them"));
}

#[tokio::test(flavor = "multi_thread")]
async fn why_reports_an_object_without_decisions() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    let _controller = setting.controller().await;
    let ended = setting.run(&["why", "hpa/web", "-n", "shop"]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended.out.contains("note        the controller has not decided anything about it yet"),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn follow_prints_new_decisions_and_reconnects() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    let controller = setting.controller().await;
    controller.keep(ago("web", 60, 1, &[610]));
    let mut follow = setting.start(&["why", "hpa/web", "-n", "shop", "--follow"]);
    assert!(follow.line().await.ends_with("hpa/web  1 → 4      cpu wants 7; scale-up limit is 4 this time"));
    controller.keep(ago("web", 45, 4, &[100; 4]));
    assert!(follow.line().await.ends_with("hpa/web  4          cpu 50 % of 50 %: close enough"));
    // An unchanged decision is not printed again, and a closed connection is opened again.
    controller.keep(ago("web", 30, 4, &[100; 4]));
    controller.cut();
    controller.keep(ago("web", 15, 4, &[150; 4]));
    assert!(follow.line().await.ends_with("hpa/web  4 → 6      cpu 75 % of 50 %"));
    follow.interrupt();
    assert_eq!(follow.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn get_prints_kubectl_columns_and_the_last_decision() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    setting.hpa("shop", "api").await;
    setting.hpa("default", "php-apache").await;
    setting.controller().await.keep(ago("web", 10, 1, &[610]));
    let ended = setting.run(&["get", "hpa", "-n", "shop"]).await;
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(lines[0].starts_with("NAME      REFERENCE        TARGETS"), "{ended:?}");
    assert!(lines[1].starts_with("hpa/api ") && lines[1].ends_with("   not reconciled yet"), "{ended:?}");
    assert!(lines[2].ends_with("1 → 4: cpu wants 7; scale-up limit is 4 this time"), "{ended:?}");
    assert_eq!(lines.len(), 3);
    let all = setting.run(&["get", "-A", "-o", "wide"]).await;
    assert_eq!(all.out.lines().count(), 4, "{all:?}");
    assert!(
        all.out.lines().any(|line| line.starts_with("shop ") && line.contains("   up rate   ")),
        "{all:?}"
    );
    let names = setting.run(&["get", "-A", "-o", "name"]).await;
    assert_eq!(names.out.lines().next().unwrap(), "horizontalpodautoscaler.autoscaling/php-apache");
    let one = setting.run(&["get", "hpa/web", "-n", "shop", "-o", "json"]).await;
    let one: Value = serde_json::from_str(&one.out).unwrap();
    assert_eq!((&one["kind"], &one["spec"]["maxReplicas"]), (&json!("HorizontalPodAutoscaler"), &json!(10)));
    let list = setting.run(&["get", "-n", "shop", "-o", "json"]).await;
    let list: Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!(
        (list["items"].as_array().unwrap().len(), list["decisions"].as_array().unwrap().len()),
        (2, 1)
    );
    let none = setting.run(&["get", "-l", "app=none"]).await;
    assert_eq!(
        (none.code, none.out.as_str(), none.err.as_str()),
        (0, "", "no autoscaler with these labels in namespace default; -A looks in all of them\n")
    );
    let jobs = setting.run(&["get", "sj", "-n", "shop"]).await;
    assert_eq!(
        (jobs.code, jobs.err.as_str()),
        (0, "no ScaledJob in namespace shop; -A looks in all of them\n")
    );
    let kinds = setting.run(&["get", "hpa,sj", "-n", "shop", "-o", "name"]).await;
    assert_eq!(kinds.out.lines().count(), 2, "{kinds:?}");
    let labelled = setting.run(&["get", "-A", "-l", "name=api", "-o", "name"]).await;
    assert_eq!(labelled.out, "horizontalpodautoscaler.autoscaling/api\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn get_watch_prints_changes() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    let controller = setting.controller().await;
    controller.keep(ago("web", 20, 1, &[610]));
    let mut watch = setting.start(&["get", "hpa/web", "-n", "shop", "-w", "--interval", "200ms"]);
    assert!(watch.line().await.starts_with("NAME "));
    assert!(watch.line().await.contains("1 → 4: cpu wants 7"));
    controller.keep(ago("web", 5, 4, &[100; 4]));
    assert!(watch.line().await.ends_with("cpu 50 % of 50 %: close enough"));
    watch.interrupt();
    assert_eq!(watch.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn top_without_a_terminal_prints_one_table() {
    let setting = Setting::new().await;
    for name in ["calm", "blind"] {
        setting.hpa("shop", name).await;
    }
    setting.controller().await.keep(ago("calm", 10, 4, &[100; 4])).keep(ago("blind", 10, 4, &[]));
    let ended = setting.run(&["top", "-A"]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(
        lines[0],
        "✗ cpu cannot be read: metrics.k8s.io is not available: 1 autoscaler holds (shop/hpa/blind)"
    );
    assert!(lines[4].starts_with("NAMESPACE   NAME        PRESSURE"), "{ended:?}");
    assert!(lines[5].starts_with("shop        hpa/blind   -"), "{ended:?}");
    assert!(lines[6].starts_with("shop        hpa/calm    1.00×"), "{ended:?}");
    let json = setting.run(&["top", "-A", "-o", "json"]).await;
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["problems"][0]["autoscalers"], json!(["shop/hpa/blind"]));
    assert_eq!(json["autoscalers"][0]["state"], "failing");
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_report_exits_with_3_on_differences() {
    let setting = Setting::new().await;
    let controller = setting.controller().await;
    let none = setting.run(&["shadow", "report"]).await;
    assert_eq!(
        (none.code, none.out.as_str()),
        (0, "compared 40 decisions of 2 autoscalers: no difference\n")
    );
    controller.differ();
    let some = setting.run(&["shadow", "report", "-n", "shop"]).await;
    assert_eq!(some.code, 3, "{some:?}");
    assert!(some.out.contains("shop/hpa/web   desiredReplicas   4        5"), "{some:?}");
    let page = setting.folder.join("shadow.html");
    let html = setting.run(&["shadow", "report", "--html", page.to_str().unwrap()]).await;
    assert_eq!(html.code, 3, "{html:?}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("desiredReplicas"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_cluster_is_named() {
    let setting = Setting::nowhere();
    for words in [&["why", "hpa/web"][..], &["get"], &["top"], &["shadow", "report"]] {
        let ended = tokio::time::timeout(Duration::from_secs(20), setting.run(words)).await.unwrap();
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.err.starts_with("error: "), "{ended:?}");
        assert!(ended.err.contains("127.0.0.1:1: connection refused"), "{ended:?}");
        assert!(ended.err.contains("remedy: check the address"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_and_why_find_objects_on_a_cluster() {
    let setting = Setting::new().await;
    setting.hpa("shop", "web").await;
    let described = setting.run(&["describe", "hpa/web", "-n", "shop"]).await;
    assert_eq!(described.code, 0, "{described:?}");
    for start in ["Name: ", "Reference: ", "Events: "] {
        assert!(described.out.lines().any(|line| line.starts_with(start)), "{start}: {described:?}");
    }
    let lost = setting.run(&["describe", "hpa/wbe", "-n", "shop"]).await;
    failed(&lost, 1, "error: there is no hpa/wbe in namespace shop\n  did you mean hpa/web?\n");
    let why = setting.run(&["why", "deploy/web", "-n", "shop"]).await;
    assert!(why.out.starts_with("hpa/web in shop"), "{why:?}");
    let none = setting.run(&["why", "deploy/other", "-n", "shop"]).await;
    let text = "error: no autoscaler in namespace shop scales Deployment/other; `plimsoll get` lists the autoscalers there are\n";
    failed(&none, 1, text);
}
