//! The JSON text of a pass.

use engine::{Decision, Spec, TriggerPoll};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::decisions::{DecisionMeta, DecisionMode, DecisionRecord};

/// A pass, as it is read back.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassDocument {
    /// Spec of the autoscaler.
    pub spec: Spec,
    /// Mode of the controller for this object.
    pub mode: DecisionMode,
    /// Time between two passes.
    pub period: SignedDuration,
    /// The decision.
    pub decision: Decision,
    /// Result of polling the triggers.
    #[serde(default)]
    pub round: Option<TriggerPoll>,
}

/// A pass without its spec, which is shared by many passes and serialized once.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewPass<'a> {
    /// Mode of the controller for this object.
    pub mode: DecisionMode,
    /// Time between two passes.
    #[serde(serialize_with = "engine::nanoseconds::serialize")]
    pub period: SignedDuration,
    /// The decision.
    pub decision: &'a Decision,
    /// Result of polling the triggers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<&'a TriggerPoll>,
}

impl PassDocument {
    /// The record of this one pass; `api_version` is the group and version that serves it.
    pub fn record(self, api_version: &str, metadata: DecisionMeta) -> DecisionRecord {
        let Self { spec, mode, period, decision, round } = self;
        DecisionRecord {
            api_version: api_version.to_owned(),
            kind: "Decision".to_owned(),
            metadata,
            mode,
            first: decision.at,
            last: decision.at,
            times: 1,
            period,
            spec,
            decision,
            round,
        }
    }
}
