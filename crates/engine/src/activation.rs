//! Activation: scaling between zero (or the idle count) and the lower bound, before metrics decide between the bounds.
//!
//! The operator decides whether triggers are active. This module makes that result part of the same [`crate::Decision`], so that
//! one record holds both.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::units::Replicas;

/// The activation phase of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activation {
    /// Names of the active metrics, or the reason why the target counts as active.
    pub by: Vec<String>,
    /// Replica count while inactive (0 or `idleReplicaCount`).
    pub rest: Replicas,
    /// What the activation phase decided.
    pub verdict: ActivationVerdict,
}

/// What the activation phase decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ActivationVerdict {
    /// A trigger became active: scale up from the idle count.
    Wakes,
    /// Another client scaled below the lower bound: scale back up to it.
    Lifts,
    /// No trigger was active for the whole cooldown: scale down to the idle count.
    Rests {
        /// Time of the last activity; absent if there was none.
        since: Option<Timestamp>,
    },
    /// No trigger is active and the target is at its idle count already.
    Resting,
    /// No trigger is active, but the cooldown has not ended. Until it ends, metrics decide.
    Cooling {
        /// End of the cooldown.
        until: Timestamp,
    },
    /// The target is active: metrics decide between the bounds.
    Metrics,
    /// The replica count is kept, with the reason.
    Held(String),
}

impl Activation {
    /// The reason text for a change, or for keeping the count.
    pub fn reason(&self) -> String {
        match &self.verdict {
            ActivationVerdict::Wakes if self.by.is_empty() => "activated".to_owned(),
            ActivationVerdict::Wakes => format!("activated by {}", self.by.join(", ")),
            ActivationVerdict::Lifts => "below the lower bound".to_owned(),
            ActivationVerdict::Rests { .. } => "nothing active".to_owned(),
            ActivationVerdict::Resting | ActivationVerdict::Cooling { .. } | ActivationVerdict::Metrics => {
                String::new()
            }
            ActivationVerdict::Held(why) => why.clone(),
        }
    }
}
