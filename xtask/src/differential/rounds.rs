//! Rounds: one step of every scenario while both controllers are held, then both reconcile until nothing changes, then the copies are compared.

use std::time::{Duration, Instant};

use futures::future::join_all;
use localkube::metrics::{MetricsGroup, Outage};

use super::compare::View;
use super::env::{HpaEnv, SYNC_PERIOD, Setting, now};
use super::report::{HpaDifference, HpaOutcome, Progress};
use super::scenario::action::HpaStep;
use super::scenario::{Facts, Scenario};

/// Which scenarios are played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HpaRunOptions {
    pub(crate) seed: u64,
    pub(crate) steps: usize,
    pub(crate) concurrent_scenarios: usize,
    /// The number of the first scenario.
    pub(crate) first: u64,
    /// Play this scenario alone.
    pub(crate) only: Option<u64>,
}

struct Rounds<'a> {
    env: &'a HpaEnv,
    setting: &'a Setting,
    options: HpaRunOptions,
    runs: Vec<ScenarioRun>,
    next: u64,
    /// The API that fails now.
    failing: Option<MetricsGroup>,
    outages: usize,
}

struct ScenarioRun {
    scenario: Scenario,
    /// The views of the last comparison.
    views: [View; 2],
    over: bool,
}

/// The time between two reads of the copies while they settle.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The time until watches have delivered a write.
const WATCH_DELAY: Duration = Duration::from_millis(250);
/// A step that takes longer to settle is compared as it is.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How often copies that differ may settle once more, because a reconcile may have been late.
const MAX_EXTRA_ROUNDS: usize = 2;
/// The event recorder drops events of one kind about an object beyond this number.
const MAX_EVENTS_PER_OBJECT: usize = 25;
/// From 10 different messages of one reason on, they are combined.
const MAX_RESCALE_EVENTS: usize = 6;
/// The number of reconciles of a step without delays, in addition to those until windows have expired.
const RECONCILES_PER_STEP: usize = 4;
/// The number of rounds after which a whole API fails.
const ROUNDS_BETWEEN_OUTAGES: usize = 4;

/// Plays scenarios until the wanted number of steps is reached.
pub(crate) async fn run(
    env: &HpaEnv,
    setting: &Setting,
    options: HpaRunOptions,
    outcome: &mut HpaOutcome,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let next = options.only.unwrap_or(options.first);
    let mut rounds = Rounds { env, setting, options, runs: Vec::new(), next, failing: None, outages: 0 };
    let until = outcome.steps + options.steps;
    let mut round = 0;
    while outcome.steps < until {
        round += 1;
        rounds.end_scenarios().await;
        let left = until - outcome.steps;
        rounds.begin_scenarios(outcome, left);
        if rounds.runs.is_empty() {
            break;
        }
        rounds.step(round, outcome).await;
        tokio::time::sleep(WATCH_DELAY).await;
        rounds.settle(outcome).await?;
        progress.show(outcome);
    }
    Ok(())
}

