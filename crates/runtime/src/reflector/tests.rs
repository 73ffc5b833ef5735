#![allow(clippy::unwrap_used, clippy::panic)]

use futures::stream;
use tokio::time::sleep;

use super::*;
use crate::fault::WatchFault;
use crate::health::WatchCondition;

/// What the watch of a test has applied.
type Applied = Arc<Mutex<Vec<u32>>>;

/// Lists one object with the number of the list, then stays silent.
fn list(health: &WatchHealth, number: u32) -> impl Stream<Item = WatchEvent<u32>> + use<> {
    let health = health.clone();
    let listed = async move {
        health.update(|condition| {
            condition.synced = true;
            condition.disconnected_since = None;
        });
        WatchEvent::Listed
    };
    let first = stream::iter([WatchEvent::Listing, WatchEvent::Applied(number)]);
    first.chain(stream::once(listed)).chain(stream::pending())
}

fn spawn(reflectors: &mut Reflectors, resource: &str) -> (WatchHealth, Applied) {
    let applied = Applied::default();
    let (store, mut lists) = (applied.clone(), 0);
    let health = reflectors.spawn(
        resource,
        move |health| {
            lists += 1;
            list(&health, lists)
        },
        move |event| {
            if let WatchEvent::Applied(number) = event {
                store.lock().unwrap().push(number);
            }
        },
    );
    (health, applied)
}

fn text(watches: &WatchSet) -> String {
    let mut writer = MetricsWriter::default();
    watches.export(&mut writer);
    let text = writer.finish();
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_or_ends_is_restarted_and_lists_again() {
    for (fault, cause) in [
        (WatchFault::Panic, "the watch task panicked: injected fault"),
        (WatchFault::End, "the watch task ended"),
    ] {
        let faults = FaultInjector::default();
        let mut reflectors = Reflectors::new(faults.clone());
        let (health, applied) = spawn(&mut reflectors, "pods");
        let (other, _) = spawn(&mut reflectors, "nodes");
        health.wait_synced().await;
        other.wait_synced().await;
        assert_eq!(reflectors.watches().check(), Ok(()));

        faults.fail_watch("pods", fault);
        health.wait_until(|condition| condition.is_stale).await;
        assert_eq!(
            reflectors.watches().check(),
            Err(CheckFailure(format!("watch of pods is not current: {cause}")))
        );
        assert!(!health.is_current() && !health.is_connected() && other.is_current());
        assert_eq!(
            text(&reflectors.watches()),
            "plimsoll_watch_current{resource=\"nodes\"} 1\nplimsoll_watch_current{resource=\"pods\"} 0\n\
             plimsoll_watch_restarts_total{resource=\"nodes\"} 0\nplimsoll_watch_restarts_total{resource=\"pods\"} 1"
        );

        health.wait_until(WatchCondition::is_current).await;
        assert_eq!(reflectors.watches().check(), Ok(()));
        assert_eq!(*applied.lock().unwrap(), [1, 2]);
        assert_eq!(health.condition().task_restarts, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_an_event_is_applied_is_survived() {
    let mut reflectors = Reflectors::default();
    let mut lists = 0;
    let health = reflectors.spawn(
        "pods",
        move |health| {
            lists += 1;
            list(&health, lists)
        },
        |event| assert_ne!(event, WatchEvent::Applied(1), "the first list cannot be applied"),
    );
    health.wait_until(WatchCondition::is_current).await;
    assert_eq!(health.condition().task_restarts, 1);
    assert!(health.last_error().unwrap().contains("the first list cannot be applied"));
}

#[tokio::test(start_paused = true)]
async fn restarts_are_delayed_ever_longer() {
    let faults = FaultInjector::default();
    let mut reflectors = Reflectors::new(faults.clone());
    let (health, applied) = spawn(&mut reflectors, "pods");
    health.wait_synced().await;
    for (fault, restarts) in [(WatchFault::PanicRepeatedly, 6), (WatchFault::EndRepeatedly, 12)] {
        faults.fail_watch("pods", fault);
        // After 1, 2, 4, 8 and 16 seconds.
        sleep(Duration::from_secs(32)).await;
        assert_eq!(health.condition().task_restarts, restarts);
        assert!(!health.is_current());
        faults.clear();
        health.wait_until(WatchCondition::is_current).await;
        assert!(*applied.lock().unwrap().last().unwrap() >= 2);
        // A task that ran for long starts again at the shortest delay.
        sleep(STABLE_RUN).await;
    }
}
