//! Differences that are meant: where ours is better, and where it cannot be the same.

use super::ground::Twin;
use super::view::View;
use crate::differential::compare::Field;

/// A kind of difference, with its reason; the same is said in docs/compatibility.md.
pub(crate) struct Deliberate {
    /// Which of ours differs so.
    pub(crate) who: Who,
    /// Whether every whole run meets it.
    pub(crate) often: bool,
    pub(crate) why: &'static str,
    /// Whether a difference is of this kind.
    is_it: fn(&Case<'_>) -> bool,
}

/// Which of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// With `--compat better` alone.
    Better,
    /// Always.
    Both,
}

/// A field that differs, and everything around it.
pub(crate) struct Case<'a> {
    pub(crate) twin: Twin,
    pub(crate) field: &'a Field,
    pub(crate) theirs: &'a View,
    pub(crate) ours: &'a View,
}

/// What is told of `paused-replicas: ""`.
const EMPTY_PAUSE: &str = "event Warning ScaledObjectCheckFailed: failed to scale target to paused replica count: \
                           failed to parse paused replica count: \"\"";

/// The list. An entry that a whole run does not need fails the run, unless it is about a race.
pub(crate) const DELIBERATE: &[Deliberate] = &[
    Deliberate {
        who: Who::Both,
        often: true,
        why: "of events of one reason KEDA shows the first text alone; ours shows every text",
        is_it: |case| case.ours_alone() && case.theirs.tells(&case.event_key()),
    },
    Deliberate {
        who: Who::Both,
        often: true,
        why: "errors of an external scaler are told in our words, with its address and what was asked",
        is_it: |case| {
            case.is_event() && (case.names("rpc error: code = ") || case.names(": external scaler "))
        },
    },
    Deliberate {
        who: Who::Both,
        often: false,
        why: "KEDA writes the spec of a new ScaledJob anew, which is another version: it begins twice, and may be cut off",
        is_it: |case| {
            case.theirs_alone() && (case.names(" KEDAJobsCreated: ") || case.names(" KEDAJobCreateFailed: "))
        },
    },
    Deliberate {
        who: Who::Both,
        often: false,
        why: "a loop of KEDA builds triggers of a spec that was refused; ours does not",
        is_it: |case| case.theirs_alone() && case.names(" KEDAScalersStarted: Scaler "),
    },
    Deliberate {
        who: Who::Both,
        often: true,
        why: "while triggers cannot be built, KEDA answers HPAs from those of the version before; ours says why not",
        is_it: |case| case.is_answer() && case.is_refused(),
    },
    Deliberate {
        who: Who::Both,
        often: false,
        why: "Ready of a spec that cannot work but can be built swings in KEDA: its loop and its reconcile disagree",
        is_it: |case| {
            let swings = |view: &View| {
                let said = view.get("object.status.conditions.Ready.message").unwrap_or_default();
                let swinging = [
                    "correct Idle/Min/Max Replica",
                    "correct triggers specification",
                    "already exists",
                    "no metric specs returned",
                ];
                swinging.iter().any(|words| said.contains(words))
            };
            case.is_condition() && (swings(case.theirs) || swings(case.ours))
        },
    },
    Deliberate {
        who: Who::Both,
        often: false,
        why: "an empty pause annotation is noticed when it comes and when it goes, in KEDA at the next edit",
        is_it: |case| {
            let is_empty = |key: &str| case.theirs.get(&format!("object.annotations.{key}")) == Some("");
            // What was told of it stays when it is gone.
            let was_told = case.ours.tells(EMPTY_PAUSE)
                && case.ours_alone()
                && (case.field.name.starts_with(EMPTY_PAUSE) || case.names(" KEDAScalersStopped: "));
            is_empty("autoscaling.keda.sh/paused-replicas")
                || is_empty("autoscaling.keda.sh/paused")
                || case.is_left_paused()
                || was_told
        },
    },
    Deliberate {
        who: Who::Both,
        often: false,
        why: "who pauses or edits while KEDA asks makes it tell of a failure that there was not",
        is_it: |case| case.theirs_alone() && case.names("got empty metric spec"),
    },
    Deliberate {
        who: Who::Both,
        often: false,
        why: "modifiers with a target and no formula are refused; in KEDA they only are at admission",
        is_it: |case| {
            let said = case.ours.get("object.status.conditions.Ready.message").unwrap_or_default();
            said.contains("Formula is mandatory") || case.names("Formula is mandatory")
        },
    },
    Deliberate {
        who: Who::Both,
        often: false,
        why: "who edits while KEDA asks makes it believe for a moment that nothing is active",
        is_it: |case| {
            let tells = |what: &str| case.theirs.tells(&format!("event Normal {what}: "));
            let same = case.theirs.get("target.replicas") == case.ours.get("target.replicas");
            let about =
                case.names(" KEDAScaleTargetActivated: ") || case.names(" KEDAScaleTargetDeactivated: ");
            case.theirs_alone()
                && about
                && same
                && tells("KEDAScaleTargetActivated")
                && tells("KEDAScaleTargetDeactivated")
        },
    },
    Deliberate {
        who: Who::Both,
        often: false,
        why: "who edits while KEDA acts or creates cuts it off",
        is_it: |case| {
            let cut = case.theirs.tells("event Warning KEDAJobCreateFailed: ")
                && case.field.name.starts_with("jobs ");
            // No count was read.
            let failed = case.names("ActivationFailed: Failed to scale ")
                || case.names("DeactivationFailed: Failed to deactivate ");
            let told = case.names(" ScaledJobInactive: ") || failed && case.names(" from -1 to ");
            cut || case.theirs_alone() && told
        },
    },
    Deliberate {
        who: Who::Both,
        often: false,
        why: "KEDA's loop may note a pause before the reconcile that would tell it; of many events at once ours tells 25",
        is_it: |case| {
            case.is_event() && (case.names(" ScaledObjectPaused: ") || case.names(" ScaledObjectUnpaused: "))
        },
    },
    Deliberate {
        who: Who::Better,
        often: false,
        why: "a fallback to no replicas is no activity",
        is_it: |case| {
            let falls = |view: &View| view.get("object.status.conditions.Fallback.status") == Some("True");
            falls(case.theirs) && falls(case.ours) && case.ours.get("target.replicas") == Some("0")
        },
    },
    Deliberate {
        who: Who::Better,
        often: false,
        why: "one trigger that cannot be built is no failure of the whole object",
        is_it: |case| {
            let refused = case
                .names("CheckFailed: failed to ensure HPA is correctly created for ScaledObject: ")
                || case.names("CheckFailed: Failed to ensure ScaledJob is correctly created");
            case.theirs_alone() && refused
        },
    },
    Deliberate {
        who: Who::Better,
        often: false,
        why: "a formula that cannot be computed is told",
        is_it: |case| {
            case.ours_alone() && case.names(" KEDAMetricSourceFailed: ") && case.names("ScalingModifiers")
        },
    },
    Deliberate {
        who: Who::Better,
        often: true,
        why: "an answer that is an error says which source failed and why",
        is_it: |case| {
            case.is_answer()
                && case.field.theirs.contains("encountered error")
                && case.field.ours.contains(" encountered error: ")
        },
    },
    Deliberate {
        who: Who::Better,
        often: true,
        why: "a condition says which trigger failed and why",
        is_it: |case| case.field.name.ends_with(".Ready.message") && case.field.ours.contains(": trigger "),
    },
    Deliberate {
        who: Who::Better,
        often: true,
        why: "one trigger that fails leaves the others at work",
        is_it: |case| {
            let ready = case.ours.get("object.status.conditions.Ready.reason").unwrap_or_default();
            let is_partly = matches!(ready, "PartialTriggerError" | "TriggerError");
            // A scaler that is away keeps its metrics in the HPA.
            let kept = case.names(".spec.metrics[") || case.names("status.externalMetricNames");
            if is_partly && kept {
                return true;
            }
            let about = [
                "object.status.conditions.",
                "object.status.triggersActivity.",
                "object.status.lastActiveTime",
                "answer ",
                "target.replicas",
                "jobs ",
                "event Warning ScaledObjectCheckFailed: ",
                "event Warning ScaledJobCheckFailed: ",
            ];
            is_partly && about.iter().any(|about| case.field.name.starts_with(about))
        },
    },
    Deliberate {
        who: Who::Better,
        often: false,
        why: "metrics of a formula are told as active when they are",
        is_it: |case| {
            let composite = case.theirs.get("object.status.compositeScalerName").is_some();
            composite && case.field.name.starts_with("object.status.triggersActivity.")
        },
    },
    Deliberate {
        who: Who::Better,
        often: true,
        why: "a Secret or TriggerAuthentication that is missing is named",
        is_it: |case| {
            case.is_event() && (case.names(" does not exist ") || case.names("=<empty> is required"))
        },
    },
    Deliberate {
        who: Who::Better,
        often: false,
        why: "a source that does not say which metrics it has is told with its cause",
        is_it: |case| {
            let empty =
                case.names("got empty metric spec") || case.names("no metric specs returned from scalers");
            case.theirs_alone() && empty
        },
    },
    Deliberate {
        who: Who::Better,
        often: false,
        why: "a source that does not even say which metrics it has falls back too; in KEDA it never does",
        is_it: |case| {
            let is_failing = |view: &View| {
                let health =
                    |name: &str| name.starts_with("object.status.health.") && name.ends_with(".status");
                view.0.iter().any(|(name, value)| health(name) && value.contains("Failing"))
            };
            is_failing(case.ours) && !is_failing(case.theirs)
        },
    },
    Deliberate {
        who: Who::Better,
        often: false,
        why: "fallback by a formula is told when it begins and when it ends, not every second",
        is_it: |case| case.is_event() && case.names(" ScaledObjectFallback"),
    },
    Deliberate {
        who: Who::Better,
        often: false,
        why: "a metric whose fallback is left to a formula is an error where there is no formula, not -1",
        is_it: |case| case.is_answer() && case.field.theirs.ends_with("=-1"),
    },
    Deliberate {
        who: Who::Better,
        often: true,
        why: "an HPA of the new name that somebody else made is taken over; KEDA tries to create it for ever",
        is_it: |case| {
            let refused = case.theirs.0.keys().any(|name| name.contains("-foreign\" already exists"));
            let about = case.names("-foreign") || case.names("status.hpaName") || case.is_condition();
            refused && about
        },
    },
    Deliberate {
        who: Who::Better,
        often: true,
        why: "an event whose text is longer than 128 letters is told; KEDA's is refused by the API server",
        is_it: |case| {
            case.ours_alone() && case.names(" ScaledObjectCheckFailed: ") && case.field.name.len() > 128
        },
    },
];

