//! Lanes: in each, one scenario after the other; after every step all operators are left alone until nothing changes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::join_all;
use tokio::sync::watch;

use super::apply::{Snapshot, apply};
use super::deliberate::{Case, explains};
use super::ground::{Ground, Twin};
use super::report::{Difference, Outcome};
use super::scenario::Scenario;
use super::scenario::trigger::Places;
use super::view::View;
use crate::differential::compare::Field;

/// What is to be played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Play {
    pub(crate) seed: u64,
    pub(crate) steps: usize,
    pub(crate) lanes: usize,
    /// Play this scenario alone.
    pub(crate) only: Option<u64>,
}

/// What all lanes share.
pub(crate) struct Game<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) play: Play,
    pub(crate) seen: watch::Receiver<Option<Arc<Snapshot>>>,
    pub(crate) outcome: &'a Mutex<Outcome>,
    next: AtomicU64,
    steps: AtomicUsize,
}

/// For how long nothing must have changed, beside what the scenario remembers.
const CALM: Duration = Duration::from_millis(900);
/// So often every twin must have asked its sources, if it asks at all.
const QUESTIONS: usize = 3;
/// Twins that differ may take so long to become the same: KEDA tries again what failed after pauses that double.
const LATEST: Duration = Duration::from_secs(20);
/// No step takes longer, whatever goes on.
const LONGEST: Duration = Duration::from_secs(45);
/// How often answers that differ are asked for again.
const AGAIN: usize = 2;

impl<'a> Game<'a> {
    pub(crate) fn new(
        ground: &'a Ground,
        play: Play,
        seen: watch::Receiver<Option<Arc<Snapshot>>>,
        outcome: &'a Mutex<Outcome>,
    ) -> Self {
        let next = AtomicU64::new(play.only.unwrap_or_default());
        Self { ground, play, seen, outcome, next, steps: AtomicUsize::new(0) }
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
                scaler: self.ground.sources.scaler.to_string(),
                http: self.ground.sources.http.to_string(),
            };
            let mut scenario = Scenario::new(self.play.seed, number, places);
            self.outcome().scenarios += 1;
            // What was found once in a scenario is not told again.
            let mut known: BTreeSet<(Twin, String)> = BTreeSet::new();
            while !scenario.is_over() && self.steps.fetch_add(1, Ordering::Relaxed) < self.play.steps {
                self.step(&mut scenario, &mut known).await?;
            }
            apply(&self.ground.client, &self.ground.sources.script, &scenario.end()).await;
            if self.play.only.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn outcome(&self) -> std::sync::MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn step(
        &self,
        scenario: &mut Scenario,
        known: &mut BTreeSet<(Twin, String)>,
    ) -> anyhow::Result<()> {
        let step = scenario.step();
        let asked = self.asked(scenario);
        let refused = apply(&self.ground.client, &self.ground.sources.script, &step.deeds).await;
        let mut views = self.settle(scenario, &asked).await?;
        self.ask(scenario, &mut views).await;
        let mut outcome = self.outcome();
        outcome.steps += 1;
        outcome.refused.extend(refused);
        let [theirs, ours @ ..] = views.as_slice() else { return Ok(()) };
        theirs.kinds().into_iter().for_each(|kind| *outcome.seen.entry(kind).or_default() += 1);
        for (twin, view) in Twin::ALL.into_iter().skip(1).zip(ours) {
            let mut fields = Vec::new();
            for field in View::differences(theirs, view) {
                if let Some(entry) = explains(&Case { twin, field: &field, theirs, ours: view }) {
                    *outcome.deliberate.entry(entry).or_default() += 1;
                } else if known.insert((twin, format!("{field:?}"))) {
                    fields.push(field);
                }
            }
            if !fields.is_empty() {
                outcome.differences.push(Difference::new(
                    self.play.seed,
                    twin,
                    &scenario.name,
                    &scenario.done,
                    fields,
                ));
            }
        }
        Ok(())
    }

    fn asked(&self, scenario: &Scenario) -> Vec<usize> {
        let script = &self.ground.sources.script;
        Twin::ALL.iter().map(|twin| script.asked(twin.namespace(), &scenario.name)).collect()
    }

    /// Waits until nothing changes any more and all twins are the same, or until they had time enough.
    async fn settle(&self, scenario: &Scenario, asked: &[usize]) -> anyhow::Result<Vec<View>> {
        let began = Instant::now();
        let calm = CALM + Duration::from_secs(scenario.memory());
        let mut seen = self.seen.clone();
        let (mut before, mut since) = (Vec::new(), Instant::now());
        loop {
            let snapshot = seen
                .wait_for(|snapshot| snapshot.as_ref().is_some_and(|snapshot| snapshot.at > began))
                .await
                .context("nobody looks any more")?
                .clone();
            let Some(snapshot) = snapshot else { continue };
            let views: Vec<View> = Twin::ALL
                .into_iter()
                .zip(&snapshot.lists)
                .map(|(twin, lists)| View::new(lists, scenario, twin))
                .collect();
            if views != before {
                (before, since) = (views, Instant::now());
            }
            let now = self.asked(scenario);
            let heard = now.iter().zip(asked).all(|(now, before)| now == before || now - before >= QUESTIONS);
            let same = alike(&before);
            let quiet = since.elapsed() >= calm && heard;
            let late = began.elapsed() >= LATEST;
            if quiet && (same || late) || began.elapsed() >= LONGEST {
                return Ok(before);
            }
            seen.changed().await.context("nobody looks any more")?;
        }
    }

    /// Asks for the metrics as HPAs do.
    async fn ask(&self, scenario: &Scenario, views: &mut [View]) {
        if scenario.is_job() {
            return;
        }
        let mut metrics: BTreeSet<String> = BTreeSet::new();
        if let Some(theirs) = views.first() {
            for (name, value) in &theirs.0 {
                if name.starts_with("hpa/") && name.contains(".external.metric.name") {
                    metrics.insert(value.clone());
                }
            }
        }
        for metric in metrics {
            for attempt in 0..=AGAIN {
                let answers = Twin::ALL.map(|twin| self.ground.answer(twin, &scenario.name, &metric));
                let answers = join_all(answers).await;
                let same = answers.windows(2).all(|pair| pair.first() == pair.get(1));
                for (view, answer) in views.iter_mut().zip(answers) {
                    view.0.insert(format!("answer {metric}"), answer);
                }
                if same || attempt == AGAIN {
                    break;
                }
                tokio::time::sleep(CALM).await;
            }
        }
    }
}

/// Whether all differences are explained.
fn alike(views: &[View]) -> bool {
    let [theirs, ours @ ..] = views else { return true };
    let explained = |(twin, view): (Twin, &View)| {
        let explained = |field: &Field| explains(&Case { twin, field, theirs, ours: view }).is_some();
        View::differences(theirs, view).iter().all(explained)
    };
    Twin::ALL.into_iter().skip(1).zip(ours).all(explained)
}
