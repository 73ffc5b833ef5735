//! Improvements upon rounds of ScaledObjects: rules, and records in which they show.

use serde_json::Value;

use crate::conformance::Difference;

/// Whether a text differs only in a cause that we append to the recorded text.
pub(super) fn only_causes(difference: &Difference) -> bool {
    let Some((Value::String(theirs), Value::String(ours))) = both(difference) else { return false };
    ours.strip_prefix(&theirs).is_some_and(|rest| rest.starts_with(": "))
}

/// Whether something was active more recently.
pub(super) fn only_later(difference: &Difference) -> bool {
    let is_time = difference.at.ends_with("/lastActiveTime");
    match both(difference) {
        Some((Value::Null, Value::String(_))) => is_time,
        // Times are of one length, and their order is that of their texts.
        Some((Value::String(theirs), Value::String(ours))) => is_time && theirs < ours,
        _ => false,
    }
}

/// Whether a metric is active in one answer and inactive in the other.
pub(super) fn only_activity(difference: &Difference) -> bool {
    difference.at.starts_with("status/triggersActivity/")
        && difference.at.ends_with("/isActive")
        && both(difference) == Some((Value::Bool(false), Value::Bool(true)))
}

fn both(difference: &Difference) -> Option<(Value, Value)> {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    read(&difference.expected).zip(read(&difference.got))
}

/// Triggers fail, and the fallback is zero.
pub(super) const EXECUTOR_HELD: &str = "executor-00019 executor-00031 executor-00043 executor-00055 executor-00079 executor-00091 \
    executor-00103 executor-00115 executor-00139 executor-00151 executor-00163 executor-00175 \
    executor-00199 executor-00211 executor-00223 executor-00235 executor-00259 executor-00271 \
    executor-00283 executor-00295 executor-00319 executor-00331 executor-00343 executor-00355 \
    executor-00379 executor-00391 executor-00403 executor-00415 executor-00439 executor-00451 \
    executor-00463 executor-00475 executor-00559 executor-00571 executor-00583 executor-00595 \
    executor-00631 executor-00643 executor-00655 executor-00703 executor-00715 executor-00799 \
    executor-00811 executor-00823 executor-00835 executor-00871 executor-00883 executor-00895 \
    executor-00943 executor-00955 executor-02688";

/// A placeholder for a formula that is not there.
pub(super) const FALLBACK_PLACEHOLDER: &str = "fallback-00136 fallback-00137 fallback-00138 fallback-00139 fallback-00140 fallback-00141 \
    fallback-00142 fallback-00143 fallback-00145 fallback-00146 fallback-00147 fallback-00148 \
    fallback-00149 fallback-00150 fallback-00151 fallback-00152 fallback-00155 fallback-00156 \
    fallback-00157 fallback-00158 fallback-00159 fallback-00160 fallback-00161 fallback-00162 \
    fallback-00290 fallback-00291 fallback-00292 fallback-00293 fallback-00294 fallback-00295 \
    fallback-00296 fallback-00297 fallback-00298 fallback-00299 fallback-00300 fallback-00301 \
    fallback-00302 fallback-00303 fallback-00304 fallback-00305 fallback-00306 fallback-00307 \
    fallback-00308 fallback-00309 fallback-00390 fallback-00391 fallback-00392 fallback-00393 \
    fallback-00394 fallback-00395 fallback-00396 fallback-00397 fallback-00398 fallback-00399 \
    fallback-00400 fallback-00401 fallback-00402 fallback-00403 fallback-00404 fallback-00405 \
    fallback-00722 fallback-00724 fallback-00731 fallback-00747 fallback-00751 fallback-00764 \
    fallback-00775 fallback-00777 fallback-00809 fallback-00823 fallback-00835 fallback-00861";

/// A formula with a target that is not whole.
pub(super) const FALLBACK_TARGET: &str = "fallback-00466 fallback-00467 fallback-00488 fallback-00489 fallback-00718 fallback-00754 \
    fallback-00759 fallback-00776 fallback-00796 fallback-00807 fallback-00817 fallback-00836 \
    fallback-00838 fallback-00856 fallback-00858";

/// A placeholder for a formula that is not there.
pub(super) const POLL_PLACEHOLDER: &str = "poll-00335 poll-00336 poll-00337 poll-00338 poll-00342 poll-00343 poll-00344 poll-00345 poll-00349 \
    poll-00350 poll-00351 poll-00352 poll-00467 poll-00468 poll-00469 poll-00470 poll-00474 poll-00475 \
    poll-00476 poll-00477 poll-00481 poll-00482 poll-00483 poll-00484";

/// A formula that cannot be computed.
pub(super) const POLL_FORMULA: &str = "poll-00508 poll-00509 poll-00525 poll-00526 poll-00542 poll-00543 poll-00593 poll-00594 poll-00610 \
    poll-00611 poll-00612 poll-00615 poll-00623 poll-00627 poll-00628 poll-00644 poll-00645 poll-00661 \
    poll-00662 poll-00678 poll-00679 poll-00695 poll-00696 poll-00712 poll-00713 poll-00763 poll-00764 \
    poll-00780 poll-00781 poll-00782 poll-00785 poll-00793 poll-00797 poll-00798 poll-00814 poll-00815 \
    poll-00831 poll-00832";

/// A formula whose result is whole.
pub(super) const POLL_INTEGER: &str = "poll-00561 poll-00562 poll-00563 poll-00564 poll-00565 poll-00566 poll-00576 poll-00577 poll-00731 \
    poll-00732 poll-00733 poll-00734 poll-00735 poll-00736 poll-00746 poll-00747";

/// Samples that were taken earlier.
pub(super) const POLL_REMEMBERED: &str = "poll-00852 poll-00859 poll-00865 poll-00870 poll-00871 poll-00874 poll-00877 poll-00880 poll-00883 \
    poll-00886 poll-00888 poll-00889 poll-00906 poll-00935 poll-00967 poll-01157 poll-01181 poll-01239 \
    poll-01377";

/// Triggers with several metrics, or values, or none.
pub(super) const POLL_METRICS: &str = "poll-00141 poll-00144 poll-00146 poll-00149 poll-00161 poll-00164 poll-00166 poll-00169 poll-00181 \
    poll-00184 poll-00186 poll-00189";

/// A fallback that comes to no replicas.
pub(super) const POLL_NONE: &str = "poll-00269 poll-00271 poll-00276 poll-00278 poll-00283 poll-00285 poll-00313 poll-00315 poll-00320 \
    poll-00322 poll-00327 poll-00329 poll-01023 poll-01055 poll-01093 poll-01189 poll-01225";

/// Triggers fail, and the fallback is zero.
pub(super) const POLL_HELD: &str = "poll-00487 poll-00965 poll-01059 poll-01257";

/// Falling back in ways that yield no values.
pub(super) const POLL_TURN: &str = "poll-00559 poll-00640 poll-00729 poll-00810 poll-01123";
