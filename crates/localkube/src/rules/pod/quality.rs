//! The QoS class of a pod.

use std::collections::BTreeMap;

use quantity::Quantity;
use serde_json::Value;

use crate::rules::json::{amount, entries, has, list};

type Amounts<'a> = BTreeMap<&'a str, Quantity>;

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(super) fn quality(spec: &Value) -> &'static str {
    let mut requests = Amounts::new();
    let mut limits = Amounts::new();
    let mut all_limited = true;
    let mut count = |holder| {
        add(&mut requests, holder, "resources.requests");
        all_limited &= add(&mut limits, holder, "resources.limits") == 2;
    };
    if has(spec, "resources.limits") || has(spec, "resources.requests") {
        count(spec);
    } else {
        list(spec, "containers").iter().chain(list(spec, "initContainers")).for_each(count);
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the amounts of the relevant resources; returns how many there were.
fn add<'a>(sums: &mut Amounts<'a>, holder: &'a Value, path: &str) -> usize {
    let mut found = 0;
    for (name, value) in
        entries(holder, path).into_iter().filter(|(name, _)| matches!(*name, "cpu" | "memory"))
    {
        if let Some(value) = amount(value).filter(|value| !value.is_zero()) {
            sums.entry(name).or_default().add(&value);
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn qos_class_follows_from_requests_and_limits() {
        let both = json!({"limits": {"cpu": "1", "memory": "1"}, "requests": {"cpu": "1", "memory": "1"}});
        let of = |resources: Value| quality(&json!({"containers": [{"resources": resources}]}));
        assert_eq!(of(json!({})), "BestEffort");
        assert_eq!(of(json!({"requests": {"cpu": "0"}})), "BestEffort");
        assert_eq!(of(json!({"requests": {"cpu": "1"}})), "Burstable");
        assert_eq!(of(both.clone()), "Guaranteed");
        let half = json!({"containers": [{"resources": both}], "initContainers": [{"resources": {}}]});
        assert_eq!(quality(&half), "Burstable");
    }
}
