//! A field that differs, and everything that can be seen around it.

use crate::differential::compare::Field;
use crate::differential::keda::env::ComparedOperator;
use crate::differential::keda::facts::KedaFacts;
use crate::differential::keda::view::KedaView;

/// A field that differs, and everything around it.
pub(crate) struct Case<'a> {
    pub(crate) operator: ComparedOperator,
    pub(crate) field: &'a Field,
    pub(crate) theirs: &'a KedaView,
    pub(crate) ours: &'a KedaView,
    pub(crate) facts: &'a KedaFacts,
}

/// An event, as a view writes it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenEvent<'a> {
    /// `Normal` or `Warning`.
    pub(super) kind: &'a str,
    pub(super) reason: &'a str,
    pub(super) text: &'a str,
    /// Involved object, reporting component and action.
    pub(super) about: &'a str,
}

impl<'a> SeenEvent<'a> {
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let (head, rest) = line.strip_prefix("event ")?.split_once(": ")?;
        let (kind, reason) = head.split_once(' ')?;
        let (text, about) = rest.rsplit_once(" (about ")?;
        Some(Self { kind, reason, text, about })
    }

    /// Whether two are the same but for their texts.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.kind, self.reason, self.about) == (other.kind, other.reason, other.about)
    }
}

/// The condition `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready<'a> {
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

impl Ready<'_> {
    /// The reconcile refused the spec.
    pub(super) fn is_refused(&self) -> bool {
        self.status == "False" && self.reason.ends_with("CheckFailed")
    }

    /// Some or all triggers fail, and the cause is reported.
    pub(super) fn is_failing(&self) -> bool {
        matches!(self.reason, "PartialTriggerError" | "TriggerError") && self.message.contains(" correctly: ")
    }
}

/// `Ready` of a subject.
pub(super) fn ready(view: &KedaView) -> Ready<'_> {
    let part = |part: &str| view.get(&format!("object.status.conditions.Ready.{part}")).unwrap_or_default();
    Ready { status: part("status"), reason: part("reason"), message: part("message") }
}

/// Whether a condition of a subject is true.
pub(super) fn is_true(view: &KedaView, condition: &str) -> bool {
    view.get(&format!("object.status.conditions.{condition}.status")) == Some("True")
}

/// All events of a subject.
pub(super) fn events(view: &KedaView) -> impl Iterator<Item = SeenEvent<'_>> {
    view.fields.keys().filter_map(|line| SeenEvent::read(line))
}

impl<'a> Case<'a> {
    /// The event that only one of the two records.
    pub(super) fn event(&self) -> Option<SeenEvent<'a>> {
        SeenEvent::read(&self.field.name)
    }

    /// An event that only Plimsoll records.
    pub(super) fn ours_alone(&self) -> Option<SeenEvent<'a>> {
        self.event().filter(|_| self.field.theirs == "-")
    }

    /// An event that only KEDA records.
    pub(super) fn theirs_alone(&self) -> Option<SeenEvent<'a>> {
        self.event().filter(|_| self.field.ours == "-")
    }

    /// Whether only Plimsoll records an event with one of these reasons.
    pub(super) fn ours_tells(&self, reasons: &[&str]) -> bool {
        self.ours_alone().is_some_and(|event| reasons.contains(&event.reason))
    }

    /// Whether only KEDA records one.
    pub(super) fn theirs_tells(&self, reasons: &[&str]) -> bool {
        self.theirs_alone().is_some_and(|event| reasons.contains(&event.reason))
    }

    pub(super) fn is_answer(&self) -> bool {
        self.field.name.starts_with("answer ")
    }

    /// Whether the field belongs to one of these conditions and Plimsoll's object has the condition: the loss of a condition is never
    /// deliberate.
    pub(super) fn is_condition(&self, types: &[&str]) -> bool {
        if self.field.ours == "-" {
            return false;
        }
        let rest = self.field.name.strip_prefix("object.status.conditions.");
        rest.and_then(|rest| rest.split_once('.')).is_some_and(|(kind, _)| types.contains(&kind))
    }

    /// Whether the field belongs to one of these parts of the status.
    pub(super) fn is_status(&self, parts: &[&str]) -> bool {
        let rest = self.field.name.strip_prefix("object.status.").unwrap_or_default();
        let is_it = |part: &&str| {
            rest.strip_prefix(*part).is_some_and(|end| end.is_empty() || end.starts_with(['.', '[']))
        };
        parts.iter().any(is_it)
    }

    /// Whether the field belongs to a metric of an HPA, and the two HPAs have different metrics at this index. Metrics of the same name
    /// must be equal.
    pub(super) fn is_hpa_metric(&self) -> bool {
        let Some((metric, _)) =
            self.field.name.split_once("].").filter(|(metric, _)| metric.contains(".spec.metrics["))
        else {
            return false;
        };
        let name = |view: &'a KedaView| {
            let kinds = ["external.metric.name", "resource.name", "containerResource.name"];
            kinds.into_iter().find_map(|kind| view.get(&format!("{metric}].{kind}")))
        };
        self.field.name.starts_with("hpa/") && name(self.theirs) != name(self.ours)
    }

    /// Whether the field is the number of replicas, and Plimsoll has scaled an active object up from fewer replicas.
    pub(super) fn is_woken(&self) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let (theirs, ours) = (number(&self.field.theirs), number(&self.field.ours));
        let woken =
            ours == Some(self.facts.wakes_to) && theirs.is_some_and(|theirs| theirs < self.facts.wakes_to);
        self.field.name == "target.replicas" && woken && is_true(self.ours, "Active")
    }

    /// Whether exactly one of the two responses is an error.
    pub(super) fn is_answer_of_one(&self) -> bool {
        let is_error = |text: &str| text.starts_with("error: ");
        self.is_answer() && is_error(&self.field.theirs) != is_error(&self.field.ours)
    }
}
