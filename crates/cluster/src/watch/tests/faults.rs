//! What a server can do wrong, and what we make of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::server::{End, ScriptedResponse, Server, bookmark, event, list, list_text, pod, watched};

const FIRST: &str = "?resourceVersion=0";

fn watch_from(version: u32) -> String {
    format!("?watch=true&allowWatchBookmarks=true&resourceVersion={version}")
}

fn not_older_than(version: u32) -> String {
    format!("?resourceVersion={version}&resourceVersionMatch=NotOlderThan")
}

fn status(code: u16, message: &str) -> String {
    format!(r#"{{"kind":"Status","status":"WatchFailure","message":"{message}","reason":"X","code":{code}}}"#)
}

/// As the real server answers.
fn too_large() -> ScriptedResponse {
    let text = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"WatchFailure",
        "message":"Timeout: Too large resource version: 99999999, current: 1159","reason":"Timeout",
        "details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],
        "retryAfterSeconds":1},"code":504}"#;
    ScriptedResponse::Status(504, Some(1), text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_list_is_followed_by_a_watch() {
    let lines =
        [event("ADDED", &pod("b", 11)), event("MODIFIED", &pod("a", 12)), event("DELETED", &pod("b", 13))];
    let server = Server::new([list(10, &[pod("a", 5)]), watched(&lines, End::Clean)]);
    let (health, reported) = server.changes(6).await;
    assert_eq!(reported, ["listing", "+a", "listed", "+b", "+a", "-ns/b"]);
    assert_eq!(server.requests(), [FIRST.to_owned(), watch_from(10)]);
    assert!(health.synced());
    assert_eq!(health.disconnected_since(), None);
    assert_eq!((health.lists(), health.restarts()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_list_are_reported_although_their_texts_are_applied() {
    let lines = [event("MODIFIED", &pod("a", 12)), event("ADDED", &pod("b", 13))];
    let server = Server::new([list(10, &[pod("a", 5)]), watched(&lines, End::Silent)]);
    let offered = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&offered);
    let handler = move |_: &[u8]| {
        counter.fetch_add(1, Ordering::Relaxed);
        Some("12".to_owned())
    };
    assert_eq!(server.changes_beside(4, handler).await, ["listing", "+a", "listed", "+b"]);
    assert_eq!(offered.load(Ordering::Relaxed), 2, "that of the list and that of the change");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_resumed_at_once_from_the_last_version() {
    let server = Server::new([
        list(10, &[]),
        watched(&[event("ADDED", &pod("a", 11)), bookmark(40)], End::Clean),
        watched(&[event("ADDED", &pod("b", 41))], End::Silent),
    ]);
    let (health, reported) = server.changes(4).await;
    assert_eq!(reported, ["listing", "listed", "+a", "+b"]);
    assert_eq!(server.requests(), [FIRST.to_owned(), watch_from(10), watch_from(40)]);
    assert_eq!(server.pauses(), [0, 0]);
    assert_eq!(health.restarts(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_line_is_not_decoded() {
    let half = event("ADDED", &pod("b", 12));
    for cut in 1..half.len() {
        let lines = [event("ADDED", &pod("a", 11)), half[..cut].to_owned()];
        for end in [End::Clean, End::Cut] {
            let again = watched(&[event("ADDED", &pod("b", 12))], End::Silent);
            let server = Server::new([list(10, &[]), watched(&lines, end), again]);
            let (_, reported) = server.changes(4).await;
            assert_eq!(reported, ["listing", "listed", "+a", "+b"], "cut at {cut}");
            assert_eq!(server.requests()[2], watch_from(11));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_resumed_from_the_last_version() {
    let server = Server::new([
        list(10, &[]),
        watched(&[event("ADDED", &pod("a", 11))], End::Cut),
        ScriptedResponse::Unreachable,
        ScriptedResponse::Status(500, None, String::new()),
        watched(&[event("ADDED", &pod("b", 12))], End::Silent),
    ]);
    let (health, reported) = server.changes(4).await;
    assert_eq!(reported, ["listing", "listed", "+a", "+b"]);
    assert_eq!(server.requests()[2..], [watch_from(11), watch_from(11), watch_from(11)]);
    assert_eq!((health.lists(), health.restarts()), (1, 3));
    assert_eq!(health.last_error().unwrap(), "the server answered 500");
    assert_eq!(health.condition().last_error_code, Some(500));
    assert_eq!(health.disconnected_since(), None, "it is over");
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_is_relisted_not_older_than_known() {
    let gone = event("ERROR", &status(410, "too old resource version: 11 (50)"));
    for first in [watched(&[gone], End::Clean), ScriptedResponse::Status(410, None, status(410, "too old"))] {
        let server = Server::new([
            list(10, &[pod("a", 9)]),
            first,
            list(60, &[pod("b", 55)]),
            watched(&[event("ADDED", &pod("c", 61))], End::Silent),
        ]);
        let (health, reported) = server.changes(7).await;
        assert_eq!(reported, ["listing", "+a", "listed", "listing", "+b", "listed", "+c"]);
        assert_eq!(server.requests(), [FIRST.to_owned(), watch_from(10), not_older_than(10), watch_from(60)]);
        assert!(health.synced());
        assert_eq!(health.lists(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_server_gets_a_quorum_list() {
    for behind in
        [too_large(), list(3, &[pod("old", 2)]), ScriptedResponse::Status(400, None, status(400, "no"))]
    {
        let gone = event("ERROR", &status(410, "too old"));
        let server =
            Server::new([list(10, &[]), watched(&[gone], End::Clean), behind, list(70, &[pod("a", 65)])]);
        let (_, reported) = server.changes(5).await;
        assert_eq!(reported, ["listing", "listed", "listing", "+a", "listed"]);
        let expected = [FIRST.to_owned(), watch_from(10), not_older_than(10), String::new()];
        assert_eq!(server.requests(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_quorum_list_is_accepted_even_if_it_is_older() {
    // As after etcd was restored from a copy.
    let server = Server::new([
        list(100, &[]),
        watched(&[bookmark(50)], End::Silent),
        list(51, &[pod("a", 40)]),
        watched(&[event("ADDED", &pod("b", 52))], End::Silent),
    ]);
    let (health, reported) = server.changes(6).await;
    assert_eq!(reported, ["listing", "listed", "listing", "+a", "listed", "+b"]);
    assert_eq!(server.requests(), [FIRST.to_owned(), watch_from(100), String::new(), watch_from(51)]);
    assert_eq!(health.last_error().unwrap(), "the server is at version 50, behind 100");
}

#[tokio::test(start_paused = true)]
async fn older_changes_are_dropped() {
    let lines = [
        event("MODIFIED", &pod("a", 20)),
        event("MODIFIED", &pod("stale", 15)),
        event("DELETED", &pod("stale", 19)),
        event("ADDED", &pod("b", 21)),
    ];
    let server = Server::new([list(10, &[]), watched(&lines, End::Clean)]);
    let (_, reported) = server.changes_for(1).await;
    assert_eq!(reported, ["listing", "listed", "+a", "+b"]);
    assert_eq!(server.requests()[2], watch_from(21));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_keep_a_watch_alive_and_advance_its_version() {
    let server = Server::new([list(10, &[]), watched(&[bookmark(20), bookmark(30)], End::Silent)]);
    let (health, reported) = server.changes_for(151).await;
    assert_eq!(reported, ["listing", "listed"]);
    assert_eq!(server.requests(), [FIRST.to_owned(), watch_from(10), watch_from(30)]);
    assert_eq!(health.lists(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_times_out() {
    let start = Instant::now();
    let server =
        Server::new([list(10, &[]), watched(&[], End::Silent)]).then_always(|| ScriptedResponse::Unreachable);
    let (health, _) = server.changes_for(200).await;
    assert!(server.pauses()[1] >= 150_000 && server.pauses()[1] < 150_200, "{:?}", server.pauses());
    assert_eq!(server.requests()[2], watch_from(10));
    assert_eq!(health.disconnected_since(), Some(start), "since it fell silent, not since we noticed");
    assert_eq!(health.last_error().unwrap(), "connection refused");
    assert_eq!(health.condition().last_error_code, None, "no server answered");
}

#[tokio::test(start_paused = true)]
async fn a_silent_list_times_out() {
    let server =
        Server::new([ScriptedResponse::Body(r#"{"metadata":{"#.to_owned(), End::Silent), list(10, &[])]);
    let (health, reported) = server.changes(2).await;
    assert_eq!(reported, ["listing", "listed"]);
    assert!(server.pauses()[0] >= 90_000 && server.pauses()[0] < 90_200);
    assert_eq!(health.last_error().unwrap(), "no data was received for 90 s");
}

#[tokio::test(start_paused = true)]
async fn repeated_failures_back_off() {
    let server =
        Server::default().then_always(|| ScriptedResponse::Status(500, None, status(500, "etcd is away")));
    let start = Instant::now();
    let (health, reported) = server.changes_for(100).await;
    assert!(reported.is_empty());
    let pauses = server.pauses();
    for (pause, longest) in pauses.iter().zip([100, 200, 400, 800, 1600, 3200, 6400]) {
        assert!((longest / 2).max(100) <= *pause && *pause <= longest + 1, "{pauses:?}");
    }
    assert!(pauses[7..].iter().all(|pause| (5000..=10_001).contains(pause)), "{pauses:?}");
    assert!(!health.synced());
    assert_eq!(health.disconnected_since(), Some(start));
    assert_eq!(health.last_error().unwrap(), "etcd is away (500)");
}

#[tokio::test(start_paused = true)]
async fn a_success_resets_the_backoff() {
    let fail = || ScriptedResponse::Status(500, None, String::new());
    let mut answers: Vec<ScriptedResponse> = (0..8).map(|_| fail()).collect();
    answers.extend([list(10, &[]), watched(&[event("ADDED", &pod("a", 11))], End::Cut), fail(), fail()]);
    let server = Server::new(answers);
    server.changes_for(100).await;
    let pauses = server.pauses();
    assert!(pauses[7] >= 5000, "{pauses:?}");
    assert!(pauses[9] <= 101 && pauses[10] <= 201, "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_followed() {
    let server = Server::new([
        ScriptedResponse::Status(429, Some(7), status(429, "storage is initializing")),
        list(10, &[]),
        ScriptedResponse::Status(429, Some(3), String::new()),
        watched(&[event("ADDED", &pod("a", 11))], End::Silent),
    ]);
    let (_, reported) = server.changes(3).await;
    assert_eq!(reported, ["listing", "listed", "+a"]);
    let pauses = server.pauses();
    assert!((7000..7200).contains(&pauses[0]) && (3000..3200).contains(&pauses[2]), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_back_off() {
    let server = Server::new([list(10, &[])]).then_always(|| watched(&[], End::Clean));
    server.changes_for(60).await;
    assert!(server.requests().len() < 20, "{}", server.requests().len());
    // Nor if they say the same each time.
    let same = || watched(&[event("MODIFIED", &pod("a", 10)), bookmark(10)], End::Clean);
    let server = Server::new([list(10, &[])]).then_always(same);
    server.changes_for(60).await;
    assert!(server.requests().len() < 20, "{}", server.requests().len());
}

#[tokio::test(start_paused = true)]
async fn alternating_lists_and_errors_back_off() {
    let lines = || vec![event("ADDED", &pod("a", 11)), event("ERROR", &status(410, "too old"))];
    let turns = (0..200).flat_map(|_| [list(10, &[]), watched(&lines(), End::Clean)]);
    let server = Server::new(turns);
    server.changes_for(60).await;
    assert!(server.requests().len() < 40, "{}", server.requests().len());
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_does_not_affect_others() {
    let bad = |version: u32| {
        format!(r#"{{"metadata":{{"name":"bad","namespace":"ns","resourceVersion":"{version}"}},"spec":5}}"#)
    };
    let torn = r#"{"metadata":{"name":"torn","namespace":"ns","resourceVersion":"13"},"spec":{"#;
    let lines = [
        event("MODIFIED", &bad(11)),
        event("ADDED", &pod("c", 12)),
        event("ADDED", torn),
        event("ADDED", &pod("d", 14)),
    ];
    let server = Server::new([list(10, &[pod("a", 1), bad(2), pod("b", 3)]), watched(&lines, End::Silent)]);
    let (health, reported) = server.changes(9).await;
    let expected = ["listing", "+a", "?ns/bad", "+b", "listed", "?ns/bad", "+c", "?ns/torn", "+d"];
    assert_eq!(reported, expected);
    assert_eq!((health.unreadable(), health.restarts()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_line_is_followed_by_a_list() {
    for line in [
        "<html>\n",
        "[]\n",
        "{}\n",
        "{\"type\":\"ADDED\",\"object\":7}\n",
        "\u{0}\n",
        "{\"type\":\"DELETED\",\"object\":{}}\n",
    ] {
        let server = Server::new([list(10, &[]), watched(&[line.to_owned()], End::Silent), list(11, &[])]);
        let (_, reported) = server.changes(4).await;
        assert_eq!(reported, ["listing", "listed", "listing", "listed"], "{line}");
        assert_eq!(server.requests()[2], not_older_than(10));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_event_type_is_ignored() {
    let lines = [event("SOMETHING", &pod("x", 11)), event("ADDED", &pod("a", 12))];
    let server = Server::new([list(10, &[]), watched(&lines, End::Silent)]);
    assert_eq!(server.changes(3).await.1, ["listing", "listed", "+a"]);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_list_is_repeated_not_older_than_known() {
    let whole = list_text(10, &[pod("a", 1), pod("b", 2)]);
    for cut in 0..whole.len() {
        let server = Server::new([
            ScriptedResponse::Body(whole[..cut].to_owned(), End::Clean),
            list(12, &[pod("a", 11)]),
        ]);
        let (health, reported) = server.changes_for(1).await;
        assert_eq!(reported[reported.len() - 3..], ["listing", "+a", "listed"], "cut at {cut}: {reported:?}");
        assert_eq!(reported.iter().filter(|reported| *reported == "listed").count(), 1);
        let begun = reported.iter().filter(|reported| *reported == "listing").count() == 2;
        assert_eq!(server.requests()[1], if begun { not_older_than(10) } else { FIRST.to_owned() });
        assert_eq!(health.restarts(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_collection_is_retried() {
    let missing = || ScriptedResponse::Status(404, None, "404 page not found".to_owned());
    let server = Server::new([missing(), missing(), list(10, &[])]);
    let (health, changes) =
        crate::watch::watch::<api::pod::Pod>(server.client(), crate::watch::WatchSource::pods());
    let reader = tokio::spawn(async move {
        futures::pin_mut!(changes);
        loop {
            futures::StreamExt::next(&mut changes).await;
        }
    });
    health.wait_until(|condition| condition.absent).await;
    assert!(!health.synced());
    tokio::time::timeout(Duration::from_secs(2), health.wait_synced()).await.unwrap();
    assert!(!health.absent());
    reader.abort();
}
