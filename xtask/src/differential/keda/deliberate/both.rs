//! What differs with `--compat strict` too.

use super::case::{Case, Ready, SeenEvent, events, is_true, ready};
use super::{Applies, Deliberate, EVENT_BURST};
use crate::differential::keda::env::ComparedOperator;

pub(super) const LIST: &[Deliberate] = &[
    Deliberate {
        who: Applies::Both,
        often: true,
        why: "of events of one reason KEDA shows the first text alone; ours shows every text",
        is_it: |case| {
            let is_repeated = |event: SeenEvent<'_>| {
                let mut again = case.theirs.repeated.iter().filter_map(|line| SeenEvent::read(line));
                again.any(|other| other.is_like(&event))
            };
            case.ours_alone().is_some_and(is_repeated)
        },
    },
    Deliberate {
        who: Applies::Both,
        often: true,
        why: "our texts of errors of an external scaler differ: they name its address and the request",
        is_it: |case| {
            let (theirs, ours) = ("rpc error: code = ", "external scaler ");
            let has_event = |view, event: SeenEvent<'_>, words: &str| {
                events(view).any(|other| other.is_like(&event) && other.text.contains(words))
            };
            let in_ours = |event| has_event(case.ours, event, ours);
            let in_theirs = |event| has_event(case.theirs, event, theirs);
            case.theirs_alone().is_some_and(|event| event.text.contains(theirs) && in_ours(event))
                || case.ours_alone().is_some_and(|event| event.text.contains(ours) && in_theirs(event))
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "an object with many events at once: ours records 25 events of each type, then one every 5 minutes",
        is_it: |case| {
            let held_back = |event: SeenEvent<'_>| case.ours.reported.get(event.kind) >= Some(&EVENT_BURST);
            case.theirs_alone().is_some_and(held_back)
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "an edit of an object cancels queries of KEDA, which reports them as failures",
        is_it: |case| {
            let broken_off = |event: SeenEvent<'_>| {
                let canceled = event.text.ends_with("code = Canceled desc = context canceled");
                // Triggers that were closed have no metrics.
                let closed = !case.facts.silent && event.text == "got empty metric spec";
                let is_of_source = event.reason == "KEDAMetricSourceFailed" && canceled;
                is_of_source || event.reason == "KEDAScalerFailed" && (canceled || closed)
            };
            case.theirs_alone().is_some_and(broken_off)
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "KEDA's loop may note a pause before the reconcile that would record it",
        is_it: |case| {
            let paused = is_true(case.theirs, "Paused") && is_true(case.ours, "Paused");
            paused && case.ours_tells(&["ScaledObjectPaused"])
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "a loop of KEDA that an edit cuts off may record that its ScaledJob is not active",
        is_it: |case| {
            let same = is_true(case.theirs, "Active") == is_true(case.ours, "Active");
            same && case.theirs_tells(&["ScaledJobInactive"])
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "of a source that fails KEDA answers that there is no such metric or that it failed",
        is_it: |case| {
            let is = |text: &str| {
                text.contains(" encountered error") || text.contains("no matching metrics found for ")
            };
            let both = |text: &str| text.starts_with("error: ") && is(text);
            case.is_answer() && both(&case.field.theirs) && both(&case.field.ours)
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "whoever edits a ScaledJob while KEDA creates Jobs cuts it off: those it believes to have failed are made again",
        is_it: |case| {
            let cut = |event: &SeenEvent<'_>| {
                event.reason == "KEDAJobCreateFailed" && event.text.ends_with("context canceled")
            };
            let count = |text: &str| text.parse::<u64>().unwrap_or_default();
            let more = count(&case.field.theirs) > count(&case.field.ours);
            let jobs =
                case.field.name.starts_with("jobs ") && more && events(case.theirs).any(|event| cut(&event));
            jobs || case.theirs_alone().is_some_and(|event| cut(&event))
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "a loop of KEDA builds triggers of a spec that was refused; ours does not",
        is_it: |case| {
            let built = |event: SeenEvent<'_>| {
                event.reason == "KEDAScalersStarted" && event.text.starts_with("Scaler ")
            };
            let refused =
                ready(case.ours).is_refused() || ready(case.theirs).is_refused() || case.facts.invalid;
            refused && case.theirs_alone().is_some_and(built)
        },
    },
    Deliberate {
        who: Applies::Both,
        often: true,
        why: "while triggers cannot be built, KEDA answers HPAs from those of the version before; ours says why not",
        is_it: |case| {
            // A formula that cannot be computed has no values.
            let none = case.field.ours.is_empty() || case.field.ours.starts_with("error: ");
            case.is_answer() && none && ready(case.ours).is_refused()
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "Ready of a spec that cannot work but can be built swings in KEDA: its loop and its reconcile disagree",
        is_it: |case| {
            let (theirs, ours) = (ready(case.theirs), ready(case.ours));
            let swings =
                |one: Ready<'_>, other: Ready<'_>| is_swinging(one) && (is_swinging(other) || is_well(other));
            // Plimsoll with its defaults keeps refusing.
            let ours_may = case.operator == ComparedOperator::Strict || is_swinging(ours);
            case.is_condition(&["Ready", "Active"])
                && ours_may
                && (swings(theirs, ours) || swings(ours, theirs))
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "an empty pause annotation is noticed when it comes and when it goes, in KEDA at the next edit",
        is_it: |case| is_pausing_emptily(case) || is_left_paused(case),
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "when several triggers work again at once, KEDA records no event that the fallback is over",
        is_it: |case| {
            let over = !is_true(case.theirs, "Fallback") && !is_true(case.ours, "Fallback");
            let health =
                |name: &&String| name.starts_with("object.status.health.") && name.ends_with(".status");
            let several = case.theirs.fields.keys().filter(health).count() > 1;
            over && several && case.ours_tells(&["ScaledObjectFallbackDeactivated"])
        },
    },
    Deliberate {
        who: Applies::Both,
        often: false,
        why: "an edit of an object while KEDA scales its target cancels the scaling, and KEDA reports what was done as a failure",
        is_it: |case| {
            let same = case.theirs.get("target.replicas") == case.ours.get("target.replicas");
            let pairs = [
                ("KEDAScaleTargetActivationFailed", "KEDAScaleTargetActivated"),
                ("KEDAScaleTargetDeactivationFailed", "KEDAScaleTargetDeactivated"),
            ];
            let cut = |(failed, done): (&str, &str)| {
                let has_failed = events(case.theirs).any(|event| event.reason == failed);
                case.theirs_tells(&[failed]) || has_failed && case.ours_tells(&[done])
            };
            // No count was read.
            let unread = case.theirs_alone().is_some_and(|event| {
                event.reason.ends_with("ivationFailed") && event.text.contains(" from -1 to ")
            });
            unread || same && pairs.into_iter().any(cut)
        },
    },
];

/// What is refused by a reconcile of KEDA, but not by its loop.
fn is_swinging(ready: Ready<'_>) -> bool {
    let words = [
        "correct Idle/Min/Max Replica",
        "correct triggers specification",
        "already exists",
        "no metric specs returned",
    ];
    ready.is_refused() && words.iter().any(|words| ready.message.contains(words))
}

fn is_well(ready: Ready<'_>) -> bool {
    (ready.status, ready.reason) == ("True", "ScaledObjectReady")
}

/// Plimsoll is paused by an annotation without a value, which KEDA has not seen: the HPA is absent, with all its fields.
fn is_pausing_emptily(case: &Case<'_>) -> bool {
    let is_empty =
        |key: &str| case.theirs.get(&format!("object.annotations.autoscaling.keda.sh/{key}")) == Some("");
    let paused = (is_empty("paused") || is_empty("paused-replicas")) && is_true(case.ours, "Paused");
    let without_hpa = case.field.name.starts_with("hpa/") && case.field.ours == "-";
    paused
        && (without_hpa
            || case.is_condition(&["Paused", "Ready", "Active"])
            || case.is_answer_of_one()
            || case.ours_tells(&["ScaledObjectPaused", "KEDAScalersStopped", "ScaledObjectCheckFailed"]))
}

/// Keda says that it is paused, although nothing asks for that any more.
fn is_left_paused(case: &Case<'_>) -> bool {
    let asked = "object.annotations.autoscaling.keda.sh/paused";
    let is_asked = case.theirs.fields.keys().any(|name| name.starts_with(asked));
    let is_left = !is_asked && is_true(case.theirs, "Paused") && !is_true(case.ours, "Paused");
    is_left
        && (case.is_condition(&["Paused"])
            || case.ours_tells(&["ScaledObjectUnpaused", "KEDAScalersStarted"]))
}
