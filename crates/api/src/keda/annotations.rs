//! Annotations and labels that KEDA defines (docs/spec/keda.md 1.1).

use crate::map::StringMap;

/// Label on a ScaledObject, its HPA and in the selectors of its metrics.
pub const SCALED_OBJECT_NAME: &str = "scaledobject.keda.sh/name";
/// Label on jobs and their pods.
pub const SCALED_JOB_NAME: &str = "scaledjob.keda.sh/name";
/// Annotation on jobs: the generation of the ScaledJob that created them.
pub const SCALED_JOB_GENERATION: &str = "scaledjob.keda.sh/generation";
/// Allows to take over an existing HPA.
pub const TRANSFER_HPA_OWNERSHIP: &str = "scaledobject.keda.sh/transfer-hpa-ownership";
/// Labels that are not copied to the HPA.
pub const HPA_EXCLUDED_LABELS: &str = "scaledobject.keda.sh/hpa-excluded-labels";
/// Labels that are not copied to jobs.
pub const JOB_EXCLUDED_LABELS: &str = "scaledjob.keda.sh/job-excluded-labels";
/// Pauses at a fixed number of replicas.
pub const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
/// Pauses.
pub const PAUSED: &str = "autoscaling.keda.sh/paused";
/// Pauses scaling in.
pub const PAUSED_SCALE_IN: &str = "autoscaling.keda.sh/paused-scale-in";
/// Pauses scaling out.
pub const PAUSED_SCALE_OUT: &str = "autoscaling.keda.sh/paused-scale-out";
/// Forces activation.
pub const FORCE_ACTIVATION: &str = "autoscaling.keda.sh/force-activation";
/// On an HPA: the webhook does not validate it if this is `false`.
pub const HPA_OWNERSHIP: &str = "validations.keda.sh/hpa-ownership";
/// Plimsoll's mode of a ScaledObject: `hpa` or `direct`; absent means the operator's setting.
pub const ACT: &str = "plimsoll.dev/act";
/// `true`: sources that can report changes wake the object before its next poll.
pub const WAKE: &str = "plimsoll.dev/wake";

/// Whether an annotation is set and not false. A value that is not a boolean counts as true.
pub fn is_set(annotations: &StringMap, key: &str) -> bool {
    annotations
        .get(key)
        .is_some_and(|value| !matches!(value.as_str(), "0" | "f" | "F" | "FALSE" | "false" | "False"))
}

/// Whether annotations pause a ScaledObject.
pub fn is_paused(annotations: &StringMap) -> bool {
    annotations.contains_key(PAUSED_REPLICAS) || is_set(annotations, PAUSED)
}
