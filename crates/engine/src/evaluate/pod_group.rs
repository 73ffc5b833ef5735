//! The groups of pods that the evaluation treats differently.

use serde::{Deserialize, Serialize};

/// Groups of pods (docs/spec/hpa.md 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodGroup {
    /// The sample counts.
    Ready,
    /// Not ready yet.
    Unready,
    /// Without a sample.
    Missing,
    /// Failed, or being deleted.
    Ignored,
}
