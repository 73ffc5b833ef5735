//! Events of an object (docs/spec/keda.md 9.1).

use api::diagnosis::Diagnosis;
use engine::report::EventKind;

/// One event; its action defaults to its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Normal or warning.
    pub kind: EventKind,
    /// A token.
    pub reason: &'static str,
    /// Message.
    pub note: String,
    /// Action, if it differs from the reason.
    pub action: Option<&'static str>,
    /// What is known of its causes.
    pub causes: Vec<Diagnosis>,
}

impl Event {
    /// A normal event.
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self { kind: EventKind::Normal, reason, note: note.into(), action: None, causes: Vec::new() }
    }

    /// A warning.
    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self { kind: EventKind::Warning, reason, note: note.into(), action: None, causes: Vec::new() }
    }
}
