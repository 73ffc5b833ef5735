//! The health of a running operator, which its loop and its handle share.

use runtime::reconcile_loop::PanicCounter;
use runtime::{FaultInjector, Liveness, WatchSet};

/// The health of a running operator. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(crate) struct OperatorHealth {
    /// Whether the loop is alive and all watched resources were listed.
    pub(crate) liveness: Liveness,
    /// Whether the stores of all watches are current.
    pub(crate) watches: WatchSet,
    /// Counts reconciles, polls and activations that panicked.
    pub(crate) panics: PanicCounter,
    /// Faults that tests inject.
    pub(crate) faults: FaultInjector,
}
