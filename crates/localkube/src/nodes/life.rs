//! The life of one pod on its node, as a state and a step: pending, starting, ready, stopping, ended.

use jiff::Timestamp;
use sim::Millis;

use super::shape::{Course, Restarts};
use super::view::PodStatus;

/// Now, on both clocks: the one that delays are measured with, and the one on the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) at: Millis,
    pub(crate) wall: Timestamp,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Containers are being created.
    Pending,
    /// Containers run, but the pod takes no work.
    Starting,
    /// Takes its share of the work.
    Ready,
    /// Is being deleted; takes no work.
    Stopping,
    /// All containers have ended with this code; absent if none ever ran.
    Ended(Option<i32>),
}

/// The life of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) stage: Stage,
    /// When the stage is over by itself.
    pub(crate) due: Millis,
    /// When the pod ends by itself.
    ends: Millis,
    /// Whether it is to be removed once it has ended.
    pub(crate) deleting: bool,
    pub(crate) restarts: u32,
    pub(crate) times: Times,
}

/// When things happened, on the wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// The node took the pod on.
    pub(crate) taken: Timestamp,
    /// Its sandbox was made.
    pub(crate) sandbox: Option<Timestamp>,
    /// Its containers were started, the last time.
    pub(crate) running: Option<Timestamp>,
    pub(crate) ready: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
}

impl Life {
    /// A pod that its node has just been given.
    pub(crate) fn new(now: Moment, course: &Course) -> Self {
        Self {
            stage: Stage::Pending,
            due: now.at + course.start,
            ends: Millis::NEVER,
            deleting: false,
            restarts: 0,
            times: Times { taken: now.wall, ..Times::default() },
        }
    }

    /// A pod that lived before we came, as its status tells; absent if there is nothing to go on from.
    pub(crate) fn resume(status: &PodStatus, now: Moment, course: &Course) -> Option<Self> {
        let mut life = Self::new(now, course);
        life.times.taken = status.start_time?;
        match status.phase.as_deref() {
            Some("Running") => {
                life.run(now, course);
                life.times.running = status.start_time;
                life.times.sandbox = status.start_time;
                let ready = status.condition("Ready").filter(|ready| ready.status.as_deref() == Some("True"));
                if let Some(ready) = ready {
                    life.become_ready(now);
                    life.times.ready = ready.last_transition_time;
                }
            }
            Some("Succeeded") => life.end(now, Some(0)),
            Some("Failed") => life.end(now, Some(1)),
            _ => return None,
        }
        Some(life)
    }

    /// Lets everything happen that is due, and says whether anything did.
    pub(crate) fn step(&mut self, now: Moment, course: &Course) -> bool {
        let mut changed = false;
        while self.due <= now.at {
            changed = true;
            // Whoever looks late does not lengthen what follows.
            let then = Moment { at: self.due, ..now };
            match self.stage {
                Stage::Pending => self.run(then, course),
                Stage::Starting | Stage::Ready if self.ends <= then.at => self.finish(then, course),
                Stage::Starting => self.become_ready(then),
                Stage::Stopping => self.end(then, Some(0)),
                Stage::Ready | Stage::Ended(_) => self.due = Millis::NEVER,
            }
        }
        changed
    }

    /// The pod is to be gone within `grace`. Says whether that is news.
    pub(crate) fn delete(&mut self, now: Moment, grace: Millis, course: &Course) -> bool {
        let news = !self.deleting;
        self.deleting = true;
        match self.stage {
            // What never ran is gone at once.
            Stage::Pending => self.end(now, None),
            Stage::Ended(_) => {}
            Stage::Stopping => self.due = self.due.min(now.at + grace),
            Stage::Starting | Stage::Ready => {
                self.stage = Stage::Stopping;
                self.due = now.at + course.stop.min(grace);
            }
        }
        news
    }

    fn run(&mut self, now: Moment, course: &Course) {
        self.stage = Stage::Starting;
        self.times.sandbox.get_or_insert(now.wall);
        self.times.running = Some(now.wall);
        self.ends = course.ends.map_or(Millis::NEVER, |(run_for, _)| now.at + run_for);
        self.due = self.ends.min(now.at + course.ready);
    }

    fn become_ready(&mut self, now: Moment) {
        self.stage = Stage::Ready;
        self.times.ready = Some(now.wall);
        self.due = self.ends;
    }

    /// It has done what it was for, or failed to.
    fn finish(&mut self, now: Moment, course: &Course) {
        let code = course.ends.map_or(0, |(_, code)| code);
        if code == 0 || course.restarts != Restarts::OnFailure {
            return self.end(now, Some(code));
        }
        // Kubernetes waits longer and longer before it tries again; here it is tried at once.
        self.restarts += 1;
        self.times.ready = None;
        self.run(now, course);
        // What runs for no time at all must not be tried for ever in one step.
        self.ends = self.ends.max(now.at + Millis(100));
        self.due = self.due.max(now.at + Millis(1));
    }

