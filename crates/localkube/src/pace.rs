//! Time that runs faster than that of the machine, for a runtime with tokio's paused clock.
//!
//! Everything in this crate and in the roles measures time with tokio's clock, so a runtime whose clock is advanced in small
//! steps runs a whole cluster faster. Tasks and sockets get their turn between two steps. When the machine cannot follow, time
//! slows down, so that timeouts do not expire because of a high speed.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clock::Clock;

/// How often time is advanced.
const TICK_INTERVAL: Duration = Duration::from_millis(2);
/// The longest time of the machine that one tick makes up for.
const MAX_TICK: Duration = Duration::from_millis(10);
/// The longest step of simulated time: far below the shortest timeout of a request.
const MAX_STEP: Duration = Duration::from_millis(100);

/// Advances the clock of a runtime until it is dropped.
#[derive(Debug)]
pub struct Pacer(JoinHandle<()>);

impl Drop for Pacer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pacer {
    /// Lets time run `speed` times as fast. Call it first in a runtime that was built with `start_paused`: before, time jumps
    /// to the next timer whenever the runtime is idle. `published` gets each new time of `clock`, for threads outside of this runtime.
    pub fn start(speed: u32, clock: Clock, published: impl Fn(Timestamp) + Send + 'static) -> Self {
        let (ticks, mut received) = mpsc::channel(1);
        // While a blocking task runs, tokio does not advance the paused clock by itself.
        tokio::task::spawn_blocking(move || tick(&ticks));
        published(clock.now());
        Self(tokio::spawn(async move {
            while let Some(elapsed) = received.recv().await {
                for step in steps(elapsed, speed) {
                    // Both happen before another task runs.
                    published(clock.now().saturating_add(step).unwrap_or(Timestamp::MAX));
                    tokio::time::advance(step).await;
                }
            }
        }))
    }
}

/// Sends the elapsed time until the receiver is dropped.
#[expect(clippy::disallowed_methods, reason = "the clock of the machine drives the simulated one")]
fn tick(ticks: &mpsc::Sender<Duration>) {
    let mut last = std::time::Instant::now();
    loop {
        std::thread::sleep(TICK_INTERVAL);
        let now = std::time::Instant::now();
        if ticks.blocking_send(now - last).is_err() {
            return;
        }
        last = now;
    }
}

/// The steps of simulated time for a time of the machine.
fn steps(elapsed: Duration, speed: u32) -> impl Iterator<Item = Duration> {
    let mut rest = elapsed.min(MAX_TICK) * speed;
    std::iter::from_fn(move || {
        let step = rest.min(MAX_STEP);
        rest -= step;
        (!step.is_zero()).then_some(step)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use k8s_openapi::api::apps::v1::Deployment;
    use kube::Api;
    use kube::api::PostParams;
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::nodes::{Nodes, Plan};
    use crate::{Cluster, Options};

    #[test]
    fn steps_are_short_and_a_machine_that_cannot_follow_slows_time_down() {
        let steps = |millis, speed| steps(Duration::from_millis(millis), speed).collect::<Vec<_>>();
        let millis = |all: &[u64]| all.iter().copied().map(Duration::from_millis).collect::<Vec<_>>();
        assert_eq!(steps(2, 60), millis(&[100, 20]));
        assert_eq!(steps(2, 10), millis(&[20]));
        assert_eq!(steps(5_000, 20), steps(10, 20), "a long pause of the process is not made up for");
        assert!(steps(0, 60).is_empty());
    }

    #[allow(clippy::disallowed_methods, reason = "the clock of the machine is what is compared with")]
    #[tokio::test(start_paused = true)]
    async fn cluster_runs_faster_than_the_machine() {
        let clock = Clock::system();
        let published = Arc::new(Mutex::new(Timestamp::UNIX_EPOCH));
        let seen = Arc::clone(&published);
        let _pacer = Pacer::start(60, clock, move |now| *seen.lock().unwrap() = now);
        let (began, wall, real) = (Instant::now(), clock.now(), std::time::Instant::now());
        let running = Cluster::start(Options { clock: Some(clock), ..Options::default() }).await.unwrap();
        let plan = Plan { count: 1, serve: false, clock, ..Plan::default() };
        let _nodes = Nodes::start(running.client(), plan).await.unwrap();
        let deployments: Api<Deployment> = Api::default_namespaced(running.client());
        let labels = json!({"app": "web"});
        let web = json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                },
            },
        });
        deployments.create(&PostParams::default(), &serde_json::from_value(web).unwrap()).await.unwrap();
        let ready = async {
            while deployments.get("web").await.unwrap().status.unwrap_or_default().ready_replicas != Some(2) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_hours(1), ready).await.unwrap();
        tokio::time::sleep_until(began + Duration::from_mins(5)).await;
        let passed = clock.now().duration_since(wall);
        assert!(passed >= jiff::SignedDuration::from_mins(5), "{passed:?}");
        assert_eq!(*published.lock().unwrap(), clock.now());
        // At full speed five seconds; the bound is generous.
        assert!(real.elapsed() < Duration::from_mins(2), "{:?}", real.elapsed());
    }
}
