//! Runs scenarios, several at the same time. After every step, a scenario waits until nothing changes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::join_all;
use locks::MutexExt as _;
use tokio::sync::watch;

use super::apply::{Snapshot, apply};
use super::classify::{ReportedDifferences, StepViews, classify_differences};
use super::env::{ComparedOperator, KedaEnv};
use super::report::KedaOutcome;
use super::scenario::KedaScenario;
use super::scenario::trigger::Places;
use super::view::KedaView;

/// Which scenarios are played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KedaRunOptions {
    pub(crate) seed: u64,
    pub(crate) steps: usize,
    pub(crate) concurrent_scenarios: usize,
    /// Play this scenario alone.
    pub(crate) only: Option<u64>,
    /// Whether changes are also made during polls.
    pub(crate) rush: bool,
}

/// The state that all concurrent scenarios share.
pub(crate) struct KedaRun<'a> {
    pub(crate) env: &'a KedaEnv,
    pub(crate) options: KedaRunOptions,
    pub(crate) seen: watch::Receiver<Option<Arc<Snapshot>>>,
    pub(crate) outcome: &'a Mutex<KedaOutcome>,
    next: AtomicU64,
    steps: AtomicUsize,
}

/// The time without changes after which a step has settled, in addition to the windows of the scenario.
const SETTLE_TIME: Duration = Duration::from_millis(900);
/// The number of polls of each operator after which a step has settled, if it polls.
const POLLS_PER_STEP: usize = 3;
/// The time after which copies that differ are compared, because KEDA retries failures with delays that double.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(20);
/// Timeout of a step.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(45);
/// How often a metric is read again when the operators differ.
const MAX_EXTRA_ROUNDS: usize = 2;

impl<'a> KedaRun<'a> {
    pub(crate) fn new(
        env: &'a KedaEnv,
        options: KedaRunOptions,
        seen: watch::Receiver<Option<Arc<Snapshot>>>,
        outcome: &'a Mutex<KedaOutcome>,
    ) -> Self {
        let next = AtomicU64::new(options.only.unwrap_or_default());
        Self { env, options, seen, outcome, next, steps: AtomicUsize::new(0) }
    }

    /// Runs scenarios until the requested number of steps is reached.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let concurrent = if self.options.only.is_some() { 1 } else { self.options.concurrent_scenarios };
        for result in join_all((0..concurrent).map(|_| self.run_scenarios())).await {
            result?;
        }
        Ok(())
    }

    /// Runs one scenario after the other.
    async fn run_scenarios(&self) -> anyhow::Result<()> {
        while self.steps.load(Ordering::Relaxed) < self.options.steps {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let places = Places {
                scaler: self.env.sources.scaler.to_string(),
                http: self.env.sources.http.to_string(),
            };
            let mut scenario = KedaScenario::new(self.options.seed, number, places);
            self.outcome().scenarios += 1;
            let mut reported = ReportedDifferences::default();
            while !scenario.is_over() && self.steps.fetch_add(1, Ordering::Relaxed) < self.options.steps {
                self.step(&mut scenario, &mut reported).await?;
            }
            apply(self.env, None, &scenario.end()).await;
            if self.options.only.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn outcome(&self) -> std::sync::MutexGuard<'_, KedaOutcome> {
        self.outcome.locked()
    }

    async fn step(
        &self,
        scenario: &mut KedaScenario,
        reported: &mut ReportedDifferences,
    ) -> anyhow::Result<()> {
        let step = scenario.step();
        let polled = Some(&*scenario).filter(|_| !self.options.rush);
        let refused = apply(self.env, polled, &step.actions).await;
        let request_counts = self.request_counts(scenario);
        let mut views = self.settle(scenario, &request_counts, reported).await?;
        self.read_metrics(scenario, &mut views).await;
        let seen = StepViews {
            scenario: scenario.name.clone(),
            titles: scenario.done.iter().map(|step| step.title.clone()).collect(),
            actions: step.actions.iter().map(ToString::to_string).collect(),
            facts: scenario.facts(),
            views,
        };
        let mut outcome = self.outcome();
        outcome.refused.extend(refused);
        outcome.take(self.options.seed, seen, reported);
        Ok(())
    }

    fn request_counts(&self, scenario: &KedaScenario) -> Vec<usize> {
        let script = &self.env.sources.script;
        ComparedOperator::ALL
            .iter()
            .map(|operator| script.value_request_count(operator.namespace(), &scenario.name))
            .collect()
    }

    /// Waits until nothing changes and all views are equal, or until a timeout.
    async fn settle(
        &self,
        scenario: &KedaScenario,
        request_counts: &[usize],
        reported: &ReportedDifferences,
    ) -> anyhow::Result<Vec<KedaView>> {
        let began = Instant::now();
        let settle_time = SETTLE_TIME + Duration::from_secs(scenario.memory());
        let mut seen = self.seen.clone();
        let facts = scenario.facts();
        let (mut before, mut since): (Vec<KedaView>, _) = (Vec::new(), Instant::now());
        loop {
            let snapshot = seen
                .wait_for(|snapshot| snapshot.as_ref().is_some_and(|snapshot| snapshot.at > began))
                .await
                .context("the task that lists the objects has ended")?
                .clone();
            let Some(snapshot) = snapshot else { continue };
            let views: Vec<KedaView> = ComparedOperator::ALL
                .into_iter()
                .zip(&snapshot.lists)
                .map(|(operator, lists)| KedaView::new(lists, scenario, operator))
                .collect();
            if !views.iter().map(|view| &view.fields).eq(before.iter().map(|view| &view.fields)) {
                since = Instant::now();
            }
            before = views;
            let now = self.request_counts(scenario);
            let are_polled = now
                .iter()
                .zip(request_counts)
                .all(|(now, before)| now == before || now - before >= POLLS_PER_STEP);
            let same = classify_differences(&before, &facts, reported).differences.is_empty();
            let quiet = since.elapsed() >= settle_time && are_polled;
            let late = began.elapsed() >= MAX_SETTLE_TIME;
            if quiet && (same || late) || began.elapsed() >= SETTLE_TIMEOUT {
                return Ok(before);
            }
            seen.changed().await.context("the task that lists the objects has ended")?;
        }
    }

    /// Reads the metrics as HPAs do.
    async fn read_metrics(&self, scenario: &KedaScenario, views: &mut [KedaView]) {
        if scenario.is_job() {
            return;
        }
        let mut metrics: BTreeSet<String> = BTreeSet::new();
        if let Some(theirs) = views.first() {
            for (name, value) in &theirs.fields {
                if name.starts_with("hpa/") && name.contains(".external.metric.name") {
                    metrics.insert(value.clone());
                }
            }
        }
        for metric in metrics {
            for attempt in 0..=MAX_EXTRA_ROUNDS {
                let values = ComparedOperator::ALL
                    .map(|operator| self.env.metric_value(operator, &scenario.name, &metric));
                let values = join_all(values).await;
                let same = values.windows(2).all(|pair| pair.first() == pair.get(1));
                for (view, value) in views.iter_mut().zip(values) {
                    view.fields.insert(format!("answer {metric}"), value);
                }
                if same || attempt == MAX_EXTRA_ROUNDS {
                    break;
                }
                tokio::time::sleep(SETTLE_TIME).await;
            }
        }
    }
}