impl Rounds<'_> {
    async fn end_scenarios(&mut self) {
        let (over, runs): (Vec<ScenarioRun>, Vec<ScenarioRun>) =
            std::mem::take(&mut self.runs).into_iter().partition(|run| run.over || run.scenario.is_over());
        self.runs = runs;
        join_all(over.iter().map(|run| async {
            // Deletions of objects that do not exist fail, which is ignored.
            let actions = run.scenario.end();
            self.env.apply(&actions, now()).await;
        }))
        .await;
    }

    fn begin_scenarios(&mut self, outcome: &mut HpaOutcome, steps_left: usize) {
        let concurrent = if self.options.only.is_some() {
            usize::from(outcome.steps == 0)
        } else {
            self.options.concurrent_scenarios
        };
        while self.runs.len() < concurrent.min(steps_left) {
            let scenario = Scenario::new(self.options.seed, self.next, self.setting.to_zero);
            self.runs.push(ScenarioRun { scenario, views: [View::default(), View::default()], over: false });
            self.next += 1;
            outcome.scenarios += 1;
        }
    }

    /// Runs one step of every scenario.
    async fn step(&mut self, round: usize, outcome: &mut HpaOutcome) {
        let at = now();
        let outage = self.outage(round);
        let mended = if outage.is_some() { None } else { self.failing.take() };
        let mut steps: Vec<HpaStep> = Vec::new();
        for run in &mut self.runs {
            let facts = Facts { replicas: run.views.first().and_then(|view| view.replicas), now: at };
            steps.push(match (&outage, mended) {
                (Some((group, outage)), _) if run.scenario.is_made() => run.scenario.outage(*group, outage),
                (None, Some(group)) if run.scenario.is_made() => run.scenario.mended(group),
                _ => run.scenario.step(facts),
            });
        }
        if let Some((group, outage)) = outage {
            self.failing = Some(group);
            self.env.script.fail(group, outage);
        }
        if let Some(group) = mended {
            self.env.script.fail(group, Outage::None);
        }
        let done = join_all(steps.iter().map(|step| self.env.apply(&step.actions, at))).await;
        for refused in done.into_iter().flatten() {
            outcome.refused.push(refused);
        }
    }

    /// The outage of this round, if any.
    fn outage(&mut self, round: usize) -> Option<(MetricsGroup, Outage)> {
        if !round.is_multiple_of(ROUNDS_BETWEEN_OUTAGES) || self.options.only.is_some() {
            return None;
        }
        let status =
            |code, reason, message: &str| Outage::Status { code, reason, message: message.to_owned() };
        let outages = [
            (
                MetricsGroup::Resource,
                status(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
            ),
            (MetricsGroup::Custom, Outage::Empty),
            (MetricsGroup::External, status(500, "InternalError", "Internal error occurred: no data")),
            (MetricsGroup::Resource, Outage::Empty),
            (MetricsGroup::Custom, status(403, "Forbidden", "not today")),
            (MetricsGroup::External, Outage::Text { code: 404, body: "404 page not found".to_owned() }),
            (MetricsGroup::Resource, status(404, "NotFound", "no such thing")),
            (MetricsGroup::Custom, status(429, "TooManyRequests", "slower")),
            (MetricsGroup::External, Outage::Empty),
            (MetricsGroup::Resource, Outage::Text { code: 502, body: "<html>Bad Gateway</html>".to_owned() }),
            (MetricsGroup::Custom, Outage::Garbage),
            (MetricsGroup::External, Outage::Garbage),
            (MetricsGroup::Resource, Outage::Garbage),
            (MetricsGroup::Custom, Outage::Text { code: 200, body: "hello".to_owned() }),
        ];
        let place = (self.options.seed as usize + self.outages) % outages.len();
        self.outages += 1;
        outages.into_iter().nth(place)
    }

    /// Lets both controllers reconcile until nothing changes, and compares.
    async fn settle(&mut self, outcome: &mut HpaOutcome) -> anyhow::Result<()> {
        for attempt in 0..=MAX_EXTRA_ROUNDS {
            self.env.open();
            self.wait().await?;
            self.env.close().await?;
            let scenarios: Vec<&Scenario> = self.runs.iter().map(|run| &run.scenario).collect();
            let views = self.env.look(&scenarios, true).await?;
            let differ = views.iter().any(|[theirs, ours]| !View::differences(theirs, ours).is_empty());
            if differ && attempt < MAX_EXTRA_ROUNDS {
                outcome.late += 1;
                continue;
            }
            for (run, views) in self.runs.iter_mut().zip(views) {
                run.views = views;
            }
            break;
        }
        for run in &mut self.runs {
            run.finish_step(self.options.seed, self.setting, outcome);
        }
        Ok(())
    }

    /// Waits until no copy has changed for the length of all windows and two more reconciles.
    async fn wait(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        let scenarios: Vec<&Scenario> = self.runs.iter().map(|run| &run.scenario).collect();
        // The change is seen within a period; one more reconcile must change nothing.
        let settled = |scenario: &Scenario, since: Instant| {
            let memory =
                Duration::from_secs(scenario.memory().unsigned_abs()).max(self.setting.stabilization);
            began.elapsed() >= SYNC_PERIOD * 12 / 5 + memory
                && since.elapsed() >= SYNC_PERIOD * 8 / 5 + memory
        };
        let mut before: Vec<[View; 2]> = Vec::new();
        let mut since = vec![began; scenarios.len()];
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let seen = self.env.look(&scenarios, false).await?;
            for ((old, new), since) in before.iter().zip(&seen).zip(&mut since) {
                if !old.iter().zip(new).all(|(old, new)| old.same_state(new)) {
                    *since = Instant::now();
                }
            }
            before = seen;
            let settled = scenarios.iter().zip(&since).all(|(scenario, since)| settled(scenario, *since));
            // Copies that never settle are compared as they are, and will differ.
            if settled || began.elapsed() > SETTLE_TIMEOUT {
                return Ok(());
            }
        }
    }
}

impl ScenarioRun {
    /// Reports the differences after a step, and decides whether the scenario ends with it.
    fn finish_step(&mut self, seed: u64, setting: &Setting, outcome: &mut HpaOutcome) {
        outcome.steps += 1;
        let [theirs, ours] = &self.views;
        let warnings = usize::try_from(theirs.warnings.max(ours.warnings)).unwrap_or(usize::MAX);
        theirs.kinds().into_iter().for_each(|kind| *outcome.seen.entry(kind).or_default() += 1);
        let mut fields = View::differences(theirs, ours);
        if warnings >= MAX_EVENTS_PER_OBJECT {
            // Events beyond the limit are dropped, and which those are depends on how many passes there were.
            fields.retain(|field| !field.name.starts_with("event "));
            outcome.events_left_out += 1;
        }
        if !fields.is_empty() {
            self.over = true;
            let done = &self.scenario.done;
            outcome.differences.push(HpaDifference::new(seed, setting, &self.scenario.name, done, fields));
        }
        // Events of an object are limited, so a new scenario begins before the limit.
        let rescales = theirs.events.iter().filter(|event| event.contains("SuccessfulRescale")).count();
        let passes = RECONCILES_PER_STEP + usize::try_from(self.scenario.memory()).unwrap_or_default();
        let next = passes * self.scenario.warnings_per_pass();
        if warnings > 0 && warnings + next > MAX_EVENTS_PER_OBJECT || rescales >= MAX_RESCALE_EVENTS {
            self.over = true;
        }
    }
}
