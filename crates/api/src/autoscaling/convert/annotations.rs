//! Annotations in which older versions carry what they have no field for.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::decode::{self, Keys};
use crate::gotext;
use crate::map::StringMap;

/// All metrics but CPU utilization, in the flat shapes.
pub const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// All metric statuses, in the flat shapes.
pub const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
/// The status conditions.
pub const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// The behavior, with the field names of Go.
pub const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The tolerance for shrinking; v2beta2 only.
pub const SCALE_DOWN_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-down-tolerance";
/// The tolerance for growing; v2beta2 only.
pub const SCALE_UP_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";

/// All of them.
pub const ALL: [&str; 6] =
    [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR, SCALE_DOWN_TOLERANCE, SCALE_UP_TOLERANCE];

/// Removes every annotation that holds a field.
pub(crate) fn strip(annotations: &mut StringMap) {
    annotations.retain(|key, _| !ALL.contains(&key.as_str()));
}

/// Reads the JSON of an annotation; a malformed one counts as absent.
pub(super) fn read<T: DeserializeOwned>(annotations: &StringMap, key: &str) -> Option<T> {
    decode::from_json(annotations.get(key)?, "v1", Keys::AnyCase).ok()
}

pub(super) fn write<T: Serialize + ?Sized>(annotations: &mut StringMap, key: &str, value: &T) {
    // None of the types written here can fail to serialize.
    annotations.insert(key.to_owned(), gotext::json(value).unwrap_or_default());
}
