#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::prometheus::client::PrometheusSettings;
use crate::prometheus::client::tests::{Played, prometheus};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn found(names: &[&str]) -> SeriesResult {
    let shapes = names.iter().map(|name| Series { name: Arc::from(*name), labels: vec![Arc::from("pod")] });
    SeriesResult { shapes: shapes.collect(), series: 10, warnings: Vec::new() }
}

fn attempt(selector: &str, result: Result<SeriesResult, PrometheusError>) -> DiscoveryAttempt {
    DiscoveryAttempt { selector: selector.into(), took: Duration::from_secs(1), result }
}

fn wanted(selectors: &[&str]) -> Vec<Arc<str>> {
    selectors.iter().map(|selector| Arc::from(*selector)).collect()
}

fn failure() -> PrometheusError {
    PrometheusError::Prometheus { kind: "timeout".into(), message: "too slow".into() }
}

fn names(memory: &DiscoveryState, selector: &str) -> Vec<String> {
    memory.shapes(selector).map(|shape| shape.name.to_string()).collect()
}

#[test]
fn failed_selector_does_not_block_others() {
    let plan = DiscoverySettings::default();
    let mut memory = DiscoveryState::default();
    let round = vec![attempt("a", Ok(found(&["x"]))), attempt("b", Err(failure()))];
    assert!(memory.update(&wanted(&["a", "b"]), round, at(0), Compat::Better, &plan));
    assert_eq!(names(&memory, "a"), ["x"]);
    let status = memory.status("b").unwrap();
    assert_eq!(status.error.unwrap().0, "timeout: too slow");
    assert_eq!(status.last_success, None);

    // In strict mode it does.
    let mut memory = DiscoveryState::default();
    assert!(memory.update(
        &wanted(&["a"]),
        vec![attempt("a", Ok(found(&["x"])))],
        at(0),
        Compat::Strict,
        &plan
    ));
    let round = vec![attempt("a", Ok(found(&["y"]))), attempt("b", Err(failure()))];
    assert!(!memory.update(&wanted(&["a", "b"]), round, at(1), Compat::Strict, &plan));
    assert_eq!(names(&memory, "a"), ["x"]);
}

#[test]
fn paused_series_stay_known_for_a_grace_period() {
    let plan = DiscoverySettings {
        grace: Duration::from_secs(100),
        max_series_per_selector: 3,
        ..DiscoverySettings::default()
    };
    let mut memory = DiscoveryState::default();
    let mut learn = |names: &[&str], time| {
        memory.update(&wanted(&["a"]), vec![attempt("a", Ok(found(names)))], at(time), Compat::Better, &plan);
        super::tests::names(&memory, "a")
    };
    assert_eq!(learn(&["x", "y"], 0), ["x", "y"]);
    assert_eq!(learn(&["y"], 50), ["x", "y"]);
    assert_eq!(learn(&["z"], 99), ["x", "y", "z"]);
    assert_eq!(learn(&["z"], 120), ["y", "z"]);
    // Not more than are allowed, and the newest of them.
    assert_eq!(learn(&["p", "q"], 121), ["z", "p", "q"]);
}

#[test]
fn vanished_series_lose_their_precedence() {
    let plan = DiscoverySettings::default();
    let mut memory = DiscoveryState::default();
    let mut learn = |names: &[&str], time| {
        let round = vec![attempt("a", Ok(found(names)))];
        memory.update(&wanted(&["a"]), round, at(time), Compat::Better, &plan)
    };
    assert!(learn(&["x", "y"], 0));
    assert!(!learn(&["x", "y"], 1));
    // The last of equal metrics wins, so `x` takes the place of `y`, which stays known.
    assert!(learn(&["x"], 2));
    assert!(!learn(&["x"], 3));
    assert_eq!(names(&memory, "a"), ["y", "x"]);
}

#[test]
fn unused_selectors_are_dropped() {
    let plan = DiscoverySettings::default();
    let mut memory = DiscoveryState::default();
    memory.update(&wanted(&["a"]), vec![attempt("a", Ok(found(&["x"])))], at(0), Compat::Better, &plan);
    assert!(memory.update(
        &wanted(&["b"]),
        vec![attempt("b", Ok(found(&["x"])))],
        at(1),
        Compat::Better,
        &plan
    ));
    assert!(memory.status("a").is_none());
    assert!(!memory.update(
        &wanted(&["b"]),
        vec![attempt("b", Ok(found(&["x"])))],
        at(2),
        Compat::Better,
        &plan
    ));
}

#[test]
fn rounds_use_max_age_and_jitter() {
    let plan = DiscoverySettings::default();
    assert_eq!(plan.start(at(1000)), at(400));
    assert_eq!(plan.pause(Compat::Strict), Duration::from_mins(10));
    for _ in 0..100 {
        let pause = plan.pause(Compat::Better);
        assert!((Duration::from_secs(539)..=Duration::from_secs(661)).contains(&pause), "{pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn selector_concurrency_is_limited() {
    let played = Played::slow(Duration::from_millis(10), |_, selector| {
        if selector == "s3" {
            return (200, r#"{"status":"success","data":null}"#.to_owned());
        }
        (200, format!(r#"{{"status":"success","data":[{{"__name__":"{selector}","pod":"a"}}]}}"#))
    });
    let selectors = (0..10).map(|number| format!("s{number}").into()).collect();
    let round = list_series(
        &prometheus(&played, PrometheusSettings::default()),
        selectors,
        &DiscoverySettings::default(),
        at(0),
    )
    .await;
    assert_eq!(played.busiest.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert_eq!(round.iter().filter(|attempt| attempt.result.is_err()).count(), 1);
    assert_eq!(&*round[9].result.as_ref().unwrap().shapes[0].name, "s9");
}
