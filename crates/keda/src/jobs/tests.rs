use api::keda::KedaProfile;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn object(spec: &Value) -> ScaledJob {
    let mut object: ScaledJob = serde_json::from_value(json!({
        "metadata": {"name": "sj", "namespace": "ns", "generation": 3, "uid": "u"},
        "spec": {"jobTargetRef": {"template": {"spec": {"containers": [{"name": "c"}]}}}},
    }))
    .unwrap();
    let mut merged = serde_json::to_value(&object.spec).unwrap();
    merged.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object.spec = serde_json::from_value(merged).unwrap();
    object
}

fn answer(name: &str, target: &str, value: &str, active: bool) -> JobTriggerResult {
    let target = json!({"type": "AverageValue", "averageValue": target});
    let spec = json!({"type": "External", "external": {"metric": {"name": name}, "target": target}});
    let values = vec![(name.to_owned(), value.parse().unwrap())];
    JobTriggerResult {
        specs: Ok(vec![serde_json::from_value(spec).unwrap()]),
        samples: vec![(name.to_owned(), Ok(JobReading { values, active }))],
    }
}

fn running(count: usize, started: bool) -> Vec<JobView> {
    let phase = if started { "Running" } else { "Pending" };
    let pods = vec![JobPodView { phase: phase.to_owned(), ..JobPodView::default() }];
    vec![JobView { pods: Some(pods), ..JobView::default() }; count]
}

#[test]
fn strategies_match_the_specification() {
    let of = |strategy: Value, max_scale: f64, running, pending, max| {
        let strategy = serde_json::from_value(strategy).unwrap();
        let queue = JobQueue { active: true, length: 1000, max_value: max_scale };
        demand(&strategy, &queue, JobLoad { running, pending, max }).effective_max
    };
    assert_eq!(of(json!({}), 3.0, 2, 0, 5), 1);
    let custom = json!({"strategy": "custom", "customScalingQueueLengthDeduction": 1, "customScalingRunningJobPercentage": "0.5"});
    assert_eq!(of(custom.clone(), 3.0, 2, 0, 5), 1);
    assert_eq!(of(custom, 10.0, 0, 0, 10), 9);
    let accurate = json!({"strategy": "accurate"});
    assert_eq!(of(accurate.clone(), 3.0, 2, 0, 5), 3);
    assert_eq!(of(accurate.clone(), 5.0, 2, 0, 5), 3);
    assert_eq!(of(accurate.clone(), 3.0, 4, 2, 10), 1);
    assert_eq!(of(accurate.clone(), 5.0, 4, 2, 5), 1);
    assert_eq!(of(accurate, 20.0, 15, 10, 20), 5);
    let eager = json!({"strategy": "eager"});
    assert_eq!(of(eager.clone(), 4.0, 3, 0, 10), 4);
    assert_eq!(of(eager.clone(), 4.0, 7, 0, 10), 3);
    assert_eq!(of(eager.clone(), 4.0, 1, 6, 10), 3);
    assert_eq!(of(eager, 15.0, 0, 0, 10), 10);
}

#[test]
fn jobs_are_created_for_queue_length() {
    let object = object(&json!({"maxReplicaCount": 10}));
    let round = gather(&object, &[answer("s0-q", "2", "9", true)]);
    assert_eq!(decide(&object, &round, &running(1, true), Compat::Better), 4);
    let round = gather(&object, &[answer("s0-q", "2", "9", false)]);
    assert_eq!(decide(&object, &round, &[], Compat::Better), 0);
}

