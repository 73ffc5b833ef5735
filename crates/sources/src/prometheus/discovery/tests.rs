#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::prometheus::client::Manner;
use crate::prometheus::client::tests::{Played, prometheus};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn found(names: &[&str]) -> Found {
    let shapes = names.iter().map(|name| Series { name: Arc::from(*name), labels: vec![Arc::from("pod")] });
    Found { shapes: shapes.collect(), series: 10, warnings: Vec::new() }
}

fn attempt(selector: &str, result: Result<Found, Error>) -> Attempt {
    Attempt { selector: selector.into(), took: Duration::from_secs(1), result }
}

fn wanted(selectors: &[&str]) -> Vec<Arc<str>> {
    selectors.iter().map(|selector| Arc::from(*selector)).collect()
}

fn failure() -> Error {
    Error::Prometheus { kind: "timeout".into(), message: "too slow".into() }
}

fn names(memory: &Memory, selector: &str) -> Vec<String> {
    memory.shapes(selector).map(|shape| shape.name.to_string()).collect()
}

#[test]
fn one_selector_that_fails_does_not_hold_the_others() {
    let plan = Plan::default();
    let mut memory = Memory::default();
    let round = vec![attempt("a", Ok(found(&["x"]))), attempt("b", Err(failure()))];
    assert!(memory.learn(&wanted(&["a", "b"]), round, at(0), Compat::Better, &plan));
    assert_eq!(names(&memory, "a"), ["x"]);
    let status = memory.status("b").unwrap();
    assert_eq!(status.error.unwrap().0, "timeout: too slow");
    assert_eq!(status.last_success, None);

    // As recorded it does.
    let mut memory = Memory::default();
    assert!(memory.learn(
        &wanted(&["a"]),
        vec![attempt("a", Ok(found(&["x"])))],
        at(0),
        Compat::Strict,
        &plan
    ));
    let round = vec![attempt("a", Ok(found(&["y"]))), attempt("b", Err(failure()))];
    assert!(!memory.learn(&wanted(&["a", "b"]), round, at(1), Compat::Strict, &plan));
    assert_eq!(names(&memory, "a"), ["x"]);
}

#[test]
fn what_pauses_is_known_for_a_while() {
    let plan = Plan { grace: Duration::from_secs(100), most_remembered: 3, ..Plan::default() };
    let mut memory = Memory::default();
    let mut learn = |names: &[&str], time| {
        memory.learn(&wanted(&["a"]), vec![attempt("a", Ok(found(names)))], at(time), Compat::Better, &plan);
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
fn selectors_that_are_not_wanted_are_forgotten() {
    let plan = Plan::default();
    let mut memory = Memory::default();
    memory.learn(&wanted(&["a"]), vec![attempt("a", Ok(found(&["x"])))], at(0), Compat::Better, &plan);
    assert!(memory.learn(
        &wanted(&["b"]),
        vec![attempt("b", Ok(found(&["x"])))],
        at(1),
        Compat::Better,
        &plan
    ));
    assert!(memory.status("a").is_none());
    assert!(!memory.learn(
        &wanted(&["b"]),
        vec![attempt("b", Ok(found(&["x"])))],
        at(2),
        Compat::Better,
        &plan
    ));
}

#[test]
fn rounds_look_back_and_do_not_march_in_step() {
    let plan = Plan::default();
    assert_eq!(plan.start(at(1000)), at(400));
    assert_eq!(plan.pause(Compat::Strict), Duration::from_mins(10));
    for _ in 0..100 {
        let pause = plan.pause(Compat::Better);
        assert!((Duration::from_secs(539)..=Duration::from_secs(661)).contains(&pause), "{pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn few_selectors_are_asked_at_once() {
    let played = Played::slow(Duration::from_millis(10), |_, selector| {
        if selector == "s3" {
            return (200, r#"{"status":"success","data":null}"#.to_owned());
        }
        (200, format!(r#"{{"status":"success","data":[{{"__name__":"{selector}","pod":"a"}}]}}"#))
    });
    let selectors = (0..10).map(|number| format!("s{number}").into()).collect();
    let round = survey(&prometheus(&played, Manner::default()), selectors, &Plan::default(), at(0)).await;
    assert_eq!(played.busiest.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert_eq!(round.iter().filter(|attempt| attempt.result.is_err()).count(), 1);
    assert_eq!(&*round[9].result.as_ref().unwrap().shapes[0].name, "s9");
}
