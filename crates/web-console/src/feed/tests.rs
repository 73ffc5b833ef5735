use futures::{FutureExt as _, StreamExt as _};

use super::*;

fn row(id: &str, replicas: i32) -> FeedRow {
    let names = Arc::new(RowNames::new(id, &json!({"max": 9})));
    FeedRow { names, values: json!({"replicas": replicas}).to_string(), replicas: Some(replicas) }
}

/// Kind, id and data of an event.
fn parsed(text: &[u8]) -> (String, String, Value) {
    let text = std::str::from_utf8(text).unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("{name} in {text}")).to_owned()
    };
    (field("event"), field("id"), serde_json::from_str(&field("data")).unwrap())
}

#[tokio::test]
async fn client_gets_everything_once_and_then_changes() {
    let feed = Arc::new(Feed::new("p"));
    let mut events = Box::pin(Arc::clone(&feed).events(None));
    assert_eq!(events.next().await.unwrap(), ": nothing new\n\n", "nothing is published yet");
    feed.publish(10.0, vec![row("a", 1), row("b", 2)], vec![("problems", json!([]))]);
    let (kind, id, data) = parsed(&events.next().await.unwrap());
    assert_eq!((kind.as_str(), id.as_str()), ("reset", "p.1"));
    assert_eq!(
        data,
        json!({"at": 10.0, "rows": [{"id": "a", "max": 9, "replicas": 1, "steps": [[10.0, 1]]},
        {"id": "b", "max": 9, "replicas": 2, "steps": [[10.0, 2]]}], "problems": []})
    );
    feed.publish(12.0, vec![row("a", 3)], vec![("problems", json!([]))]);
    let (kind, id, data) = parsed(&events.next().await.unwrap());
    assert_eq!((kind.as_str(), id.as_str()), ("change", "p.2"));
    assert_eq!(data, json!({"at": 12.0, "rows": [{"id": "a", "replicas": 3}], "removed": ["b"]}));
    assert!(events.next().now_or_never().is_none(), "it waits");
}

#[tokio::test]
async fn client_resumes_after_its_last_event() {
    let feed = Arc::new(Feed::new("p"));
    feed.publish(1.0, vec![row("a", 1), row("b", 1)], vec![("notes", json!(["x"]))]);
    feed.publish(2.0, vec![row("a", 2)], vec![("notes", json!(["x"]))]);
    feed.publish(3.0, vec![row("a", 2), row("c", 1)], vec![("notes", json!(["y"]))]);
    let first = async |id: Option<&str>| {
        let mut events = Box::pin(Arc::clone(&feed).events(id));
        parsed(&events.next().await.unwrap())
    };
    let (kind, id, data) = first(Some("p.1")).await;
    assert_eq!((kind.as_str(), id.as_str()), ("change", "p.3"));
    assert_eq!(data["rows"], json!([{"id": "a", "replicas": 2}, {"id": "c", "max": 9, "replicas": 1}]));
    assert_eq!((&data["removed"], &data["notes"]), (&json!(["b"]), &json!(["y"])));
    let (_, _, data) = first(Some("p.2")).await;
    assert_eq!(data["rows"], json!([{"id": "c", "max": 9, "replicas": 1}]));
    for unknown in ["q.1", "p.9", "p.x", "", "1"] {
        assert_eq!(first(Some(unknown)).await.0, "reset", "{unknown}");
    }
    let mut events = Box::pin(Arc::clone(&feed).events(Some("p.3")));
    assert_eq!(events.next().await.unwrap(), ": nothing new\n\n");
}

#[tokio::test]
async fn only_changed_rows_are_sent() {
    let feed = Arc::new(Feed::new("p"));
    feed.publish(1.0, vec![row("a", 1), row("b", 1), row("c", 1)], vec![("notes", json!([]))]);
    feed.change(2.0, vec![row("a", 1), row("b", 2)], vec!["c".into(), "unknown".into()], Vec::new());
    let mut events = Box::pin(Arc::clone(&feed).events(Some("p.1")));
    let (kind, id, data) = parsed(&events.next().await.unwrap());
    assert_eq!((kind.as_str(), id.as_str()), ("change", "p.2"));
    assert_eq!(data, json!({"at": 2.0, "rows": [{"id": "b", "replicas": 2}], "removed": ["c"]}));
    let mut everything = Box::pin(Arc::clone(&feed).events(None));
    let (_, _, data) = parsed(&everything.next().await.unwrap());
    assert_eq!(data["rows"][1], json!({"id": "b", "max": 9, "replicas": 2, "steps": [[1.0, 1], [2.0, 2]]}));
}

