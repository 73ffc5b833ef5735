//! What is told about an object (docs/spec/keda.md 9.1).

use engine::report::EventKind;

/// One event; its action is its reason unless told otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Normal or warning.
    pub kind: EventKind,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub note: String,
    /// What was done, if it is not the reason.
    pub action: Option<&'static str>,
}

impl Event {
    /// As it should be.
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self { kind: EventKind::Normal, reason, note: note.into(), action: None }
    }

    /// Somebody should look.
    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self { kind: EventKind::Warning, reason, note: note.into(), action: None }
    }
}
