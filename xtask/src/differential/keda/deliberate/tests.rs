#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::differential::keda::classify::{ClassifiedDifferences, ReportedDifferences, classify_differences};
use crate::differential::keda::facts::{FallbackFacts, KedaFacts};
use crate::differential::keda::view::KedaView;

/// What can be seen of an object that works.
const HEALTHY_FIELDS: &[(&str, &str)] = &[
    ("object.status.conditions.Ready.status", "True"),
    ("object.status.conditions.Ready.reason", "ScaledObjectReady"),
    ("object.status.conditions.Ready.message", "ScaledObject is defined correctly and is ready for scaling"),
    ("object.status.conditions.Active.status", "True"),
    ("object.status.conditions.Active.reason", "ScalerActive"),
    ("object.status.conditions.Fallback.status", "False"),
    ("object.status.conditions.Paused.status", "False"),
    ("object.status.hpaName", "keda-hpa-s1"),
    ("object.status.lastActiveTime", "(a time)"),
    ("object.status.externalMetricNames[0]", "s0-jobs"),
    ("object.status.triggersActivity.s0-jobs.isActive", "true"),
    ("object.status.health.s0-jobs.status", "Happy"),
    ("object.finalizers[0]", "finalizer.keda.sh"),
    ("target.replicas", "3"),
    ("hpa/keda-hpa-s1.spec.maxReplicas", "5"),
    ("hpa/keda-hpa-s1.spec.metrics[0].external.metric.name", "s0-jobs"),
    ("hpa/keda-hpa-s1.labels.app", "x"),
    ("jobs {}", "2"),
    ("answer s0-jobs", "s0-jobs=4"),
    ("event Normal KEDAScalersStarted: Started scalers watch (about ScaledObject s1, action x)", "recorded"),
];

/// Fields whose loss no state of an object excuses.
const UNEXCUSED_FIELDS: &[&str] =
    &["target.replicas", "hpa/keda-hpa-s1.spec.maxReplicas", "object.finalizers[0]"];

const TRIGGER: &str = "Some triggers defined in ScaledObject are not working correctly";
const ENSURE: &str = "failed to ensure HPA is correctly created for ScaledObject: no scaler found";

fn view(changes: &[(&str, &str)]) -> KedaView {
    let fields = HEALTHY_FIELDS.iter().chain(changes).filter(|(_, value)| *value != "-");
    let mut view = KedaView {
        fields: fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..KedaView::default()
    };
    changes.iter().filter(|(_, value)| *value == "-").for_each(|(name, _)| drop(view.fields.remove(*name)));
    view
}

fn ready<'a>(status: &'a str, reason: &'a str, message: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("object.status.conditions.Ready.status", status),
        ("object.status.conditions.Ready.reason", reason),
        ("object.status.conditions.Ready.message", message),
    ]
}

fn classified(
    theirs: &KedaView,
    strict: &KedaView,
    better: &KedaView,
    facts: &KedaFacts,
) -> ClassifiedDifferences {
    classify_differences(
        &[theirs.clone(), strict.clone(), better.clone()],
        facts,
        &ReportedDifferences::default(),
    )
}

/// The fields of `ours` that are found, for the strict one and the other.
fn found(theirs: &KedaView, ours: &KedaView, facts: &KedaFacts) -> [Vec<String>; 2] {
    let classified = classified(theirs, ours, ours, facts);
    [ComparedOperator::Strict, ComparedOperator::Better].map(|operator| {
        let fields =
            classified.differences.iter().filter(|(who, _)| *who == operator).flat_map(|(_, fields)| fields);
        fields.map(|field| field.name.clone()).collect()
    })
}

