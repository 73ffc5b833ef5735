//! Adds causes to an explanation: the first to its first line, remedies below it.

use engine::explain::{Explanation, Row};
use engine::{Course, ScaleOutcome};

use super::{ClusterFacts, Concern, Diagnosis, DiagnosisFacts, PAGE, diagnose};
use crate::decisions::DecisionRecord;

/// Causes that an explanation lists.
const MAX_LISTED_CAUSES: usize = 4;

impl DecisionRecord {
    /// The facts of this record, with what is known of the cluster.
    pub fn facts<'a>(&'a self, cluster: Option<&'a ClusterFacts>) -> DiagnosisFacts<'a> {
        DiagnosisFacts {
            spec: &self.spec,
            decision: &self.decision,
            poll: self.round.as_ref(),
            mode: self.mode,
            since: (self.times > 1).then_some(self.first),
            cluster,
        }
    }
}

/// Explains a record with its causes. `kind` is the short kind of the object (`hpa`).
pub fn explain_with_causes(
    kind: &str,
    record: &DecisionRecord,
    cluster: Option<&ClusterFacts>,
) -> Explanation {
    with_causes(record.explain(kind), &record.facts(cluster))
}

/// Adds the causes to an explanation.
pub fn with_causes(mut explanation: Explanation, facts: &DiagnosisFacts<'_>) -> Explanation {
    let found = diagnose(facts);
    let Some(first) = found.first() else { return explanation };
    headline(&mut explanation.headline, facts, first);
    let mut rows = Vec::new();
    let mut add_row =
        |label: &str, text: String| rows.push(Row { label: label.to_owned(), text, decided: false });
    for (index, one) in found.iter().take(MAX_LISTED_CAUSES).enumerate() {
        if index > 0 && one.concern != Concern::Normal {
            add_row("also", one.sentence.clone());
        }
        if one.concern == Concern::Problem
            || (one.concern == Concern::Limit && index == 0 && is_standing(one))
        {
            add_row("remedy", format!("{} ({PAGE}#{})", one.remedy, one.id));
        }
    }
    explanation.rows.splice(0..0, rows);
    explanation
}

/// Whether a limit stays until a user changes something.
fn is_standing(one: &Diagnosis) -> bool {
    !matches!(
        one.id,
        "scale-down-window" | "scale-up-window" | "scale-up-rate" | "scale-down-rate" | "cooldown"
    ) && !matches!(one.id, "above-maximum" | "below-minimum" | "at-minimum")
}

/// Names the first cause in the first line, instead of a general statement that it makes exact.
fn headline(headline: &mut String, facts: &DiagnosisFacts<'_>, first: &Diagnosis) {
    let decision = facts.decision;
    let (general, instead) = match (&decision.course, &decision.outcome) {
        (Course::NoScale(_), _) => (": the target's scale cannot be read".to_owned(), ""),
        (Course::Disabled, _) => {
            ("paused: the target was scaled to zero by another client".to_owned(), "stayed at 0")
        }
        (_, ScaleOutcome::Failed) => (": metrics could not decide".to_owned(), ""),
        (_, ScaleOutcome::WriteFailed(_)) => {
            (format!(": the change to {} could not be written", decision.desired), "")
        }
        _ => (String::new(), ""),
    };
    let before = headline.strip_suffix(&general).unwrap_or(headline);
    *headline = format!("{before}{instead}: {}", first.sentence);
}
