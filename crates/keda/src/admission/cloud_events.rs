//! CloudEventSource and ClusterCloudEventSource (docs/spec/keda.md 8.4).

use api::keda::{CloudEventSourceSpec, EVENT_TYPES};

use super::{AdmissionRules, Denial};

pub(super) fn check(spec: &CloudEventSourceSpec, rules: &AdmissionRules<'_>) -> Result<(), Denial> {
    let subscription = &spec.event_subscription;
    let (included, excluded) = (&subscription.included_event_types, &subscription.excluded_event_types);
    if !included.is_empty() && !excluded.is_empty() {
        let text = "setting included types and excluded types at the same time is not supported";
        return Err(Denial::uncounted(text));
    }
    for (types, what) in [(excluded, "excludedEventType"), (included, "includedEventType")] {
        if let Some(unknown) = types.iter().find(|type_| !is_known(type_, rules)) {
            let text = format!(
                "{what}: {unknown} in cloudeventsource/clustercloudeventsource spec is not supported"
            );
            return Err(Denial::uncounted(text));
        }
    }
    Ok(())
}

/// KEDA also emits events of authentications, but its validation does not allow subscribing to them.
fn is_known(type_: &str, rules: &AdmissionRules<'_>) -> bool {
    let mut all =
        EVENT_TYPES.iter().filter(|known| rules.is_better() || !known.starts_with("keda.authentication."));
    all.any(|known| *known == type_)
}
