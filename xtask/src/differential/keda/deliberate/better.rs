//! What differs without `--compat strict` alone: improvements.

use super::case::{Case, SeenEvent, events, is_true, ready};
use super::{Applies, Deliberate};
use crate::differential::keda::facts::FallbackFacts;
use crate::differential::keda::view::KedaView;

pub(super) const LIST: &[Deliberate] = &[
    Deliberate {
        who: Applies::Better,
        often: true,
        why: "a condition says which trigger failed and why",
        is_it: |case| {
            let (theirs, ours) = (ready(case.theirs), ready(case.ours));
            let same = (theirs.status, theirs.reason) == (ours.status, ours.reason);
            let longer = |theirs: &str, ours: &str| {
                ours.strip_prefix(theirs).is_some_and(|cause| cause.starts_with(": trigger "))
            };
            case.field.name == "object.status.conditions.Ready.message"
                && same
                && longer(theirs.message, ours.message)
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "an answer that is an error says which source failed and why",
        is_it: |case| {
            let metric = case.field.name.strip_prefix("answer ");
            let is = |text: &str, start: &str, end: &str| {
                metric.is_some_and(|metric| text.starts_with(&format!("error: {start}{metric}{end}")))
            };
            let plain = |text| {
                is(text, "metric:", " encountered error") || is(text, "no matching metrics found for ", "")
            };
            plain(case.field.theirs.as_str())
                && is(case.field.ours.as_str(), "metric:", " encountered error: ")
        },
    },
    Deliberate {
        who: Applies::Better,
        often: true,
        why: "an event whose text is longer than 128 letters is recorded; KEDA's is refused by the API server",
        is_it: |case| {
            case.ours_alone()
                .is_some_and(|event| event.reason == "ScaledObjectCheckFailed" && event.text.len() > 128)
        },
    },
    Deliberate {
        who: Applies::Better,
        often: true,
        why: "a trigger that cannot be built leaves the others at work; KEDA refuses the whole object",
        is_it: |case| {
            let spec = "failed to ensure HPA is correctly created for ScaledObject";
            let theirs = ready(case.theirs);
            let of_job = theirs.reason == "ScaledJobCheckFailed"
                || case.facts.invalid
                    && theirs.message.contains("riggers defined in ScaledJob are not working");
            let refused = of_job || theirs.is_refused() && theirs.message.starts_with(spec);
            let status = ["externalMetricNames", "triggersActivity", "lastActiveTime", "health"];
            let count = |text: &str| text.parse::<u64>().unwrap_or_default();
            let more = count(&case.field.ours) > count(&case.field.theirs);
            let jobs = of_job && case.field.name.starts_with("jobs ") && more;
            refused
                && ready(case.ours).is_failing()
                && (case.is_condition(&["Ready", "Active"])
                    || case.facts.fallback.is_some()
                        && is_failing(case.ours)
                        && case.is_condition(&["Fallback"])
                    || case.is_status(&status)
                    || case.is_hpa_metric()
                    || case.is_answer_of_one()
                    || case.is_woken()
                    || jobs
                    || case.theirs_tells(&[
                        "ScaledObjectCheckFailed",
                        "ScaledJobCheckFailed",
                        "ScaledJobInactive",
                    ])
                    || case.ours_tells(&["KEDAScaleTargetActivated", "KEDAJobsCreated", "ScaledJobActive"]))
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "what is active while another trigger fails is noted as active: the cooldown begins at its end",
        is_it: |case| {
            let is_partial = |view| ready(view).reason == "PartialTriggerError";
            case.field.name == "object.status.lastActiveTime"
                && case.field.ours == "(a time)"
                && is_partial(case.theirs)
                && is_partial(case.ours)
        },
    },
    Deliberate {
        who: Applies::Better,
        often: true,
        why: "a source that is away keeps its metrics in the HPA; in KEDA they leave it",
        is_it: |case| {
            case.facts.silent
                && ready(case.ours).is_failing()
                && (case.is_hpa_metric()
                    || case.is_status(&["externalMetricNames", "triggersActivity"])
                    || case.is_answer_of_one()
                    || case.is_condition(&["Ready"]))
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "the event about a source that does not list its metrics names the cause",
        is_it: |case| {
            let empty = |event: SeenEvent<'_>| {
                event.text.contains("got empty metric spec")
                    || event.text.contains("no metric specs returned")
            };
            let cause = |event: SeenEvent<'_>| {
                matches!(event.reason, "KEDAScalerFailed" | "ScaledJobCheckFailed")
                    && event.text.contains("external scaler ")
            };
            case.facts.silent
                && (case.ours_alone().is_some_and(cause)
                    || case.theirs_alone().is_some_and(empty) && events(case.ours).any(cause))
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "a source that does not even say which metrics it has falls back too; in KEDA it never does",
        is_it: |case| {
            let falls = case.facts.silent && case.facts.fallback.is_some();
            let status = ["health", "triggersActivity", "lastActiveTime"];
            let by_fallback = is_failing(case.ours)
                && !is_failing(case.theirs)
                && (case.is_condition(&["Fallback", "Active", "Ready"])
                    || case.is_status(&status)
                    || case.is_woken()
                    || case.ours_tells(&["ScaledObjectFallbackActivated", "KEDAScaleTargetActivated"]));
            // Until the failure is recorded, the last value is served for `--sample-age`; then fallback applies.
            let is_answered = case.is_answer_of_one() && case.field.theirs.starts_with("error: ");
            falls && (by_fallback || is_answered)
        },
    },
    Deliberate {
        who: Applies::Better,
        often: true,
        why: "a Secret or TriggerAuthentication that is missing is named",
        is_it: |case| {
            let (theirs, ours) = ("is required", " does not exist");
            let has_event = |view, event: SeenEvent<'_>, words: &str| {
                events(view).any(|other| {
                    (other.kind, other.reason) == (event.kind, event.reason) && other.text.contains(words)
                })
            };
            let named = |event: SeenEvent<'_>| event.text.contains(ours);
            let unnamed =
                |event: SeenEvent<'_>| event.text.contains(theirs) && has_event(case.ours, event, ours);
            case.ours_alone().is_some_and(named) || case.theirs_alone().is_some_and(unnamed)
        },
    },
    Deliberate {
        who: Applies::Better,
        often: true,
        why: "a Secret or TriggerAuthentication that is deleted is missed at once; KEDA goes on with what it has read",
        is_it: |case| {
            let ours = ready(case.ours);
            let named = ours.is_failing() && ours.message.contains(" does not exist");
            let falls = case.facts.fallback.is_some() && is_failing(case.ours) && !is_failing(case.theirs);
            let by_fallback = falls
                && (case.is_condition(&["Fallback"])
                    || case.is_status(&["health"])
                    || case.is_answer()
                    || case.is_woken()
                    || case.ours_tells(&["ScaledObjectFallbackActivated", "KEDAScaleTargetActivated"]));
            case.facts.gone
                && (named || falls)
                && ready(case.theirs).status == "True"
                && (by_fallback
                    || case.is_condition(&["Ready", "Active"])
                    || case.is_status(&["triggersActivity", "lastActiveTime"])
                    || case.is_answer_of_one())
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "a fallback to no replicas is no activity",
        is_it: |case| {
            // As many as there are: those may be none.
            let current = |fallback: &FallbackFacts| {
                fallback.behavior.as_deref().is_some_and(|behavior| behavior.starts_with("currentReplicas"))
            };
            let zero = |fallback: &FallbackFacts| fallback.replicas == 0 || current(fallback);
            let to_zero = case.facts.fallback.as_ref().is_some_and(zero);
            // A target that the fallback has activated is scaled to zero when the fallback ends.
            let woken = format!(" from {} to 0", case.facts.wakes_to);
            let slept = |event: SeenEvent<'_>| {
                event.reason == "KEDAScaleTargetDeactivated" && event.text.contains(&woken)
            };
            let sleeps = case.theirs.get("target.replicas") == case.ours.get("target.replicas")
                && (case.theirs_alone().is_some_and(slept)
                    || case.ours_tells(&["KEDAScaleTargetActivated"])
                    || case.is_status(&["lastActiveTime"]));
            // A target that ours has scaled to zero is activated again.
            let number = |text: &str| text.parse::<i64>().ok();
            let slept = |event: SeenEvent<'_>| {
                event.reason == "KEDAScaleTargetDeactivated" && event.text.ends_with(" to 0")
            };
            let woken = case.field.name == "target.replicas"
                && number(&case.field.ours) == Some(case.facts.wakes_to)
                && number(&case.field.theirs) > number(&case.field.ours);
            let again = events(case.ours).any(slept)
                && (woken || case.ours_tells(&["KEDAScaleTargetActivated", "KEDAScaleTargetDeactivated"]));
            if to_zero && !is_true(case.theirs, "Fallback") && (sleeps || again) {
                return true;
            }
            let falls = |view| is_true(view, "Fallback");
            let asleep = case.field.name == "target.replicas" && case.field.ours == "0";
            to_zero
                && falls(case.theirs)
                && falls(case.ours)
                && is_true(case.theirs, "Active")
                && !is_true(case.ours, "Active")
                && (asleep
                    || case.is_condition(&["Active"])
                    || case.is_status(&["triggersActivity", "lastActiveTime"])
                    || case.is_answer()
                    || case.theirs_tells(&["KEDAScaleTargetActivated"])
                    || case.ours_tells(&["KEDAScaleTargetDeactivated"]))
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "a target of a formula that is no whole number does not disable the fallback",
        is_it: |case| {
            case.facts.fractional
                && case.facts.fallback.is_some()
                && (is_failing(case.ours) && case.is_condition(&["Fallback", "Ready", "Active"])
                    || case.is_status(&["health", "triggersActivity", "lastActiveTime"])
                    || case.is_answer_of_one()
                    || case.is_woken()
                    || case.ours_tells(&["ScaledObjectFallbackActivated", "ScaledObjectFallbackDeactivated"]))
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "fallback by a formula is an event when it begins and when it ends, not every second",
        is_it: |case| {
            let by_formula = behavior(case) == Some("scalingModifiers");
            let is_fallback = |event: SeenEvent<'_>| event.reason.starts_with("ScaledObjectFallback");
            by_formula && case.event().is_some_and(is_fallback)
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "a metric whose fallback is left to a formula is an error where there is no formula, not -1",
        is_it: |case| {
            let by_formula = behavior(case) == Some("scalingModifiers");
            by_formula
                && case.is_answer()
                && case.field.theirs.ends_with("=-1")
                && case.field.ours.starts_with("error: ")
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "a formula that cannot be computed is an event",
        is_it: |case| {
            let about = |event: SeenEvent<'_>| {
                event.reason == "KEDAMetricSourceFailed" && event.text.contains("ScalingModifiers")
            };
            let ours = ready(case.ours);
            let refused =
                case.facts.invalid && ours.is_refused() && ours.message.contains("ScalingModifiers");
            case.ours_alone().is_some_and(about) || refused && case.is_condition(&["Active"])
        },
    },
    Deliberate {
        who: Applies::Better,
        often: false,
        why: "metrics of a formula are reported as active when they are",
        is_it: |case| {
            is_composite(case.theirs)
                && case.is_status(&["triggersActivity"])
                && (case.field.theirs.as_str(), case.field.ours.as_str()) == ("false", "true")
        },
    },
    Deliberate {
        who: Applies::Better,
        often: true,
        why: "an HPA of the new name of another owner is taken over; KEDA tries to create it for ever",
        is_it: |case| {
            let words = "-foreign\" already exists";
            let refused = case.facts.foreign
                && (ready(case.theirs).message.contains(words)
                    || events(case.theirs).any(|event| event.text.contains(words)));
            let hpa = case.field.name.starts_with("hpa/") && case.field.name.contains("-foreign");
            let is_theirs = case.theirs_alone().is_some_and(|event| event.text.contains(words));
            let conditions = ["Ready", "Active", "HPAActive"];
            let works = ready(case.ours).status == "True" && case.is_condition(&conditions);
            refused && (hpa || is_theirs || works || case.is_status(&["hpaName"]))
        },
    },
];

fn behavior<'a>(case: &Case<'a>) -> Option<&'a str> {
    case.facts.fallback.as_ref()?.behavior.as_deref()
}

fn is_composite(view: &KedaView) -> bool {
    view.get("object.status.compositeScalerName").is_some_and(|name| !name.is_empty())
}

/// Whether a metric is noted as failing.
fn is_failing(view: &KedaView) -> bool {
    let health = |name: &str| name.starts_with("object.status.health.") && name.ends_with(".status");
    view.fields.iter().any(|(name, value)| health(name) && value.contains("Failing"))
}
