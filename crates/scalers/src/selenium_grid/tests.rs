use serde_json::{Map, Value, json};

use super::query::{Node, nodes, request_body};
use crate::test_support::{ServerAction, read, server, texts, trigger};

fn chrome() -> Node {
    Node {
        browser: "chrome".into(),
        platform: "Linux".into(),
        downloads: true,
        ongoing: true,
        sessions: 1,
        ..Node::default()
    }
}

/// A response with these queued requests and nodes.
fn grid(queue: &[Value], nodes: &Value) -> Vec<u8> {
    let queue: Vec<String> = queue.iter().map(Value::to_string).collect();
    json!({"data": {"nodesInfo": {"nodes": nodes}, "sessionsInfo": {"sessionQueueRequests": queue}}})
        .to_string()
        .into()
}

fn needed(queue: &[Value], list: &Value, node: &Node) -> u64 {
    nodes(200, &grid(queue, list), node).unwrap()
}

fn request(version: &str) -> Value {
    json!({"browserName": "chrome", "browserVersion": version, "platformName": "linux"})
}

/// A node with this number of Chrome sessions.
fn busy(sessions: usize, most: u64, status: &str) -> Value {
    let stereotype =
        json!({"browserName": "chrome", "browserVersion": "131.0", "platformName": "Linux"}).to_string();
    let session = json!({"id": "x", "capabilities": "{}", "slot": {"id": "y", "stereotype": stereotype}});
    json!({"status": status, "maxSession": most, "sessions": vec![session; sessions]})
}

#[test]
fn requests_match_equal_capabilities() {
    let chrome_131 = Node { version: "131.0".into(), ..chrome() };
    assert_eq!(needed(&[request(""), request("stable"), request("131.0")], &json!([]), &chrome()), 2);
    assert_eq!(
        needed(&[request(""), request("131"), request("131.0"), request("132.0")], &json!([]), &chrome_131),
        2
    );
    let others = [
        json!({"browserName": "firefox", "platformName": "linux"}),
        json!({"browserName": "chrome", "platformName": "windows"}),
        json!({"browserName": "chrome"}),
        json!({}),
        json!({"browserName": "chrome", "platformName": "linux", "myApp:version": "beta"}),
    ];
    assert_eq!(needed(&others, &json!([]), &chrome()), 0);
    let own: Map<String, Value> = [("myApp:version".to_owned(), json!("beta"))].into_iter().collect();
    assert_eq!(needed(&others, &json!([]), &Node { capabilities: own, ..chrome() }), 1);
    let vendor = json!({"browserName": "CHROME", "platformName": "LINUX", "goog:chromeOptions": {"args": []}, "se:name": "x"});
    assert_eq!(needed(&[vendor], &json!([]), &chrome()), 1);
    let download = json!({"browserName": "chrome", "platformName": "linux", "se:downloadsEnabled": true});
    assert_eq!(needed(std::slice::from_ref(&download), &json!([]), &chrome()), 1);
    assert_eq!(needed(&[download], &json!([]), &Node { downloads: false, ..chrome() }), 0);
    let edge = Node { browser: "MicrosoftEdge".into(), session_browser: "msedge".into(), ..chrome() };
    assert_eq!(
        needed(&[json!({"browserName": "MicrosoftEdge", "platformName": "linux"})], &json!([]), &edge),
        1
    );
}

#[test]
fn running_sessions_keep_their_nodes() {
    assert_eq!(needed(&[], &json!([busy(1, 1, "UP"), busy(0, 1, "UP")]), &chrome()), 1);
    // Without a version all running sessions count, also on draining nodes.
    assert_eq!(needed(&[request("")], &json!([busy(1, 1, "UP"), busy(1, 1, "DRAINING")]), &chrome()), 3);
    let other = Node { version: "132.0".into(), ..chrome() };
    assert_eq!(needed(&[], &json!([busy(1, 1, "UP")]), &other), 0);
    // Free slots of busy nodes are used before new nodes are added; new nodes have four slots each.
    let four = Node { sessions: 4, ..chrome() };
    let queue = vec![request(""); 7];
    assert_eq!(needed(&queue, &json!([busy(2, 4, "UP")]), &four), 1 + 2);
    assert_eq!(needed(&queue, &json!([busy(2, 4, "DRAINING")]), &four), 1 + 2);
    assert_eq!(needed(&queue, &json!([]), &four), 2);
}

#[test]
fn running_sessions_can_be_left_out() {
    let queued_only = Node { ongoing: false, ..chrome() };
    assert_eq!(needed(&[], &json!([busy(1, 1, "UP")]), &queued_only), 0);
    assert_eq!(needed(&[request("")], &json!([busy(1, 1, "UP")]), &queued_only), 1);
}

#[test]
fn bad_answers() {
    for (status, bad, why) in [
        (200, r#"{"errors":[{"message":"no such field"}]}"#, "no such field"),
        (200, r#"{"data":null}"#, "nothing at data.sessionsInfo.sessionQueueRequests"),
        (200, r#"{"data":{"sessionsInfo":{"sessionQueueRequests":null}}}"#, "null at"),
        (
            200,
            r#"{"data":{"sessionsInfo":{"sessionQueueRequests":[]},"nodesInfo":{}}}"#,
            "nothing at data.nodesInfo.nodes",
        ),
        (200, "<html>", "not JSON"),
        (401, "", "returned 401"),
    ] {
        let error = nodes(status, bad.as_bytes(), &chrome()).unwrap_err().message;
        assert!(error.contains(why), "{bad}: {error}");
    }
    // Requests that cannot be decoded do not count.
    assert_eq!(
        needed(&[json!("{"), json!(7), json!(null)], &json!([7, null, {"sessions": 5}]), &chrome()),
        0
    );
}

#[tokio::test]
async fn reads_value() {
    let url = server(|head| {
        assert!(head.starts_with("POST /graphql "), "{head}");
        assert!(head.contains("authorization: Bearer t\r\n"), "{head}");
        assert!(head.ends_with(&request_body()), "{head}");
        ServerAction::Answer(200, String::from_utf8(grid(&[request("")], &json!([]))).unwrap())
    })
    .await;
    let url = format!("{url}/graphql");
    let mut trigger =
        trigger("selenium-grid", &[("url", &url), ("browserName", "chrome"), ("platformName", "linux")]);
    trigger.auth = texts(&[("authType", "Bearer"), ("accessToken", "t")]);
    let reading = read(&trigger).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "1");
    assert!(reading.active);
}
