//! Properties of all scenarios.

mod common;

use std::path::Path;

use api::yaml::SourceFile;
use common::{Web, changes, hpa, workload};
use engine::normalize::StabilizationHold;
use engine::{Decision, Observation};
use proptest::prelude::*;
use sim::{DueDecision, Millis, NullObserver, Observer, Scenario, Simulation, WorkloadSample};

/// Loads of many shapes.
fn load() -> impl Strategy<Value = String> {
    let shape = prop_oneof![
        (0.0..60.0).prop_map(|n: f64| format!("- constant: {n}")),
        (0.0..60.0, 0..1200).prop_map(|(to, at): (f64, i32)| format!("- step: {{to: {to}, at: {at}s}}")),
        (0.0..60.0, 1..1200).prop_map(|(to, end): (f64, i32)| format!("- ramp: {{to: {to}, end: {end}s}}")),
        (0.0..80.0, 0..1200, 0..60).prop_map(|(height, at, rise): (f64, i32, i32)| {
            format!("- spike: {{height: {height}, at: {at}s, rise: {rise}s}}")
        }),
        (0.0..60.0, 60..1200).prop_map(|(high, period): (f64, i32)| {
            format!("- wave: {{low: -10, high: {high}, period: {period}s}}")
        }),
        (0..50).prop_map(|percent: i32| format!("- noise: {{amplitude: {percent}%}}")),
    ];
    prop::collection::vec(shape, 1..4).prop_map(|shapes| shapes.join("\n"))
}

fn pods() -> impl Strategy<Value = String> {
    (0..20, 0..60, 0..20, 0..3, any::<bool>()).prop_map(|(start, ready, stop, failing, queue)| {
        format!(
            "pods: {{startDelay: {start}s, readyDelay: {ready}s, stopDelay: {stop}s, failing: 0.{failing}}}\nserves: \
             {{perPod: 8, queue: {queue}}}"
        )
    })
}

fn behavior() -> impl Strategy<Value = String> {
    let rules = (0..400, 1..200, 1..120, prop::sample::select(vec!["Max", "Min", "Disabled"])).prop_map(
        |(window, value, period, select)| {
            format!(
                "{{stabilizationWindowSeconds: {window}, selectPolicy: {select}, policies: [{{type: Percent, value: {value}, \
                 periodSeconds: {period}}}]}}"
            )
        },
    );
    let both = (rules.clone(), rules)
        .prop_map(|(up, down)| format!("behavior: {{scaleUp: {up}, scaleDown: {down}}}"));
    prop_oneof![Just(String::new()), both]
}

/// Records the replicas after each decision and the sums of each sample.
#[derive(Default)]
struct Counts {
    replicas: Vec<usize>,
    decided: bool,
    arrived: f64,
    gone: f64,
    backlog: f64,
}

impl Observer for Counts {
    fn step(&mut self, _: &DueDecision, _: &Observation, _: &Decision) {
        self.decided = true;
    }

    fn sample(&mut self, _: jiff::Timestamp, _: usize, sample: &WorkloadSample) {
        if self.decided {
            self.replicas.push(sample.replicas);
        }
        if sample.at > Millis::ZERO {
            self.arrived += sample.offered * 15.0;
            self.gone += (sample.served + sample.unserved) * 15.0;
            self.backlog = sample.backlog;
        }
    }
}

/// Records all decisions.
#[derive(Default)]
struct Decisions(Vec<Decision>);

impl Observer for Decisions {
    fn step(&mut self, _: &DueDecision, _: &Observation, decision: &Decision) {
        self.0.push(decision.clone());
    }
}

