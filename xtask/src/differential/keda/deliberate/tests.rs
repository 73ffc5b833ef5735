#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::differential::keda::judge::{Judgement, Known, judge};
use crate::differential::keda::view::View;

/// What can be seen of an object that works.
const WELL: &[(&str, &str)] = &[
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
    ("event Normal KEDAScalersStarted: Started scalers watch (about ScaledObject s1, action x)", "told"),
];

/// Fields whose loss no state of an object excuses.
const HARD: &[&str] = &["target.replicas", "hpa/keda-hpa-s1.spec.maxReplicas", "object.finalizers[0]"];

const TRIGGER: &str = "Some triggers defined in ScaledObject are not working correctly";
const ENSURE: &str = "failed to ensure HPA is correctly created for ScaledObject: no scaler found";

fn view(changes: &[(&str, &str)]) -> View {
    let fields = WELL.iter().chain(changes).filter(|(_, value)| *value != "-");
    let mut view = View {
        fields: fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..View::default()
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

fn judged(theirs: &View, strict: &View, better: &View, facts: &Facts) -> Judgement {
    judge(&[theirs.clone(), strict.clone(), better.clone()], facts, &Known::default())
}

/// The fields of `ours` that are found, for the strict one and the other.
fn found(theirs: &View, ours: &View, facts: &Facts) -> [Vec<String>; 2] {
    let judgement = judged(theirs, ours, ours, facts);
    [Subject::Strict, Subject::Better].map(|subject| {
        let fields =
            judgement.differences.iter().filter(|(who, _)| *who == subject).flat_map(|(_, fields)| fields);
        fields.map(|field| field.name.clone()).collect()
    })
}

/// States of objects that excuse something: theirs, ours, and what the script asks for.
fn states() -> Vec<(&'static str, View, View, Facts)> {
    let both = |changes: &[(&str, &str)]| (view(changes), view(changes));
    let partial = format!("{TRIGGER}: trigger 0 (external): no values today");
    let fallback = |replicas, behavior: Option<&str>| Facts {
        fallback: Some(FallbackFacts { replicas, behavior: behavior.map(str::to_owned) }),
        ..Facts::default()
    };
    let refused = |message| ready("False", "ScaledObjectCheckFailed", message);
    let (well, _) = both(&[]);
    let empty = [("object.annotations.autoscaling.keda.sh/paused", "")];
    let mut states = vec![
        ("nothing is wrong", well.clone(), well.clone(), Facts::default()),
        (
            "one of two fails",
            view(&ready("Unknown", "PartialTriggerError", TRIGGER)),
            view(&ready("Unknown", "PartialTriggerError", &partial)),
            Facts::default(),
        ),
        (
            "cannot be built",
            view(&refused(ENSURE)),
            view(&ready("Unknown", "PartialTriggerError", &partial)),
            Facts::default(),
        ),
        ("refused by both", view(&refused(ENSURE)), view(&refused(ENSURE)), Facts::default()),
        (
            "swinging",
            well.clone(),
            view(&refused("ScaledObject doesn't have correct triggers specification: x")),
            Facts::default(),
        ),
        (
            "silent",
            well.clone(),
            view(&ready("Unknown", "PartialTriggerError", &partial)),
            Facts { silent: true, ..fallback(2, None) },
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
            Facts { gone: true, ..Facts::default() },
        ),
        (
            "foreign",
            view(&refused("x: horizontalpodautoscalers \"s1-foreign\" already exists")),
            well.clone(),
            Facts::default(),
        ),
    ];
    let mut paused = empty.to_vec();
    paused.push(("object.status.conditions.Paused.status", "True"));
    states.push(("empty pause", view(&empty), view(&paused), Facts::default()));
    states
}

#[test]
fn no_state_of_an_object_excuses_another_count_or_another_bound() {
    for (name, theirs, ours, facts) in states() {
        for field in HARD {
            let mut broken = ours.clone();
            broken.fields.insert((*field).to_owned(), "1".to_owned());
            for found in found(&theirs, &broken, &facts) {
                assert!(found.contains(&(*field).to_owned()), "{name}: {field} is excused");
            }
        }
    }
}

#[test]
fn no_state_of_an_object_excuses_a_status_that_is_lost() {
    for (name, theirs, ours, facts) in states() {
        let mut broken = ours.clone();
        broken.fields.retain(|field, _| !field.starts_with("object.status.conditions."));
        for found in found(&theirs, &broken, &facts) {
            assert!(!found.is_empty(), "{name}");
        }
    }
}

#[test]
fn where_nothing_is_wrong_nothing_is_excused() {
    let well = view(&[]);
    for (field, _) in WELL {
        let changed = view(&[(*field, "-")]);
        for found in found(&well, &changed, &Facts::default()) {
            assert_eq!(found, [*field]);
        }
    }
    let event = "event Warning KEDAScalerFailed: x (about ScaledObject s1, action KEDAScalerFailed)";
    for (theirs, ours) in [(well.clone(), view(&[(event, "told")])), (view(&[(event, "told")]), well.clone())]
    {
        for found in found(&theirs, &ours, &Facts::default()) {
            assert_eq!(found, [event]);
        }
    }
}

#[test]
fn what_is_better_is_no_excuse_for_strict() {
    let theirs = view(&ready("Unknown", "PartialTriggerError", TRIGGER));
    let ours = view(&ready("Unknown", "PartialTriggerError", &format!("{TRIGGER}: trigger 0 (external): x")));
    let [strict, better] = found(&theirs, &ours, &Facts::default());
    assert_eq!(strict, ["object.status.conditions.Ready.message"]);
    assert!(better.is_empty(), "{better:?}");
    // Another status is another thing.
    let ours = view(&ready("False", "TriggerError", &format!("{TRIGGER}: trigger 0 (external): x")));
    let [_, better] = found(&theirs, &ours, &Facts::default());
    assert_eq!(better.len(), 3, "{better:?}");
}

#[test]
fn a_second_text_needs_a_second_telling() {
    let first = "event Warning KEDAScalerFailed: a (about ScaledObject s1, action KEDAScalerFailed)";
    let second = "event Warning KEDAScalerFailed: b (about ScaledObject s1, action KEDAScalerFailed)";
    let mut theirs = view(&[(first, "told")]);
    let ours = view(&[(first, "told"), (second, "told")]);
    assert_eq!(found(&theirs, &ours, &Facts::default())[0], [second]);
    theirs.repeated.insert(first.to_owned());
    assert!(found(&theirs, &ours, &Facts::default())[0].is_empty());
    // Of another object, it is another event.
    let other = second.replace("s1", "s1-auth");
    let ours = view(&[(first, "told"), (other.as_str(), "told")]);
    assert_eq!(found(&theirs, &ours, &Facts::default())[0], [other]);
}

#[test]
fn words_of_an_external_scaler_come_in_pairs() {
    let theirs_say = "event Warning KEDAScalerFailed: rpc error: code = Internal desc = x (about ScaledObject s1, action a)";
    let ours_say = "event Warning KEDAScalerFailed: external scaler h:1 refused IsActive: x (about ScaledObject s1, action a)";
    let (theirs, ours) = (view(&[(theirs_say, "told")]), view(&[(ours_say, "told")]));
    assert!(found(&theirs, &ours, &Facts::default()).iter().all(Vec::is_empty));
    for found in found(&theirs, &view(&[]), &Facts::default()) {
        assert_eq!(found, [theirs_say]);
    }
    for found in found(&view(&[]), &ours, &Facts::default()) {
        assert_eq!(found, [ours_say]);
    }
}

#[test]
fn an_event_that_was_held_back_is_one_of_many() {
    let event = "event Normal KEDAScaleTargetActivated: x (about ScaledObject s1, action a)";
    let theirs = view(&[(event, "told")]);
    let mut ours = view(&[]);
    ours.told = [("Warning".to_owned(), 25), ("Normal".to_owned(), 24)].into();
    assert_eq!(found(&theirs, &ours, &Facts::default())[0], [event]);
    ours.told.insert("Normal".to_owned(), 25);
    assert!(found(&theirs, &ours, &Facts::default())[0].is_empty());
}

#[test]
fn what_is_woken_is_awake() {
    let theirs = [ready("False", "ScaledObjectCheckFailed", ENSURE), vec![("target.replicas", "0")]].concat();
    let message = format!("{TRIGGER}: trigger 0 (nonsense): no scaler found");
    let state = ready("Unknown", "PartialTriggerError", &message);
    let better = |replicas, active| {
        let fields = [("target.replicas", replicas), ("object.status.conditions.Active.status", active)];
        let ours = view(&[state.clone(), fields.to_vec()].concat());
        let [_, better] = found(&view(&theirs), &ours, &Facts { wakes_to: 1, ..Facts::default() });
        better
    };
    assert!(better("1", "True").is_empty(), "ours is active, theirs does nothing at all");
    assert_eq!(better("1", "False"), ["target.replicas"], "nothing is active");
    assert_eq!(better("2", "True"), ["target.replicas"], "one would do");
    let theirs_more = [theirs.clone(), vec![("target.replicas", "4")]].concat();
    let ours = view(&[state.clone(), vec![("target.replicas", "1")]].concat());
    assert_eq!(
        found(&view(&theirs_more), &ours, &Facts::default())[1],
        ["target.replicas"],
        "ours has fewer"
    );
}

#[test]
fn an_event_is_judged_by_what_was_there_when_it_came() {
    let event = "event Warning ScaledObjectCheckFailed: x (about ScaledObject s1, action x)";
    let message = format!("{TRIGGER}: trigger 0 (nonsense): no scaler found");
    let theirs = view(&[ready("False", "ScaledObjectCheckFailed", ENSURE), vec![(event, "told")]].concat());
    let partial = view(&ready("Unknown", "PartialTriggerError", &message));
    let mut known = Known::default();
    let views = [theirs.clone(), theirs.clone(), partial];
    let judgement = judge(&views, &Facts::default(), &known);
    assert_eq!(judgement.differences, []);
    known.remember(&judgement);
    let mended = [view(&[(event, "told")]), view(&[(event, "told")]), view(&[])];
    assert_eq!(judge(&mended, &Facts::default(), &known), Judgement::default());
    assert!(!judge(&mended, &Facts::default(), &Known::default()).differences.is_empty());
}

#[test]
fn what_is_spoiled_is_found() {
    let mut spoiled = crate::differential::keda::spoil::Spoiled::default();
    for (_, theirs, ours, facts) in states() {
        let seen = crate::differential::keda::judge::Seen {
            scenario: "s1".to_owned(),
            titles: Vec::new(),
            actions: Vec::new(),
            facts,
            views: vec![theirs.clone(), ours.clone(), ours],
        };
        spoiled.try_all(&seen, &Known::default());
    }
    assert_eq!(spoiled.missed, [""; 0], "{}", spoiled.text());
    assert!(spoiled.text().contains("another number of replicas"), "{}", spoiled.text());
}