    fn end(&mut self, now: Moment, code: Option<i32>) {
        self.stage = Stage::Ended(code);
        self.times.ended = Some(now.wall);
        self.due = Millis::NEVER;
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COURSE: Course = Course {
        start: Millis(3_000),
        ready: Millis(7_000),
        stop: Millis(5_000),
        ends: None,
        restarts: Restarts::Always,
    };
    const JOB: Course =
        Course { ready: Millis(0), ends: Some((Millis(9_000), 0)), restarts: Restarts::Never, ..COURSE };

    fn at(millis: i64) -> Moment {
        Moment { at: Millis(millis), wall: Millis(millis).after(Timestamp::UNIX_EPOCH) }
    }

    fn stages(course: &Course, moments: &[i64]) -> Vec<Stage> {
        let mut life = Life::new(at(0), course);
        let mut step = |millis: &i64| {
            life.step(at(*millis), course);
            life.stage
        };
        moments.iter().map(&mut step).collect()
    }

    #[test]
    fn pods_start_and_become_ready() {
        use Stage::{Ended, Pending, Ready, Starting};
        assert_eq!(
            stages(&COURSE, &[0, 2_999, 3_000, 9_999, 10_000, 99_000]),
            [Pending, Pending, Starting, Starting, Ready, Ready]
        );
        assert_eq!(stages(&JOB, &[2_999, 3_000, 11_999, 12_000]), [Pending, Ready, Ready, Ended(Some(0))]);
        let instant = Course { start: Millis::ZERO, ready: Millis::ZERO, ..COURSE };
        assert_eq!(stages(&instant, &[0]), [Ready]);
        let failing = Course { ends: Some((Millis::ZERO, 3)), ..JOB };
        assert_eq!(stages(&failing, &[3_000]), [Ended(Some(3))]);
    }

    #[test]
    fn deletion_takes_the_stop_delay_but_never_longer_than_the_grace_period() {
        for (grace, gone) in [(30_000, 25_000), (2_000, 22_000), (0, 20_000)] {
            let mut life = Life::new(at(0), &COURSE);
            life.step(at(20_000), &COURSE);
            assert!(life.delete(at(20_000), Millis(grace), &COURSE));
            assert!(!life.delete(at(20_000), Millis(grace), &COURSE));
            assert_eq!(life.due, Millis(gone));
            life.step(at(gone), &COURSE);
            assert_eq!(life.stage, Stage::Ended(Some(0)));
        }
        let mut unborn = Life::new(at(0), &COURSE);
        unborn.delete(at(1), Millis(30_000), &COURSE);
        assert_eq!(unborn.stage, Stage::Ended(None));
    }

    #[test]
    fn what_fails_is_tried_again_where_the_pod_says_so() {
        let course = Course { ends: Some((Millis(1_000), 1)), restarts: Restarts::OnFailure, ..JOB };
        let mut life = Life::new(at(0), &course);
        for second in 0..=10 {
            life.step(at(second * 1000), &course);
        }
        assert_eq!(life.restarts, 7);
        assert!(!life.is_over());
        let nothing = Course { ends: Some((Millis::ZERO, 1)), ready: Millis::ZERO, ..course };
        let mut life = Life::new(at(0), &nothing);
        life.step(at(60_000), &nothing);
        assert!(life.due > Millis(60_000));
    }

    #[test]
    fn a_life_goes_on_from_its_status() {
        let status = |phase: &str, ready: &str| -> PodStatus {
            let time = "2026-01-01T00:00:00Z";
            let condition = serde_json::json!({"type": "Ready", "status": ready, "lastTransitionTime": time});
            let status = serde_json::json!({"phase": phase, "startTime": time, "conditions": [condition]});
            serde_json::from_value(status).unwrap()
        };
        let stage = |phase, ready| {
            Life::resume(&status(phase, ready), at(5), &COURSE).map(|life| (life.stage, life.due))
        };
        assert_eq!(stage("Running", "True"), Some((Stage::Ready, Millis::NEVER)));
        assert_eq!(stage("Running", "False"), Some((Stage::Starting, Millis(7_005))));
        assert_eq!(stage("Failed", "False"), Some((Stage::Ended(Some(1)), Millis::NEVER)));
        assert_eq!(stage("Pending", "False"), None);
        assert_eq!(Life::resume(&PodStatus::default(), at(0), &COURSE), None);
    }
}
