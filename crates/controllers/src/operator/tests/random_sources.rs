//! ScaledJobs and ScaledObjects whose sources change at random, and what must hold for them whatever happens to requests.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::env::{TestEnv, trigger};
use super::sources::SourceResponse;
use crate::faulty_client::{Random, SeenWrite};

/// Polling interval of all objects.
const INTERVAL: Duration = Duration::from_secs(5);
/// Cooldown period of all ScaledObjects.
const COOLDOWN: Duration = Duration::from_mins(1);
/// Work per job.
const TARGET: i64 = 10;
/// How long a decision may be under way: the deadlines of its requests, and a query of the source.
const UNDER_WAY: Duration = Duration::from_secs(70);
/// How late a converged state may be after the last fault: two intervals, and the longest pause of a watch that was refused.
const CONVERGENCE: Duration = Duration::from_secs(90);

/// The values of a source, each with the time at which it was set.
type SourceValues = Vec<(Instant, Option<i64>)>;

/// Objects whose sources change at random, and what was seen of their jobs.
pub(super) struct RandomSources {
    jobs: Vec<String>,
    objects: Vec<String>,
    values_by_source: BTreeMap<String, SourceValues>,
    /// Unfinished jobs per ScaledJob, at each step.
    unfinished: BTreeMap<String, Vec<(Instant, i64)>>,
    /// All jobs that were ever seen, by name.
    pub(super) all_jobs: BTreeMap<String, String>,
}

