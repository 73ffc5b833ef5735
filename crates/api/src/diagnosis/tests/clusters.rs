//! Which set-ups of the testbed have which cause, for the table of the page.

/// Identifiers of causes, and the names of set-ups that run on localkube and on a real Kubernetes. `outages` are rounds of
/// failing metrics APIs.
const ON_CLUSTERS: &[(&str, &[&str])] = &[
    ("target-not-found", &["gone", "why-gone"]),
    ("no-scale-subresource", &["no-scale"]),
    ("target-kind-unknown", &["no-kind"]),
    ("rbac-missing", &["denied", "outages"]),
    ("scale-unreadable", &["unreadable", "bad-selector"]),
    ("scale-not-written", &["frozen"]),
    ("target-at-zero", &["zero"]),
    ("selector-missing", &["no-selector"]),
    ("pods-of-two-autoscalers", &["twin-a", "twin-b", "overlap-a", "overlap-b"]),
    ("two-autoscalers", &["why-rival"]),
    ("selector-too-wide", &["wide"]),
    ("autoscaler-off", &["off"]),
    ("paused", &["why-paused"]),
    ("dry-run", &["dry", "own-dry"]),
    ("shadow-mode", &["shadow"]),
    ("container-not-found", &["container", "half-container"]),
    ("missing-request", &["no-request", "sidecar"]),
    ("missing-limit", &["no-limit"]),
    ("zero-requests", &["zero-request"]),
    ("no-pods", &["no-pods"]),
    ("pods-not-ready", &["unready", "pending"]),
    ("pods-just-started", &["young"]),
    ("pods-ended", &["failed"]),
    ("pods-completed", &["completed"]),
    ("pods-without-samples", &["silent", "half-silent", "outages"]),
    ("kubelet-down", &["lost"]),
    ("stale-samples", &["stale", "too-old", "lost-stale"]),
    ("missing-samples-assumed", &["half-young"]),
    ("unready-pods-assumed", &["half-unready"]),
    ("metrics-api-not-served", &["outages"]),
    ("metrics-api-unavailable", &["outages"]),
    ("metric-not-found", &["by-pods", "by-object", "unknown", "misspelt", "partial"]),
    ("metric-without-values", &["no-series", "outages"]),
    ("metrics-api-unauthorized", &["outages"]),
    ("metrics-api-overloaded", &["outages"]),
    ("metrics-api-timeout", &["outages"]),
    ("metrics-api-unreachable", &["outages"]),
    ("metrics-api-error", &["outages"]),
    ("object-kind-unknown", &["by-kind"]),
    ("metric-selector-invalid", &["bad-metric-selector"]),
    ("at-maximum", &["full"]),
    ("at-minimum", &["low"]),
    ("above-maximum", &["above"]),
    ("below-minimum", &["below"]),
    ("scale-down-window", &["window"]),
    ("scale-up-window", &["up-window"]),
    ("scale-up-rate", &["up-rate", "steps"]),
    ("scale-down-rate", &["down-rate"]),
    ("scale-up-disabled", &["up-off"]),
    ("scale-down-disabled", &["down-off"]),
    ("within-tolerance", &["steady"]),
    ("trigger-connection-refused", &["why-refused", "why-job-refused"]),
    ("trigger-timeout", &["why-hangs"]),
    ("trigger-authentication", &["why-denied", "why-no-authentication", "why-no-secret", "why-no-key"]),
    ("trigger-parameters", &["why-no-url", "why-job-no-url"]),
    ("trigger-failed", &["why-fails", "why-fallback"]),
    ("cooldown", &["why-cooldown"]),
    ("nothing-active", &["why-rest", "why-job-rest"]),
    ("failed-metric-blocks-scale-down", &["partial"]),
];

/// The sources of these set-ups.
const SOURCES: [&str; 6] = [
    include_str!("../../../../testbed/tests/controller/diagnosis/set_ups/limits.rs"),
    include_str!("../../../../testbed/tests/controller/diagnosis/set_ups/metrics.rs"),
    include_str!("../../../../testbed/tests/controller/diagnosis/set_ups/pods.rs"),
    include_str!("../../../../testbed/tests/controller/diagnosis/set_ups/targets.rs"),
    include_str!("../../../../testbed/tests/controller/diagnosis/outages.rs"),
    include_str!("../../../../testbed/tests/operator/diagnosis.rs"),
];

/// The names of the set-ups of a cause, as a cell of the table.
pub(super) fn names_of(id: &str) -> String {
    let names = ON_CLUSTERS.iter().find(|(known, _)| *known == id).map_or(&[][..], |(_, names)| *names);
    if names.is_empty() { "–".to_owned() } else { format!("`{}`", names.join("`, `")) }
}

#[test]
fn named_set_ups_exist() {
    let is_there = |word: &str| SOURCES.iter().any(|source| source.contains(&format!("\"{word}\"")));
    for (id, names) in ON_CLUSTERS {
        // This one is never the first cause.
        assert!(is_there(id) || *id == "failed-metric-blocks-scale-down", "{id}");
        for name in names.iter().filter(|name| **name != "outages") {
            assert!(is_there(name), "{id}: {name}");
        }
    }
    let all: usize = ON_CLUSTERS.iter().map(|(_, names)| names.len()).sum();
    assert!(all >= 50, "{all}");
}
