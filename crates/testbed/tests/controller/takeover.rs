//! The history after a takeover: two controllers as processes, and the one that leads is killed while load moves.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use serde_json::{Value, json};
use testbed::harness::Failure;

use crate::env::{on_both, queue};
use crate::replica::{Replica, account, forget, logged, time};

/// How often the load changes before the kill.
const LOAD_CHANGES: u64 = 6;
/// Passes with each load.
const PASSES_PER_LOAD: usize = 3;

/// The decision of a record, without the number of equal decisions.
fn decided(pass: &Value) -> [&Value; 4] {
    ["decision", "spec", "mode", "period"].map(|field| &pass[field])
}

/// The passes that the survivor had before the kill are those of the decision log, at every time. How many of the last ones may be
/// missing is a matter of time, which `controllers` tests with a clock of its own.
#[test]
fn history_of_a_killed_leader_is_asked_from_the_survivor() -> Result<(), Failure> {
    on_both(async |env| {
        let namespace = env.namespace.clone();
        env.deployment("web", 4).await;
        env.ask_for("web", 4);
        env.hpa("web", 2, 8, json!([queue("web")])).await;
        let token = account(&env).await;
        let (first, second) = tokio::join!(Replica::start(&env, &token), Replica::start(&env, &token));
        let leads = |replica: &Replica| !logged(&replica.log).is_empty();
        env.until("a leader", async || if leads(&first) || leads(&second) { Ok(()) } else { Err(()) }).await;
        let (mut leader, survivor) = if leads(&first) { (first, second) } else { (second, first) };
        let random = RandomState::new();
        // The log has the decisions of both replicas, because on a busy machine the leader may change before the kill.
        let passes = || logged(&leader.log).len() + logged(&survivor.log).len();
        for load in 0..LOAD_CHANGES {
            let wanted = 2 + random.hash_one(load) % 7;
            env.ask_for("web", wanted.try_into().unwrap());
            let before = passes();
            env.until("passes with this load", async || {
                let made = passes() - before;
                if made >= PASSES_PER_LOAD { Ok(()) } else { Err(made) }
            })
            .await;
        }
        let copied = logged(&leader.log).pop().unwrap();
        env.until("the history of the leader at the other replica", async || {
            let found = survivor.decision_at(&namespace, time(&copied)).await;
            if decided(&found) == decided(&copied) { Ok(()) } else { Err(found) }
        })
        .await;
        env.ask_for("web", if env.replicas("web").await < 5 { 8 } else { 2 });
        leader.kill(&env).await;
        let killed = logged(&leader.log);
        let end = killed.last().map(time).unwrap();
        env.until("decisions of the survivor", async || {
            logged(&survivor.log).iter().any(|pass| time(pass) > end).then_some(()).ok_or(())
        })
        .await;

        // A busy machine may have changed the leader before, so that both have decided.
        let mut all: Vec<Value> = killed.iter().cloned().chain(logged(&survivor.log)).collect();
        all.sort_by_key(time);
        let known: Vec<&Value> = all.iter().filter(|pass| time(pass) <= time(&copied)).collect();
        assert!(known.len() >= PASSES_PER_LOAD, "on {}: {}", env.cluster, known.len());
        for (index, expected) in known.iter().enumerate() {
            let from = time(expected);
            let next = known.get(index + 1).map_or(from, |next| time(next));
            for at in [from, from + next.duration_since(from) / 2] {
                let found = survivor.decision_at(&namespace, at).await;
                assert_eq!(decided(&found), decided(expected), "on {} at {at}: {found}", env.cluster);
            }
        }
        let lost = killed.iter().rev().map(time).take_while(|at| *at > time(&copied)).count();
        println!(
            "{}: {} passes are the same; {lost} were made after the last look",
            env.cluster,
            known.len()
        );
        forget(&env).await;
    })
}