impl RandomSources {
    /// Creates the objects.
    pub(super) async fn open(env: &TestEnv, jobs: usize, objects: usize) -> Self {
        let named = |kind: &str, count: usize| (0..count).map(|number| format!("{kind}{number}")).collect();
        let mut random_sources = Self {
            jobs: named("job", jobs),
            objects: named("obj", objects),
            values_by_source: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            all_jobs: BTreeMap::new(),
        };
        let pods = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
        for name in random_sources.jobs.clone() {
            random_sources.set_value(env, &name, Some(0));
            let spec = json!({
                "jobTargetRef": {"template": pods}, "pollingInterval": INTERVAL.as_secs(), "maxReplicaCount": 50,
                "successfulJobsHistoryLimit": 2, "triggers": [trigger(&name)],
            });
            let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob",
                "metadata": {"name": name}, "spec": spec});
            env.create("/apis/keda.sh/v1alpha1/namespaces/shop/scaledjobs", object).await;
        }
        for name in random_sources.objects.clone() {
            random_sources.set_value(env, &name, Some(0));
            env.deployment(&name, 0).await;
            let spec = json!({"pollingInterval": INTERVAL.as_secs(), "cooldownPeriod": COOLDOWN.as_secs(),
                "triggers": [trigger(&name)]});
            env.scaled_object(&name, spec).await;
        }
        random_sources
    }

    /// Sets the value of a source; none: it fails.
    pub(super) fn set_value(&mut self, env: &TestEnv, source: &str, value: Option<i64>) {
        let response = value.map_or(SourceResponse::Fails("connection refused"), SourceResponse::Value);
        env.sources.set(source, response);
        self.values_by_source.entry(source.to_owned()).or_default().push((Instant::now(), value));
    }

    /// Changes some sources and finishes some jobs.
    pub(super) async fn change(&mut self, env: &TestEnv, random: &mut Random) {
        for name in self.jobs.clone() {
            if random.chance(20) {
                let value = *random.pick(&[Some(0), Some(5), Some(15), Some(40), Some(80), None]);
                self.set_value(env, &name, value);
            }
        }
        for name in self.objects.clone() {
            if random.chance(8) {
                let value = *random.pick(&[Some(0), Some(0), Some(5), None]);
                self.set_value(env, &name, value);
            }
        }
        for (name, _, is_finished) in jobs(env).await {
            if !is_finished && random.chance(15) {
                finish(env, &name).await;
            }
        }
    }

    /// The highest number of jobs that the values of a source required since `since`.
    fn wanted(&self, source: &str, since: Instant) -> i64 {
        let source_values = &self.values_by_source[source];
        let current = source_values.iter().rposition(|(at, _)| *at <= since).unwrap_or(0);
        let values = source_values[current..].iter().filter_map(|(_, value)| *value);
        values.map(|value| (value + TARGET - 1) / TARGET).max().unwrap_or(0)
    }

    /// Checks that there are no more jobs than were required, and that none of these new writes scaled a deployment to zero too early.
    pub(super) async fn check(&mut self, env: &TestEnv, writes: &[SeenWrite]) {
        let now = Instant::now();
        let since = now.checked_sub(UNDER_WAY).unwrap_or(now);
        let mut counts: BTreeMap<&str, i64> = self.jobs.iter().map(|name| (name.as_str(), 0)).collect();
        for (name, of, is_finished) in jobs(env).await {
            if !is_finished {
                *counts.get_mut(of.as_str()).unwrap() += 1;
            }
            self.all_jobs.insert(name, of);
        }
        for (name, count) in counts {
            let before = self.unfinished.entry(name.to_owned()).or_default();
            before.retain(|(at, _)| *at >= since);
            let most = before.iter().map(|(_, count)| *count).max().unwrap_or(0);
            before.push((now, count));
            let wanted = self.wanted(name, since);
            assert!(
                count <= most.max(wanted),
                "{name} has {count} unfinished jobs; it had {most} and {wanted} were wanted: {:?}",
                self.values_by_source[name]
            );
        }
        for write in writes {
            self.check_scale_to_zero(env, write);
        }
    }

    /// A deployment is scaled to zero only when no poll has seen its source active for the cooldown period.
    fn check_scale_to_zero(&self, env: &TestEnv, write: &SeenWrite) {
        let Some(name) = write.path.strip_suffix("/scale").and_then(|path| path.rsplit('/').next()) else {
            return;
        };
        if write.method != Method::PUT || write.code >= 300 || write.body["spec"]["replicas"] != 0 {
            return;
        }
        let source_values = &self.values_by_source[name];
        let ends = source_values.iter().skip(1).map(|(at, _)| *at).chain([write.done]);
        let active = source_values.iter().zip(ends).filter(|((begun, value), _)| {
            // A source that became active after the decision does not count.
            value.is_some_and(|value| value > 0) && *begun + UNDER_WAY < write.done
        });
        let Some(end) = active.map(|(_, end)| end).max() else { return };
        let Some(seen) = env.sources.active(name).into_iter().filter(|at| *at <= end).max() else { return };
        let idle = write.done.saturating_duration_since(seen);
        // Times of activity are whole seconds.
        assert!(
            idle + Duration::from_secs(2) >= COOLDOWN,
            "{name} was scaled to zero {idle:?} after a poll saw it active: {source_values:?} {write:?}"
        );
    }

    /// Waits until jobs and replica counts are those that the sources require; fails if that takes long.
    pub(super) async fn converge(&mut self, env: &TestEnv) {
        for name in self.jobs.iter().chain(&self.objects).cloned().collect::<Vec<_>>() {
            if self.values_by_source[&name].last().is_some_and(|(_, value)| value.is_none()) {
                self.set_value(env, &name, Some(30));
            }
        }
        let begun = Instant::now();
        env.until("there are jobs for all work", async || {
            let all = jobs(env).await;
            self.jobs.iter().all(|name| {
                let own = all.iter().filter(|(_, of, is_finished)| of == name && !is_finished);
                i64::try_from(own.count()).unwrap() >= self.wanted(name, Instant::now())
            })
        })
        .await;
        let mut active = Vec::new();
        for name in &self.objects {
            if self.wanted(name, Instant::now()) > 0 {
                active.push(name);
            }
        }
        env.until("active objects have replicas", async || {
            for name in &active {
                if env.replicas(name).await == 0 {
                    return false;
                }
            }
            true
        })
        .await;
        for name in &self.objects {
            env.until("there is an HPA", async || env.hpa(&format!("keda-hpa-{name}")).await.is_some()).await;
            env.until("it is ready", async || env.condition(name, "Ready").await.0 == "True").await;
        }
        let taken = begun.elapsed();
        assert!(taken <= CONVERGENCE, "converged after {taken:?}");
        for name in self.objects.iter().filter(|name| self.wanted(name, Instant::now()) == 0) {
            env.until("an idle object rests", async || env.replicas(name).await == 0).await;
        }
        assert!(env.handle.exported_metrics().contains("\nplimsoll_reconcile_panics_total 0\n"));
    }
}

/// Name, ScaledJob and end of all jobs.
async fn jobs(env: &TestEnv) -> Vec<(String, String, bool)> {
    let all = env.get("/apis/batch/v1/namespaces/shop/jobs").await.unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let view = |job: &Value| {
        let metadata = &job["metadata"];
        let is_finished = job["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty());
        (text(&metadata["name"]), text(&metadata["labels"]["scaledjob.keda.sh/name"]), is_finished)
    };
    all["items"].as_array().unwrap().iter().map(view).collect()
}

async fn finish(env: &TestEnv, name: &str) {
    let time = "2026-01-01T00:00:00Z";
    let condition = json!({"type": "Complete", "status": "True", "lastTransitionTime": time});
    let status = json!({"conditions": [condition], "completionTime": time});
    env.patch(&format!("/apis/batch/v1/namespaces/shop/jobs/{name}/status"), json!({"status": status})).await;
}
