//! The fixture of both files of rules: resources of the API server, and responses of Prometheus.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;
use sources::prometheus::mapper::{KnownResource, RestMapper};
use sources::prometheus::registry::Series;

/// The mapper of the file beside the vectors, or else of the one in the project.
pub(crate) fn mapper(vectors: &Path) -> anyhow::Result<RestMapper> {
    let beside = vectors.with_file_name("api_resources.json");
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/metrics/api_resources.json");
    let file = if beside.exists() { beside } else { ours };
    let text =
        std::fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    let document: Value = serde_json::from_str(&text)?;
    let mut known = Vec::new();
    let groups = document.get("apiGroups").context("no apiGroups")?;
    for group in list(groups) {
        let preferred = &group["preferredVersion"];
        let versions = list(&group["versions"]);
        let (first, rest): (Vec<_>, Vec<_>) =
            versions.iter().partition(|version| version["version"] == *preferred);
        let mut seen = BTreeSet::new();
        for version in first.into_iter().chain(rest) {
            for resource in list(&version["resources"]) {
                if seen.insert(text_of(&resource["name"])) {
                    known.push(KnownResource {
                        group: text_of(&group["name"]),
                        version: text_of(&version["version"]),
                        plural: text_of(&resource["name"]),
                        singular: text_of(&resource["singularName"]),
                        kind: text_of(&resource["kind"]),
                        namespaced: resource["namespaced"] == true,
                    });
                }
            }
        }
    }
    Ok(RestMapper::new(known))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A text, or nothing.
pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The series that a selector selects, or the error.
pub(crate) enum FixtureResponse {
    Series(Vec<Series>),
    /// `"data": null`
    Null,
    Failed,
}

/// The response of Prometheus to a selector, which is empty for an unknown one.
pub(crate) fn answer(series: &Value, selector: &str) -> FixtureResponse {
    let Some(answer) = series.get(selector) else { return FixtureResponse::Series(Vec::new()) };
    match answer {
        Value::Null => FixtureResponse::Null,
        Value::Array(sets) => sets_of(sets),
        raw => {
            let decoded = matches!(raw["status"].as_u64(), Some(200..=299 | 400 | 422 | 503));
            let body: Option<Value> = raw["body"].as_str().and_then(|body| serde_json::from_str(body).ok());
            match body.filter(|body| decoded && body["status"] == "success") {
                Some(body) => {
                    let sets = body.get("data").and_then(Value::as_array);
                    sets.map_or(FixtureResponse::Failed, |sets| sets_of(sets))
                }
                None => FixtureResponse::Failed,
            }
        }
    }
}

fn sets_of(sets: &[Value]) -> FixtureResponse {
    let mut all = Vec::new();
    for set in sets {
        let Some(set) = set.as_object().filter(|set| set.values().all(Value::is_string)) else {
            return FixtureResponse::Failed;
        };
        let name = set.get("__name__").and_then(Value::as_str).unwrap_or_default();
        let labels = set.keys().filter(|label| *label != "__name__").map(|label| Arc::from(label.as_str()));
        all.push(Series { name: name.into(), labels: labels.collect() });
    }
    FixtureResponse::Series(all)
}
