//! How much a decision records about pods.

/// How much a decision records about pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionDetail {
    /// Counts only.
    #[default]
    Counts,
    /// Counts, and some of the pods that were not counted with the reason.
    Uncounted,
    /// Every pod with its group.
    Pods,
}