#[tokio::test]
async fn names_are_sent_again_when_they_change() {
    let feed = Arc::new(Feed::new("p"));
    feed.publish(1.0, vec![row("a", 1)], Vec::new());
    let mut events = Box::pin(Arc::clone(&feed).events(Some("p.1")));
    assert_eq!(events.next().await.unwrap(), ": nothing new\n\n");
    let names = Arc::new(RowNames::new("a", &json!({"max": 12})));
    feed.change(2.0, vec![FeedRow { names, ..row("a", 1) }], Vec::new(), Vec::new());
    let (_, _, data) = parsed(&events.next().await.unwrap());
    assert_eq!(data["rows"], json!([{"id": "a", "max": 12, "replicas": 1}]));
    feed.change(3.0, Vec::new(), vec!["a".into()], Vec::new());
    events.next().await.unwrap();
    feed.change(4.0, vec![row("a", 2)], Vec::new(), Vec::new());
    let (_, _, data) = parsed(&events.next().await.unwrap());
    assert_eq!(data["rows"], json!([{"id": "a", "max": 9, "replicas": 2}]), "it was created again");
}

#[tokio::test]
async fn names_of_missed_revisions_are_sent() {
    let feed = Arc::new(Feed::new("p"));
    feed.publish(1.0, vec![row("a", 1), row("b", 1)], Vec::new());
    let names = Arc::new(RowNames::new("a", &json!({"max": 12})));
    let renamed = FeedRow { names: Arc::clone(&names), ..row("a", 1) };
    feed.change(2.0, vec![renamed], vec!["b".into()], Vec::new());
    feed.change(3.0, vec![FeedRow { names, ..row("a", 2) }, row("b", 3)], Vec::new(), Vec::new());
    let mut events = Box::pin(Arc::clone(&feed).events(Some("p.1")));
    let (kind, _, data) = parsed(&events.next().await.unwrap());
    assert_eq!(kind, "change");
    let rows = json!([{"id": "a", "max": 12, "replicas": 2}, {"id": "b", "max": 9, "replicas": 3}]);
    assert_eq!((&data["rows"], &data["removed"]), (&rows, &json!([])), "b was created again");
}

#[test]
fn counts_of_the_last_hour_are_kept() {
    let feed = Feed::new("p");
    let earlier = vec![(4_000.0, 1), (5_000.0, 2), (6_000.0, 2), (9_000.0, 4)];
    feed.set_earlier_steps(HashMap::from([("a".to_owned(), earlier)]));
    feed.publish(10_000.0, vec![row("a", 5)], Vec::new());
    let steps = |feed: &Feed| feed.state().rows["a"].steps.clone();
    assert_eq!(steps(&feed), [(5_000.0, 2), (9_000.0, 4), (10_000.0, 5)]);
    feed.publish(13_000.0, vec![row("a", 6)], Vec::new());
    assert_eq!(steps(&feed), [(9_000.0, 4), (10_000.0, 5), (13_000.0, 6)]);
}

#[tokio::test]
async fn earlier_counts_may_come_after_the_first_list() {
    let feed = Arc::new(Feed::new("p"));
    feed.publish(10.0, vec![row("a", 5), row("b", 5)], Vec::new());
    feed.set_earlier_steps(HashMap::from([("a".to_owned(), vec![(4.0, 1), (11.0, 2)])]));
    let mut events = Box::pin(Arc::clone(&feed).events(Some("p.1")));
    let (kind, _, data) = parsed(&events.next().await.unwrap());
    let rows = json!([{"id": "a", "replicas": 5, "steps": [[4.0, 1], [10.0, 5]]}]);
    assert_eq!((kind.as_str(), &data["rows"]), ("change", &rows));
}

#[tokio::test(start_paused = true)]
async fn publisher_waits_until_a_client_connects() {
    let feed = Arc::new(Feed::new("p"));
    assert!(feed.watched().now_or_never().is_none());
    let events = Arc::clone(&feed).events(None);
    assert!(feed.watched().now_or_never().is_some());
    drop(events);
    assert!(feed.watched().now_or_never().is_none());
}
