//! The lifecycle of a pod on its node: pending, starting, ready, stopping, ended.

use jiff::Timestamp;
use sim::Millis;

use super::template::{PodTimeline, RestartPolicy};
use super::view::PodStatusView;

/// The current time: simulation time for delays, and wall-clock time for objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimulationTime {
    pub(crate) at: Millis,
    pub(crate) wall: Timestamp,
}

/// The stage of a pod's lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodStage {
    /// Containers are being created.
    Pending,
    /// Containers run, but the pod is not ready.
    Starting,
    /// Ready: receives its share of the load.
    Ready,
    /// Being deleted; receives no load.
    Stopping,
    /// All containers have ended with this exit code; `None` if none ever ran.
    Ended(Option<i32>),
}

/// The lifecycle of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodLifecycle {
    pub(crate) stage: PodStage,
    /// When the stage ends.
    pub(crate) due: Millis,
    /// When the containers end by themselves.
    ends: Millis,
    /// Whether the pod is removed after it has ended.
    pub(crate) deleting: bool,
    pub(crate) restarts: u32,
    pub(crate) times: PodTimes,
}

/// Wall-clock times of the lifecycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodTimes {
    /// The node accepted the pod.
    pub(crate) taken: Timestamp,
    /// The sandbox was created.
    pub(crate) sandbox: Option<Timestamp>,
    /// The containers were last started.
    pub(crate) running: Option<Timestamp>,
    pub(crate) ready: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
}

impl PodLifecycle {
    /// The lifecycle of a pod that was just placed.
    pub(crate) fn new(now: SimulationTime, timeline: &PodTimeline) -> Self {
        Self {
            stage: PodStage::Pending,
            due: now.at + timeline.start,
            ends: Millis::NEVER,
            deleting: false,
            restarts: 0,
            times: PodTimes { taken: now.wall, ..PodTimes::default() },
        }
    }

    /// Resumes the lifecycle of an existing pod from its status; `None` if the status has no start.
    pub(crate) fn resume(
        status: &PodStatusView,
        now: SimulationTime,
        timeline: &PodTimeline,
    ) -> Option<Self> {
        let mut lifecycle = Self::new(now, timeline);
        lifecycle.times.taken = status.start_time?;
        match status.phase.as_deref() {
            Some("Running") => {
                lifecycle.run(now, timeline);
                lifecycle.times.running = status.start_time;
                lifecycle.times.sandbox = status.start_time;
                let ready = status.condition("Ready").filter(|ready| ready.status.as_deref() == Some("True"));
                if let Some(ready) = ready {
                    lifecycle.become_ready(now);
                    lifecycle.times.ready = ready.last_transition_time;
                }
            }
            Some("Succeeded") => lifecycle.end(now, Some(0)),
            Some("Failed") => lifecycle.end(now, Some(1)),
            _ => return None,
        }
        Some(lifecycle)
    }

    /// Performs all transitions that are due; returns whether there were any.
    pub(crate) fn step(&mut self, now: SimulationTime, timeline: &PodTimeline) -> bool {
        let mut changed = false;
        while self.due <= now.at {
            changed = true;
            // A late step does not delay the following ones.
            let then = SimulationTime { at: self.due, ..now };
            match self.stage {
                PodStage::Pending => self.run(then, timeline),
                PodStage::Starting | PodStage::Ready if self.ends <= then.at => self.finish(then, timeline),
                PodStage::Starting => self.become_ready(then),
                PodStage::Stopping => self.end(then, Some(0)),
                PodStage::Ready | PodStage::Ended(_) => self.due = Millis::NEVER,
            }
        }
        changed
    }

    /// Starts the deletion within `grace`; returns whether it was not started before.
    pub(crate) fn delete(&mut self, now: SimulationTime, grace: Millis, timeline: &PodTimeline) -> bool {
        let news = !self.deleting;
        self.deleting = true;
        match self.stage {
            // A pod that never ran ends immediately.
            PodStage::Pending => self.end(now, None),
            PodStage::Ended(_) => {}
            PodStage::Stopping => self.due = self.due.min(now.at + grace),
            PodStage::Starting | PodStage::Ready => {
                self.stage = PodStage::Stopping;
                self.due = now.at + timeline.stop.min(grace);
            }
        }
        news
    }

    fn run(&mut self, now: SimulationTime, timeline: &PodTimeline) {
        self.stage = PodStage::Starting;
        self.times.sandbox.get_or_insert(now.wall);
        self.times.running = Some(now.wall);
        self.ends = timeline.ends.map_or(Millis::NEVER, |(run_for, _)| now.at + run_for);
        self.due = self.ends.min(now.at + timeline.ready);
    }

    fn become_ready(&mut self, now: SimulationTime) {
        self.stage = PodStage::Ready;
        self.times.ready = Some(now.wall);
        self.due = self.ends;
    }

    /// The containers ended by themselves.
    fn finish(&mut self, now: SimulationTime, timeline: &PodTimeline) {
        let code = timeline.ends.map_or(0, |(_, code)| code);
        if code == 0 || timeline.restarts != RestartPolicy::OnFailure {
            return self.end(now, Some(code));
        }
        // Kubernetes restarts with backoff; here containers are restarted immediately.
        self.restarts += 1;
        self.times.ready = None;
        self.run(now, timeline);
        // A container that ends immediately must not be restarted without end within one step.
        self.ends = self.ends.max(now.at + Millis(100));
        self.due = self.due.max(now.at + Millis(1));
    }