/// The entry of the list that explains a difference.
pub(crate) fn explains(case: &Case<'_>) -> Option<usize> {
    let applies = |who: Who| who == Who::Both || case.twin == Twin::Better;
    DELIBERATE.iter().position(|entry| applies(entry.who) && (entry.is_it)(case))
}

impl Case<'_> {
    fn names(&self, text: &str) -> bool {
        self.field.name.contains(text)
    }

    fn is_event(&self) -> bool {
        self.field.name.starts_with("event ")
    }

    fn is_answer(&self) -> bool {
        self.field.name.starts_with("answer ")
    }

    /// An event that ours tells and theirs does not.
    fn ours_alone(&self) -> bool {
        self.is_event() && self.field.theirs == "-"
    }

    fn theirs_alone(&self) -> bool {
        self.is_event() && self.field.ours == "-"
    }

    /// Type and reason of an event.
    fn event_key(&self) -> String {
        self.field.name.split_once(": ").map(|(key, _)| format!("{key}: ")).unwrap_or_default()
    }

    fn is_condition(&self) -> bool {
        self.field.name.starts_with("object.status.conditions.")
    }

    /// Whether theirs says that it is paused, although nothing asks for that any more.
    fn is_left_paused(&self) -> bool {
        let is_asked = self
            .theirs
            .0
            .keys()
            .any(|name| name.starts_with("object.annotations.autoscaling.keda.sh/paused"));
        let about = self.field.name.starts_with("object.status.conditions.Paused.");
        about && !is_asked && self.theirs.get("object.status.conditions.Paused.status") == Some("True")
    }

    /// Whether theirs cannot work with the spec as it is.
    fn is_refused(&self) -> bool {
        let reason = self.theirs.get("object.status.conditions.Ready.reason").unwrap_or_default();
        reason.ends_with("CheckFailed")
    }
}
