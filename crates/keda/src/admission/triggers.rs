//! Rule 7: triggers of ScaledObjects and ScaledJobs.

use std::collections::BTreeSet;

use api::gotext::quote;
use api::keda::Trigger;

use super::Denial;

const LABEL: &str = "incorrect-triggers";

pub(super) fn check(triggers: &[Trigger]) -> Result<(), Denial> {
    if triggers.is_empty() {
        return Err(Denial::of(LABEL, "no triggers defined in the ScaledObject/ScaledJob"));
    }
    let mut names = BTreeSet::new();
    for Trigger { type_, name, use_cached_metrics, .. } in triggers {
        // These scalers have no readings that could be cached.
        if *use_cached_metrics && matches!(type_.as_str(), "cpu" | "memory" | "cron") {
            let type_ = quote(type_);
            let text = format!("property \"useCachedMetrics\" is not supported for {type_} scaler");
            return Err(Denial::of(LABEL, text));
        }
        if !name.is_empty() && !names.insert(name) {
            let text = format!(
                "triggerName {} is defined multiple times in the ScaledObject/ScaledJob, but it must be unique",
                quote(name)
            );
            return Err(Denial::of(LABEL, text));
        }
    }
    Ok(())
}