#[test]
fn failing_source_does_not_reduce_others() {
    let object = object(&json!({}));
    let mut broken = answer("s1-e", "1", "0", false);
    broken.samples[0].1 = Err("broken source".into());
    let round = gather(&object, &[answer("s0-q", "1", "2", true), broken]);
    assert_eq!(decide(&object, &round, &[], Compat::Better), 2);
    let created = [Ok(()), Err("quota".into())];
    let transition =
        |compat| report(&object, &round, &created, Timestamp::UNIX_EPOCH, compat, KedaProfile::V2_20);
    let report = transition(Compat::Strict);
    let reasons: Vec<_> = report.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["KEDAScalerFailed", "KEDAJobCreateFailed", "KEDAJobsCreated", "ScaledJobActive"]);
    let ready = report.status.conditions.get("Ready").unwrap();
    let message = "Some triggers defined in ScaledJob are not working correctly";
    assert_eq!((&*ready.reason, &*ready.message), ("PartialTriggerError", message));
    let better = transition(Compat::Better).status.conditions.get("Ready").unwrap().message.clone();
    assert_eq!(better, format!("{message}: broken source"), "the trigger is unknown");
}

#[test]
fn failed_creation_is_reported_as_the_release_does() {
    let object = object(&json!({}));
    let round = gather(&object, &[answer("s0-q", "1", "3", true)]);
    let reported = |created: &[Result<(), crate::OperationError>], profile| {
        let report = report(&object, &round, created, Timestamp::UNIX_EPOCH, Compat::Strict, profile);
        let notes: Vec<String> = report.events.into_iter().map(|event| event.note).collect();
        let ready = report.status.conditions.get("Ready").unwrap().clone();
        assert!(report.status.last_active_time.is_some(), "activity does not depend on creations");
        (notes, ready.reason, ready.message)
    };
    let created = [Err("quota".into()), Ok(()), Err("no node".into())];
    let (notes, reason, _) = reported(&created, KedaProfile::V2_20);
    assert_eq!((&*notes[2], &*reason), ("Created 3 jobs", "ScaledJobReady"));
    let (notes, reason, message) = reported(&created, KedaProfile::V2_21);
    assert_eq!(notes[0], "Failed to create job sj-: quota");
    assert_eq!(
        (&*notes[2], &*reason, &*message),
        ("Created 1 jobs", "KEDAJobCreateFailed", "quota\nno node")
    );
    let (notes, ..) = reported(&[Err("quota".into())], KedaProfile::V2_21);
    assert!(!notes.iter().any(|note| note.starts_with("Created")), "{notes:?}");
    let (_, reason, _) = reported(&[Ok(())], KedaProfile::V2_21);
    assert_eq!(reason, "ScaledJobReady");
}

#[test]
fn job_has_owner_labels_and_annotations() {
    let mut object = object(&json!({}));
    object.metadata.labels.insert("team".to_owned(), "a".to_owned());
    let job = job(&object, KedaProfile::V2_21).unwrap();
    assert_eq!(job["metadata"]["labels"]["app.kubernetes.io/version"], "2.21.0");
    assert_eq!(job["metadata"]["labels"]["team"], "a");
    assert_eq!(job["metadata"]["annotations"]["scaledjob.keda.sh/generation"], "3");
    assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "OnFailure");
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["scaledjob.keda.sh/name"], "sj");
    object.spec.job_target_ref = Some(json!("no spec"));
    assert!(super::job(&object, KedaProfile::default()).is_none());
}

#[test]
fn outdated_jobs_are_deleted_unless_gradual() {
    let job = |name: &str, generation: Option<&str>| JobView {
        name: name.to_owned(),
        generation: generation.map(str::to_owned),
        ..JobView::default()
    };
    let jobs = [job("new", Some("3")), job("old", Some("2")), job("unmarked", None)];
    let found = outdated(&object(&json!({})), &jobs).unwrap();
    assert_eq!(
        (found.jobs.join(" "), found.propagation),
        ("old unmarked".to_owned(), Propagation::Background)
    );
    assert_eq!(outdated(&object(&json!({"rollout": {"strategy": "gradual"}})), &jobs), None);
    let older = object(
        &json!({"rolloutStrategy": "immediate", "rollout": {"strategy": "gradual", "propagationPolicy": "foreground"}}),
    );
    assert_eq!(outdated(&older, &jobs).unwrap().propagation, Propagation::Foreground);
}

