//! Commands in the steps of a plan.

use serde_json::Value;

use super::installed::InstalledProgram;

/// Where Plimsoll is installed, and from which chart.
pub(super) struct Destination<'a> {
    pub(super) namespace: &'a str,
    pub(super) chart: &'a str,
}

/// The command that changes values of the release.
pub(super) fn helm(place: &Destination<'_>, options: &str) -> String {
    let Destination { namespace, chart } = place;
    format!(
        "helm upgrade --install plimsoll {chart} -n {namespace} --create-namespace --reset-then-reuse-values {options}"
    )
}

/// The commands after which Helm takes objects for its own, and keeps them when the release has them no more.
pub(super) fn adoption(objects: &str, place: &Destination<'_>) -> Vec<String> {
    let release =
        format!("meta.helm.sh/release-name=plimsoll meta.helm.sh/release-namespace={}", place.namespace);
    vec![
        format!("kubectl annotate {objects} helm.sh/resource-policy=keep {release} --overwrite"),
        format!("kubectl label {objects} app.kubernetes.io/managed-by=Helm --overwrite"),
    ]
}

pub(super) fn scale(program: &InstalledProgram, replicas: i64) -> String {
    format!("kubectl -n {} scale deployment {} --replicas={replicas}", program.namespace, program.name)
}

/// Starts a program again, also one that is stopped already.
pub(super) fn start(program: &InstalledProgram) -> String {
    scale(program, program.replicas.unwrap_or(1).max(1))
}

/// Waits until its pods are gone.
pub(super) fn gone(program: &InstalledProgram) -> String {
    let labels = program.raw.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let selector: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    format!("kubectl -n {} wait --for=delete pod -l '{}' --timeout=2m", program.namespace, selector.join(","))
}