    fn end(&mut self, now: SimulationTime, code: Option<i32>) {
        self.stage = PodStage::Ended(code);
        self.times.ended = Some(now.wall);
        self.due = Millis::NEVER;
    }

    /// Whether the pod has ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, PodStage::Ended(_))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TIMELINE: PodTimeline = PodTimeline {
        start: Millis(3_000),
        ready: Millis(7_000),
        stop: Millis(5_000),
        ends: None,
        restarts: RestartPolicy::Always,
    };
    const JOB: PodTimeline = PodTimeline {
        ready: Millis(0),
        ends: Some((Millis(9_000), 0)),
        restarts: RestartPolicy::Never,
        ..TIMELINE
    };

    pub(crate) fn at(millis: i64) -> SimulationTime {
        SimulationTime { at: Millis(millis), wall: Millis(millis).after(Timestamp::UNIX_EPOCH) }
    }

    fn stages(timeline: &PodTimeline, moments: &[i64]) -> Vec<PodStage> {
        let mut lifecycle = PodLifecycle::new(at(0), timeline);
        let mut step = |millis: &i64| {
            lifecycle.step(at(*millis), timeline);
            lifecycle.stage
        };
        moments.iter().map(&mut step).collect()
    }

    #[test]
    fn pods_start_and_become_ready() {
        use PodStage::{Ended, Pending, Ready, Starting};
        assert_eq!(
            stages(&TIMELINE, &[0, 2_999, 3_000, 9_999, 10_000, 99_000]),
            [Pending, Pending, Starting, Starting, Ready, Ready]
        );
        assert_eq!(stages(&JOB, &[2_999, 3_000, 11_999, 12_000]), [Pending, Ready, Ready, Ended(Some(0))]);
        let instant = PodTimeline { start: Millis::ZERO, ready: Millis::ZERO, ..TIMELINE };
        assert_eq!(stages(&instant, &[0]), [Ready]);
        let failing = PodTimeline { ends: Some((Millis::ZERO, 3)), ..JOB };
        assert_eq!(stages(&failing, &[3_000]), [Ended(Some(3))]);
    }

    #[test]
    fn deletion_takes_the_stop_delay_but_never_longer_than_the_grace_period() {
        for (grace, gone) in [(30_000, 25_000), (2_000, 22_000), (0, 20_000)] {
            let mut lifecycle = PodLifecycle::new(at(0), &TIMELINE);
            lifecycle.step(at(20_000), &TIMELINE);
            assert!(lifecycle.delete(at(20_000), Millis(grace), &TIMELINE));
            assert!(!lifecycle.delete(at(20_000), Millis(grace), &TIMELINE));
            assert_eq!(lifecycle.due, Millis(gone));
            lifecycle.step(at(gone), &TIMELINE);
            assert_eq!(lifecycle.stage, PodStage::Ended(Some(0)));
        }
        let mut unborn = PodLifecycle::new(at(0), &TIMELINE);
        unborn.delete(at(1), Millis(30_000), &TIMELINE);
        assert_eq!(unborn.stage, PodStage::Ended(None));
    }

    #[test]
    fn failed_containers_restart_with_restart_policy_on_failure() {
        let timeline =
            PodTimeline { ends: Some((Millis(1_000), 1)), restarts: RestartPolicy::OnFailure, ..JOB };
        let mut lifecycle = PodLifecycle::new(at(0), &timeline);
        for second in 0..=10 {
            lifecycle.step(at(second * 1000), &timeline);
        }
        assert_eq!(lifecycle.restarts, 7);
        assert!(!lifecycle.is_over());
        let nothing = PodTimeline { ends: Some((Millis::ZERO, 1)), ready: Millis::ZERO, ..timeline };
        let mut lifecycle = PodLifecycle::new(at(0), &nothing);
        lifecycle.step(at(60_000), &nothing);
        assert!(lifecycle.due > Millis(60_000));
    }

    #[test]
    fn lifecycle_resumes_from_the_pod_status() {
        let status = |phase: &str, ready: &str| -> PodStatusView {
            let time = "2026-01-01T00:00:00Z";
            let condition = serde_json::json!({"type": "Ready", "status": ready, "lastTransitionTime": time});
            let status = serde_json::json!({"phase": phase, "startTime": time, "conditions": [condition]});
            serde_json::from_value(status).unwrap()
        };
        let stage = |phase, ready| {
            PodLifecycle::resume(&status(phase, ready), at(5), &TIMELINE)
                .map(|lifecycle| (lifecycle.stage, lifecycle.due))
        };
        assert_eq!(stage("Running", "True"), Some((PodStage::Ready, Millis::NEVER)));
        assert_eq!(stage("Running", "False"), Some((PodStage::Starting, Millis(7_005))));
        assert_eq!(stage("Failed", "False"), Some((PodStage::Ended(Some(1)), Millis::NEVER)));
        assert_eq!(stage("Pending", "False"), None);
        assert_eq!(PodLifecycle::resume(&PodStatusView::default(), at(0), &TIMELINE), None);
    }
}