#[test]
fn failed_jobs_are_deleted_in_order_of_failure() {
    let failed = |name: &str, minute: u8| {
        JobView::read(&json!({
            "metadata": {"name": name, "creationTimestamp": "2025-06-01T00:00:00Z"},
            "status": {"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": format!("2025-06-01T00:{minute:02}:00Z")}]},
        }))
    };
    let jobs = [failed("b", 2), failed("c", 3), failed("a", 1)];
    assert_eq!(history(&object(&json!({"failedJobsHistoryLimit": 1})), &jobs), ["a", "b"]);
}

fn strategies() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"strategy": "accurate"})),
        Just(json!({"strategy": "eager"})),
        Just(
            json!({"strategy": "custom", "customScalingQueueLengthDeduction": -9, "customScalingRunningJobPercentage": "-1"})
        ),
        Just(json!({"strategy": "custom", "customScalingRunningJobPercentage": "0.3"})),
    ]
}

proptest! {
    /// However many wait and whatever runs, there are never more jobs than the upper bound, nor fewer than the lower.
    #[test]
    fn bounds_hold(
        strategy in strategies(),
        (min, max) in (0..20_i32, 1..40_i32),
        waiting in 0..1000_u32,
        (started, not) in (0..30_usize, 0..30_usize),
    ) {
        let object = object(&json!({"scalingStrategy": strategy, "minReplicaCount": min, "maxReplicaCount": max}));
        let mut jobs = running(started, true);
        jobs.extend(running(not, false));
        let round = gather(&object, &[answer("s0-q", "1", &waiting.to_string(), waiting > 0)]);
        let create = decide(&object, &round, &jobs, Compat::Better);
        let there = i64::try_from(jobs.len()).unwrap();
        prop_assert!(create >= 0);
        if create > 0 {
            // A lower bound above the upper one is the upper one, and so many more may run: KEDA's bounds.
            let most = if min > max { i64::from(max) * 2 } else { i64::from(max) };
            prop_assert!(there + create <= most, "{there} + {create} > {most}");
        }
        prop_assert!(there + create >= i64::from(min.min(max)));
    }

    /// Only finished jobs are deleted, and as many stay as the history limits allow.
    #[test]
    fn history_keeps_running_jobs(states in prop::collection::vec(0..3_u8, 0..60), limit in 0..20_i32) {
        let jobs: Vec<JobView> = states.iter().enumerate().map(|(index, state)| JobView {
            name: format!("j{index}"),
            state: match state { 0 => JobState::Running, 1 => JobState::Complete, _ => JobState::Failed },
            ..JobView::default()
        }).collect();
        let object = object(&json!({"successfulJobsHistoryLimit": limit, "failedJobsHistoryLimit": limit}));
        let deleted = history(&object, &jobs);
        for job in &jobs {
            prop_assert!(job.state != JobState::Running || !deleted.contains(&&*job.name));
        }
        for state in [JobState::Complete, JobState::Failed] {
            let of_state = jobs.iter().filter(|job| job.state == state);
            let left = of_state.clone().filter(|job| !deleted.contains(&&*job.name)).count();
            prop_assert_eq!(left, of_state.count().min(usize::try_from(limit).unwrap()));
        }
    }

    /// Bad numbers from anywhere end in a number.
    #[test]
    fn anything_can_be_decided(length in any::<f64>(), value in any::<f64>(), share in ".*", running in any::<i32>(), max in any::<i32>()) {
        let strategy = api::keda::ScalingStrategy {
            strategy: "custom".to_owned(),
            custom_scaling_running_job_percentage: share,
            ..Default::default()
        };
        let entry = QueueEntry { length, max_value: value, target: 1.0, active: true };
        for calculation in ["", "min", "avg", "sum"] {
            let queue = aggregate(calculation, JobBounds { min: 0, max: i64::from(max) }, &[entry, entry]);
            demand(&strategy, &queue, JobLoad { running: running.into(), pending: 0, max: max.into() });
        }
    }
}