/// States of objects that excuse something: theirs, ours, and what the script asks for.
fn states() -> Vec<(&'static str, KedaView, KedaView, KedaFacts)> {
    let both = |changes: &[(&str, &str)]| (view(changes), view(changes));
    let partial = format!("{TRIGGER}: trigger 0 (external): no values today");
    let fallback = |replicas, behavior: Option<&str>| KedaFacts {
        fallback: Some(FallbackFacts { replicas, behavior: behavior.map(str::to_owned) }),
        ..KedaFacts::default()
    };
    let refused = |message| ready("False", "ScaledObjectCheckFailed", message);
    let (well, _) = both(&[]);
    let empty = [("object.annotations.autoscaling.keda.sh/paused", "")];
    let mut states = vec![
        ("nothing is wrong", well.clone(), well.clone(), KedaFacts::default()),
        (
            "one of two fails",
            view(&ready("Unknown", "PartialTriggerError", TRIGGER)),
            view(&ready("Unknown", "PartialTriggerError", &partial)),
            KedaFacts::default(),
        ),
        (
            "cannot be built",
            view(&refused(ENSURE)),
            view(&ready("Unknown", "PartialTriggerError", &partial)),
            KedaFacts::default(),
        ),
        ("refused by both", view(&refused(ENSURE)), view(&refused(ENSURE)), KedaFacts::default()),
        (
            "swinging",
            well.clone(),
            view(&refused("ScaledObject doesn't have correct triggers specification: x")),
            KedaFacts::default(),
        ),
        (
            "silent",
            well.clone(),
            view(&ready("Unknown", "PartialTriggerError", &partial)),
            KedaFacts { silent: true, ..fallback(2, None) },
        ),
        ("fallback to zero", well.clone(), well.clone(), fallback(0, None)),
        ("fallback by formula", well.clone(), well.clone(), fallback(2, Some("scalingModifiers"))),
        (
            "credentials gone",
            well.clone(),
            view(&ready(
                "False",
                "TriggerError",
                "x: trigger 0 (metrics-api): Secret a/b does not exist in it",
            )),
            KedaFacts { gone: true, ..KedaFacts::default() },
        ),
        (
            "foreign",
            view(&refused("x: horizontalpodautoscalers \"s1-foreign\" already exists")),
            well.clone(),
            KedaFacts::default(),
        ),
    ];
    let mut paused = empty.to_vec();
    paused.push(("object.status.conditions.Paused.status", "True"));
    states.push(("empty pause", view(&empty), view(&paused), KedaFacts::default()));
    states
}

#[test]
fn no_object_state_excuses_a_different_replica_count_or_bound() {
    for (name, theirs, ours, facts) in states() {
        for field in UNEXCUSED_FIELDS {
            let mut broken = ours.clone();
            broken.fields.insert((*field).to_owned(), "1".to_owned());
            for found in found(&theirs, &broken, &facts) {
                assert!(found.contains(&(*field).to_owned()), "{name}: {field} is excused");
            }
        }
    }
}

#[test]
fn no_object_state_excuses_a_lost_status() {
    for (name, theirs, ours, facts) in states() {
        let mut broken = ours.clone();
        broken.fields.retain(|field, _| !field.starts_with("object.status.conditions."));
        for found in found(&theirs, &broken, &facts) {
            assert!(!found.is_empty(), "{name}");
        }
    }
}

#[test]
fn healthy_objects_excuse_no_difference() {
    let well = view(&[]);
    for (field, _) in HEALTHY_FIELDS {
        let changed = view(&[(*field, "-")]);
        for found in found(&well, &changed, &KedaFacts::default()) {
            assert_eq!(found, [*field]);
        }
    }
    let event = "event Warning KEDAScalerFailed: x (about ScaledObject s1, action KEDAScalerFailed)";
    for (theirs, ours) in
        [(well.clone(), view(&[(event, "recorded")])), (view(&[(event, "recorded")]), well.clone())]
    {
        for found in found(&theirs, &ours, &KedaFacts::default()) {
            assert_eq!(found, [event]);
        }
    }
}

#[test]
fn better_differences_do_not_excuse_strict_mode() {
    let theirs = view(&ready("Unknown", "PartialTriggerError", TRIGGER));
    let ours = view(&ready("Unknown", "PartialTriggerError", &format!("{TRIGGER}: trigger 0 (external): x")));
    let [strict, better] = found(&theirs, &ours, &KedaFacts::default());
    assert_eq!(strict, ["object.status.conditions.Ready.message"]);
    assert!(better.is_empty(), "{better:?}");
    // Another status is another thing.
    let ours = view(&ready("False", "TriggerError", &format!("{TRIGGER}: trigger 0 (external): x")));
    let [_, better] = found(&theirs, &ours, &KedaFacts::default());
    assert_eq!(better.len(), 3, "{better:?}");
}

#[test]
fn second_text_needs_a_second_event() {
    let first = "event Warning KEDAScalerFailed: a (about ScaledObject s1, action KEDAScalerFailed)";
    let second = "event Warning KEDAScalerFailed: b (about ScaledObject s1, action KEDAScalerFailed)";
    let mut theirs = view(&[(first, "recorded")]);
    let ours = view(&[(first, "recorded"), (second, "recorded")]);
    assert_eq!(found(&theirs, &ours, &KedaFacts::default())[0], [second]);
    theirs.repeated.insert(first.to_owned());
    assert!(found(&theirs, &ours, &KedaFacts::default())[0].is_empty());
    // Of another object, it is another event.
    let other = second.replace("s1", "s1-auth");
    let ours = view(&[(first, "recorded"), (other.as_str(), "recorded")]);
    assert_eq!(found(&theirs, &ours, &KedaFacts::default())[0], [other]);
}

