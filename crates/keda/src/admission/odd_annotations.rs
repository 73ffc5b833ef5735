//! Warnings about misleading annotation values.

use api::gotext::quote;
use api::keda::annotations::{
    ACT, FORCE_ACTIVATION, PAUSED, PAUSED_REPLICAS, PAUSED_SCALE_IN, PAUSED_SCALE_OUT, WAKE,
};
use api::map::StringMap;

/// All booleans that Go's `strconv.ParseBool` accepts.
const BOOLEANS: [&str; 12] =
    ["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"];

pub(super) fn warnings(annotations: &StringMap) -> Vec<String> {
    let odd = |key: &str, is_good: fn(&str) -> bool| annotations.get(key).filter(|value| !is_good(value));
    let flags = [PAUSED, PAUSED_SCALE_IN, PAUSED_SCALE_OUT, FORCE_ACTIVATION, WAKE];
    let flags = flags.into_iter().filter_map(|key| {
        let value = odd(key, |value| BOOLEANS.contains(&value))?;
        Some(format!("annotation {key} is {}, which is no boolean and counts as true", quote(value)))
    });
    let count = odd(PAUSED_REPLICAS, |value| value.parse::<i32>().is_ok_and(|count| count >= 0));
    let count = count.map(|value| {
        format!(
            "annotation {PAUSED_REPLICAS} is {}, which is no number of replicas; it pauses all the same",
            quote(value)
        )
    });
    let act = odd(ACT, |value| matches!(value, "hpa" | "direct"));
    let act = act.map(|value| {
        format!("annotation {ACT} is {}, neither hpa nor direct, and has no effect", quote(value))
    });
    flags.chain(count).chain(act).collect()
}