/// Checks the predictions of one decision: the count that a window holds, and the next change.
fn check_statements(decision: &Decision, later: &[Decision]) -> Result<(), TestCaseError> {
    let Some(normalized) = &decision.normalized else { return Ok(()) };
    let stabilized = &normalized.stabilized;
    for then in later.iter().take_while(|then| stabilized.until.is_some_and(|until| then.at < until)) {
        match stabilized.hold {
            StabilizationHold::Down => {
                prop_assert!(then.desired >= decision.desired.min(stabilized.replicas), "{then:?}");
            }
            StabilizationHold::Up => {
                prop_assert!(then.desired <= decision.desired.max(stabilized.replicas), "{then:?}");
            }
            StabilizationHold::None => {}
        }
    }
    // The next change is stated for a proposal that stays the same.
    let wanted = |one: &Decision| one.recommendation.as_ref().map(|found| found.replicas);
    let is_before = |then: &Decision| normalized.next.is_none_or(|next| then.at < next.at);
    for then in later.iter().take_while(|then| wanted(then) == wanted(decision) && is_before(then)) {
        prop_assert_eq!(then.desired, decision.desired, "{:?} at {}", normalized.next, then.at);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replicas_stay_within_their_bounds(
        load in load(), pods in pods(), behavior in behavior(), replicas in 1_usize..15, min in 1..6, more in 0..10, seed: u32,
    ) {
        let mut web = Web::new(&format!("duration: 30m\nseed: {seed}\n{}", workload(&load, &pods)));
        web.replicas = replicas;
        web.autoscalers = vec![hpa("web", min, min + more, &behavior)];
        let mut counts = Counts::default();
        Simulation::new(&web.scenario()).run(&mut counts);
        let bounds = min as usize..=(min + more) as usize;
        prop_assert!(counts.replicas.iter().all(|n| bounds.contains(n)), "{:?}", counts.replicas);
        // All work is served, waiting or lost.
        let left = counts.arrived - counts.gone - counts.backlog;
        prop_assert!(left.abs() < 1e-6 * (1.0 + counts.arrived), "{left}");
    }

    #[test]
    fn statements_about_the_next_change_hold(
        load in load(), pods in pods(), behavior in behavior(), replicas in 1_usize..15, seed: u32,
    ) {
        let mut web = Web::new(&format!("duration: 30m\nseed: {seed}\n{}", workload(&load, &pods)));
        web.replicas = replicas;
        web.autoscalers = vec![hpa("web", 1, 12, &behavior)];
        let mut decisions = Decisions::default();
        Simulation::new(&web.scenario()).run(&mut decisions);
        for (index, decision) in decisions.0.iter().enumerate() {
            check_statements(decision, &decisions.0[index + 1..])?;
        }
    }

    #[test]
    fn no_scale_down_while_all_metrics_fail(
        load in load(), pods in pods(), behavior in behavior(), from in 0..20_i64, length in 1..10_i64, seed: u32,
    ) {
        let to = from + length;
        let spec = format!(
            "duration: 30m\nseed: {seed}\n{}\noutages: [{{from: {from}m, to: {to}m}}]", workload(&load, &pods)
        );
        let mut web = Web::new(&spec);
        web.replicas = 5;
        web.autoscalers = vec![hpa("web", 1, 10, &behavior)];
        let (_, recording) = web.run();
        let out = (from * 60) as f64..(to * 60) as f64;
        let wrong: Vec<_> = changes(&recording, 0).into_iter().filter(|(at, ..)| out.contains(at)).collect();
        prop_assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn more_load_never_means_fewer_replicas(low in 0.0..60.0_f64, more in 0.0..60.0_f64, replicas in 1_usize..20) {
        let last = |load: f64| {
            let mut web = Web::new(&format!("duration: 30m\n{}", workload(&format!("- constant: {load}"), "")));
            web.replicas = replicas;
            web.autoscalers = vec![hpa("web", 1, 50, "")];
            let (_, recording) = web.run();
            recording.workloads[0].column("replicas").unwrap().last().copied().unwrap()
        };
        prop_assert!(last(low) <= last(low + more), "{} {}", last(low), last(low + more));
    }

    #[test]
    fn invalid_files_are_problems_not_panics(
        cuts in prop::collection::vec((0_usize..2000, 0_usize..12, "[-0-9a-z{}:\\[\\], \n.%]{0,6}"), 1..5),
    ) {
        let load = "- constant: 3\n- step: {to: 9, at: 1m}\n- noise: {amplitude: 10%}\n- daily: {low: 0, high: 5, peak: \"12:00\"}";
        let more = "pods: {startDelay: 1s, failing: 0.1, failure: Failed}\nserves: {perPod: 5, queue: true}\nmetrics: [{name: q, as: External, value: Backlog}]";
        let spec = format!("duration: 5m\nseed: 1\ncontroller: {{tolerance: 0.2}}\n{}\noutages: [{{metric: q, from: 1m}}]", workload(load, more));
        let mut text = Web::new(&spec).text();
        for (at, length, new) in cuts {
            let at = at % text.len();
            let end = (at + length).min(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, &new);
            }
        }
        let files = |_: &Path| Err(std::io::Error::other("no files here"));
        match Scenario::load(&[SourceFile::new("web.yaml", text)], &files) {
            Ok(scenario) if scenario.duration <= Millis::from_hours(1) && scenario.workloads.iter().all(|w| w.plan.replicas < 500) => {
                Simulation::new(&scenario).run(&mut NullObserver);
            }
            Ok(_) => {}
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                prop_assert!(problems.iter().all(|p| !p.message.is_empty() && p.span.line > 0));
            }
        }
    }
}