#[test]
fn external_scaler_errors_come_in_pairs() {
    let theirs_say = "event Warning KEDAScalerFailed: rpc error: code = Internal desc = x (about ScaledObject s1, action a)";
    let ours_say = "event Warning KEDAScalerFailed: external scaler h:1 refused IsActive: x (about ScaledObject s1, action a)";
    let (theirs, ours) = (view(&[(theirs_say, "recorded")]), view(&[(ours_say, "recorded")]));
    assert!(found(&theirs, &ours, &KedaFacts::default()).iter().all(Vec::is_empty));
    for found in found(&theirs, &view(&[]), &KedaFacts::default()) {
        assert_eq!(found, [theirs_say]);
    }
    for found in found(&view(&[]), &ours, &KedaFacts::default()) {
        assert_eq!(found, [ours_say]);
    }
}

#[test]
fn rate_limited_event_is_one_of_many() {
    let event = "event Normal KEDAScaleTargetActivated: x (about ScaledObject s1, action a)";
    let theirs = view(&[(event, "recorded")]);
    let mut ours = view(&[]);
    ours.reported = [("Warning".to_owned(), 25), ("Normal".to_owned(), 24)].into();
    assert_eq!(found(&theirs, &ours, &KedaFacts::default())[0], [event]);
    ours.reported.insert("Normal".to_owned(), 25);
    assert!(found(&theirs, &ours, &KedaFacts::default())[0].is_empty());
}

#[test]
fn activated_target_counts_as_active() {
    let theirs = [ready("False", "ScaledObjectCheckFailed", ENSURE), vec![("target.replicas", "0")]].concat();
    let message = format!("{TRIGGER}: trigger 0 (nonsense): no scaler found");
    let state = ready("Unknown", "PartialTriggerError", &message);
    let better = |replicas, active| {
        let fields = [("target.replicas", replicas), ("object.status.conditions.Active.status", active)];
        let ours = view(&[state.clone(), fields.to_vec()].concat());
        let [_, better] = found(&view(&theirs), &ours, &KedaFacts { wakes_to: 1, ..KedaFacts::default() });
        better
    };
    assert!(better("1", "True").is_empty(), "ours is active, theirs does nothing at all");
    assert_eq!(better("1", "False"), ["target.replicas"], "nothing is active");
    assert_eq!(better("2", "True"), ["target.replicas"], "one would do");
    let theirs_more = [theirs.clone(), vec![("target.replicas", "4")]].concat();
    let ours = view(&[state.clone(), vec![("target.replicas", "1")]].concat());
    assert_eq!(
        found(&view(&theirs_more), &ours, &KedaFacts::default())[1],
        ["target.replicas"],
        "ours has fewer"
    );
}

#[test]
fn event_is_classified_by_the_state_at_its_time() {
    let event = "event Warning ScaledObjectCheckFailed: x (about ScaledObject s1, action x)";
    let message = format!("{TRIGGER}: trigger 0 (nonsense): no scaler found");
    let theirs =
        view(&[ready("False", "ScaledObjectCheckFailed", ENSURE), vec![(event, "recorded")]].concat());
    let partial = view(&ready("Unknown", "PartialTriggerError", &message));
    let mut reported = ReportedDifferences::default();
    let views = [theirs.clone(), theirs.clone(), partial];
    let classified = classify_differences(&views, &KedaFacts::default(), &reported);
    assert_eq!(classified.differences, []);
    reported.remember(&classified);
    let mended = [view(&[(event, "recorded")]), view(&[(event, "recorded")]), view(&[])];
    assert_eq!(
        classify_differences(&mended, &KedaFacts::default(), &reported),
        ClassifiedDifferences::default()
    );
    assert!(
        !classify_differences(&mended, &KedaFacts::default(), &ReportedDifferences::default())
            .differences
            .is_empty()
    );
}

#[test]
fn mutated_recordings_are_detected() {
    let mut mutated = crate::differential::keda::mutation::MutationResult::default();
    for (_, theirs, ours, facts) in states() {
        let seen = crate::differential::keda::classify::StepViews {
            scenario: "s1".to_owned(),
            titles: Vec::new(),
            actions: Vec::new(),
            facts,
            views: vec![theirs.clone(), ours.clone(), ours],
        };
        mutated.try_all(&seen, &ReportedDifferences::default());
    }
    assert_eq!(mutated.missed, [""; 0], "{}", mutated.text());
    assert!(mutated.text().contains("another number of replicas"), "{}", mutated.text());
}
