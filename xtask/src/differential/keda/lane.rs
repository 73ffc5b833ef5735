//! Lanes: in each, one scenario after the other; after every step all operators are left alone until nothing changes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::join_all;
use locks::MutexExt as _;
use tokio::sync::watch;

use super::apply::{Snapshot, apply};
use super::env::{KedaEnv, Subject};
use super::judge::{Known, Seen, judge};
use super::report::KedaOutcome;
use super::scenario::KedaScenario;
use super::scenario::trigger::Places;
use super::view::KedaView;

/// Which scenarios are played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KedaPlay {
    pub(crate) seed: u64,
    pub(crate) steps: usize,
    pub(crate) lanes: usize,
    /// Play this scenario alone.
    pub(crate) only: Option<u64>,
    /// Whether changes come in the middle of rounds too.
    pub(crate) rush: bool,
}

/// What all lanes share.
pub(crate) struct KedaRun<'a> {
    pub(crate) env: &'a KedaEnv,
    pub(crate) play: KedaPlay,
    pub(crate) seen: watch::Receiver<Option<Arc<Snapshot>>>,
    pub(crate) outcome: &'a Mutex<KedaOutcome>,
    next: AtomicU64,
    steps: AtomicUsize,
}

/// For how long nothing must have changed, beside what the scenario remembers.
const CALM: Duration = Duration::from_millis(900);
/// So often every subject must have asked its sources, if it asks at all.
const POLLS_PER_STEP: usize = 3;
/// Copies that differ may take so long to become the same: KEDA tries again what failed after pauses that double.
const LATEST: Duration = Duration::from_secs(20);
/// Timeout of a step.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(45);
/// How often a metric is read again when the subjects differ.
const MAX_EXTRA_ROUNDS: usize = 2;

impl<'a> KedaRun<'a> {
    pub(crate) fn new(
        env: &'a KedaEnv,
        play: KedaPlay,
        seen: watch::Receiver<Option<Arc<Snapshot>>>,
        outcome: &'a Mutex<KedaOutcome>,
    ) -> Self {
        let next = AtomicU64::new(play.only.unwrap_or_default());
        Self { env, play, seen, outcome, next, steps: AtomicUsize::new(0) }
    }

    /// Plays in all lanes until there were as many steps as were asked for.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let lanes = if self.play.only.is_some() { 1 } else { self.play.lanes };
        for lane in join_all((0..lanes).map(|_| self.lane())).await {
            lane?;
        }
        Ok(())
    }

    async fn lane(&self) -> anyhow::Result<()> {
        while self.steps.load(Ordering::Relaxed) < self.play.steps {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let places = Places {
                scaler: self.env.sources.scaler.to_string(),
                http: self.env.sources.http.to_string(),
            };
            let mut scenario = KedaScenario::new(self.play.seed, number, places);
            self.outcome().scenarios += 1;
            let mut known = Known::default();
            while !scenario.is_over() && self.steps.fetch_add(1, Ordering::Relaxed) < self.play.steps {
                self.step(&mut scenario, &mut known).await?;
            }
            apply(self.env, None, &scenario.end()).await;
            if self.play.only.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn outcome(&self) -> std::sync::MutexGuard<'_, KedaOutcome> {
        self.outcome.locked()
    }

    async fn step(&self, scenario: &mut KedaScenario, known: &mut Known) -> anyhow::Result<()> {
        let step = scenario.step();
        let polled = Some(&*scenario).filter(|_| !self.play.rush);
        let refused = apply(self.env, polled, &step.actions).await;
        let asked = self.asked(scenario);
        let mut views = self.settle(scenario, &asked, known).await?;
        self.ask(scenario, &mut views).await;
        let seen = Seen {
            scenario: scenario.name.clone(),
            titles: scenario.done.iter().map(|step| step.title.clone()).collect(),
            actions: step.actions.iter().map(ToString::to_string).collect(),
            facts: scenario.facts(),
            views,
        };
        let mut outcome = self.outcome();
        outcome.refused.extend(refused);
        outcome.take(self.play.seed, seen, known);
        Ok(())
    }

    fn asked(&self, scenario: &KedaScenario) -> Vec<usize> {
        let script = &self.env.sources.script;
        Subject::ALL.iter().map(|subject| script.asked(subject.namespace(), &scenario.name)).collect()
    }

    /// Waits until nothing changes any more and all subjects are the same, or until they had time enough.
    async fn settle(
        &self,
        scenario: &KedaScenario,
        asked: &[usize],
        known: &Known,
    ) -> anyhow::Result<Vec<KedaView>> {
        let began = Instant::now();
        let calm = CALM + Duration::from_secs(scenario.memory());
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
            let views: Vec<KedaView> = Subject::ALL
                .into_iter()
                .zip(&snapshot.lists)
                .map(|(subject, lists)| KedaView::new(lists, scenario, subject))
                .collect();
            if !views.iter().map(|view| &view.fields).eq(before.iter().map(|view| &view.fields)) {
                since = Instant::now();
            }
            before = views;
            let now = self.asked(scenario);
            let are_polled =
                now.iter().zip(asked).all(|(now, before)| now == before || now - before >= POLLS_PER_STEP);
            let same = judge(&before, &facts, known).differences.is_empty();
            let quiet = since.elapsed() >= calm && are_polled;
            let late = began.elapsed() >= LATEST;
            if quiet && (same || late) || began.elapsed() >= SETTLE_TIMEOUT {
                return Ok(before);
            }
            seen.changed().await.context("the task that lists the objects has ended")?;
        }
    }

    /// Asks for the metrics as HPAs do.
    async fn ask(&self, scenario: &KedaScenario, views: &mut [KedaView]) {
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
                let answers = Subject::ALL.map(|subject| self.env.answer(subject, &scenario.name, &metric));
                let answers = join_all(answers).await;
                let same = answers.windows(2).all(|pair| pair.first() == pair.get(1));
                for (view, answer) in views.iter_mut().zip(answers) {
                    view.fields.insert(format!("answer {metric}"), answer);
                }
                if same || attempt == MAX_EXTRA_ROUNDS {
                    break;
                }
                tokio::time::sleep(CALM).await;
            }
        }
    }
}
