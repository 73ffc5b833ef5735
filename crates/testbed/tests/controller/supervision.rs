//! Supervision of the controller's tasks: watches that end or panic are restarted and reported, and a reconcile that panics is retried,
//! while others continue.

use std::time::Duration;

use runtime::WatchFault;
use serde_json::json;
use testbed::harness::Failure;

use crate::env::{ControllerEnv, on_both, queue};

/// Creates two HPAs whose metrics propose two more replicas.
async fn two_hpas(env: &ControllerEnv) {
    for name in ["one", "two"] {
        env.deployment(name, 2).await;
        env.ask_for(name, 2);
        env.hpa(name, 1, 10, json!([queue(name)])).await;
    }
}

#[test]
fn watch_task_that_panics_or_ends_is_restarted_and_reported() -> Result<(), Failure> {
    on_both(async |env| {
        two_hpas(&env).await;
        let controller = env.controller(env.settings());
        env.until_condition("one", "ScalingActive", "True ValidMetricFound").await;
        assert_eq!(controller.handle.watches_current(), Ok(()));
        for fault in [WatchFault::PanicRepeatedly, WatchFault::EndRepeatedly] {
            let resource = "horizontalpodautoscalers";
            controller.handle.faults().fail_watch(resource, fault);
            env.until("a watch that is not current", async || match controller.handle.watches_current() {
                Err(failure) if failure.0.contains(resource) => Ok(()),
                other => Err(other),
            })
            .await;
            let text = controller.handle.exposition();
            assert!(text.contains(&format!("plimsoll_watch_current{{resource=\"{resource}\"}} 0")), "{text}");
            let restarts = format!("plimsoll_watch_restarts_total{{resource=\"{resource}\"}} ");
            let restarts = text.lines().find_map(|line| line.strip_prefix(&restarts));
            assert!(restarts.unwrap().parse::<u64>().unwrap() >= 1, "{text}");

            controller.handle.faults().clear();
            env.until("a watch that is current again", async || controller.handle.watches_current()).await;
            let text = controller.handle.exposition();
            assert!(text.contains(&format!("plimsoll_watch_current{{resource=\"{resource}\"}} 1")), "{text}");
        }
        // The restarted watches deliver changes: a new HPA is reconciled.
        env.deployment("three", 2).await;
        env.ask_for("three", 4);
        env.hpa("three", 1, 10, json!([queue("three")])).await;
        env.until_replicas("three", 4).await;
        assert!(controller.is_alive());
        controller.stop().await;
    })
}

#[test]
fn reconcile_that_panics_is_reported_and_retried_while_another_hpa_scales() -> Result<(), Failure> {
    on_both(async |env| {
        two_hpas(&env).await;
        let controller = env.controller(env.settings());
        controller.handle.faults().panic_in_reconcile(&format!("{}/one", env.namespace));
        env.ask_for("one", 4);
        env.ask_for("two", 4);
        env.until_replicas("two", 4).await;
        let reported = "Warning/ReconcilePanicked: reconcile panicked and is retried in 1 s: injected fault";
        env.until("an event", async || {
            let events = env.events("one").await;
            if events.iter().any(|event| event == reported) { Ok(()) } else { Err(events) }
        })
        .await;
        assert_eq!(env.replicas("one").await, 2);
        let text = controller.handle.exposition();
        let panics = text.lines().find_map(|line| line.strip_prefix("plimsoll_reconcile_panics_total "));
        assert!(panics.unwrap().parse::<u64>().unwrap() >= 1, "{text}");

        controller.handle.faults().clear();
        tokio::time::timeout(Duration::from_mins(1), env.until_replicas("one", 4)).await.unwrap();
        assert!(controller.is_alive());
        controller.stop().await;
    })
}
