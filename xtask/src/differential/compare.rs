//! The comparison: everything that users see except the masked values, which are listed here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

/// A masked value.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Mask {
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
}

/// All masked values.
pub(crate) const MASKED: &[Mask] = &[
    Mask {
        what: "lastScaleTime and lastTransitionTime, beyond that they are there",
        why: "the two controllers look at different moments",
    },
    Mask { what: "count, times and names of events", why: "the same: as many as there were passes" },
    Mask { what: "annotations plimsoll.dev/*", why: "ours: what survives a restart" },
    Mask { what: "namespaces in texts, uid, resourceVersion", why: "the copies are two objects" },
    Mask {
        what: "the order of autoscalers in AmbiguousSelector",
        why: "random in Kubernetes, sorted here (deliberate difference)",
    },
    Mask {
        what: "which two autoscalers AmbiguousSelector names, since Kubernetes 1.37",
        why: "the two that were found first",
    },
    Mask {
        what: "which pod is named when several lack a request or a container",
        why: "Kubernetes names any of them",
    },
    Mask {
        what: "events of an object about which 25 warnings were recorded",
        why: "further ones are dropped, and which depends on the number of passes (steps are counted above)",
    },
    Mask {
        what: "their events \"was deleted during reconciliation\" and \"not found\" about an autoscaler that a step deleted",
        why: "their held reconcile goes on after the deletion (Kubernetes 1.37), ours has not begun",
    },
];

/// The visible state of one copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    /// The requested replica count of the target; absent: there is no target.
    pub(crate) replicas: Option<i64>,
    /// Autoscalers by name: annotations, spec and status.
    pub(crate) autoscalers: BTreeMap<String, Value>,
    /// `type reason: message` of events so far.
    pub(crate) events: BTreeSet<String>,
    /// Number of warning events.
    pub(crate) warnings: u64,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) theirs: String,
    pub(crate) ours: String,
}

impl View {
    /// Adds an autoscaler as the server shows it.
    pub(crate) fn add_autoscaler(&mut self, namespace: &str, name: &str, object: &Value) {
        let mut seen = serde_json::Map::new();
        let mut annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_default();
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.retain(|key, _| !key.starts_with("plimsoll.dev/"));
        }
        seen.insert("annotations".to_owned(), annotations);
        for part in ["spec", "status"] {
            let mut value = object.get(part).cloned().unwrap_or_default();
            mask(&mut value, namespace);
            seen.insert(part.to_owned(), value);
        }
        self.autoscalers.insert(name.to_owned(), seen.into());
    }

    /// Adds an event.
    pub(crate) fn add_event(&mut self, namespace: &str, event: &Value) {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let kind = text("/type");
        if kind == "Warning" {
            self.warnings += event.get("count").and_then(Value::as_u64).unwrap_or(1);
        }
        let message = masked(text("/message"), namespace);
        self.events.insert(format!(
            "{kind} {}: {message} (about {} {} {}, from {})",
            text("/reason"),
            text("/involvedObject/apiVersion"),
            text("/involvedObject/kind"),
            text("/involvedObject/name"),
            text("/source/component"),
        ));
    }

    /// Leaves out the events of a reconcile that was held while these autoscalers were deleted.
    pub(crate) fn forget_deletions(&mut self, deleted: &BTreeSet<String>) {
        for name in deleted {
            let texts = [
                format!("FailedComputeMetricsReplicas: HPA {{ns}}/{name} was deleted during reconciliation"),
                format!("FailedUpdateStatus: horizontalpodautoscalers.autoscaling \"{name}\" not found"),
            ];
            let starts = texts.map(|text| format!("Warning {text} (about "));
            self.events.retain(|event| !starts.iter().any(|start| event.starts_with(start)));
        }
    }

    /// Conditions, types of metrics with a value, and events, without their texts.
    pub(crate) fn kinds(&self) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let list = |object: &Value, path: &str| {
            object.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        for object in self.autoscalers.values() {
            for condition in list(object, "/status/conditions") {
                let [kind, status, reason] = ["type", "status", "reason"].map(|key| text(&condition, key));
                kinds.insert(format!("condition {kind}={status} {reason}"));
            }
            for metric in list(object, "/status/currentMetrics") {
                let kind = text(&metric, "type");
                kinds.insert(format!("metric {}", if kind.is_empty() { "that failed" } else { &kind }));
            }
        }
        let event = |event: &String| event.split(':').next().map(|kind| format!("event {kind}"));
        kinds.extend(self.events.iter().filter_map(event));
        kinds
    }

    /// Whether the part that changes while a step settles is equal.
    pub(crate) fn same_state(&self, other: &Self) -> bool {
        self.replicas == other.replicas && self.autoscalers == other.autoscalers
    }

    /// The fields that differ.
    pub(crate) fn differences(theirs: &Self, ours: &Self) -> Vec<Field> {
        let (mut left, mut right) = (BTreeMap::new(), BTreeMap::new());
        for (view, fields) in [(theirs, &mut left), (ours, &mut right)] {
            let replicas =
                view.replicas.map_or_else(|| "no target".to_owned(), |replicas| replicas.to_string());
            fields.insert("target.spec.replicas".to_owned(), replicas);
            for (name, object) in &view.autoscalers {
                flatten(&format!("hpa/{name}"), object, fields);
            }
            for event in &view.events {
                fields.insert(format!("event {event}"), "recorded".to_owned());
            }
        }
        let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        let shown = |value: Option<&String>| value.cloned().unwrap_or_else(|| "-".to_owned());
        names
            .into_iter()
            .filter(|name| left.get(*name) != right.get(*name))
            .map(|name| Field {
                name: name.clone(),
                theirs: shown(left.get(name)),
                ours: shown(right.get(name)),
            })
            .collect()
    }
}

pub(super) fn flatten(path: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, fields));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(place, item)| flatten(&format!("{path}[{place}]"), item, fields));
        }
        Value::String(text) => {
            fields.insert(path.to_owned(), text.clone());
        }
        other => {
            fields.insert(path.to_owned(), other.to_string());
        }
    }
}

fn mask(value: &mut Value, namespace: &str) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                if matches!(key.as_str(), "lastScaleTime" | "lastTransitionTime") && value.is_string() {
                    *value = "(a time)".into();
                } else {
                    mask(value, namespace);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, namespace)),
        Value::String(text) => *text = masked(text, namespace),
        _ => {}
    }
}

/// A text without masked values.
fn masked(text: &str, namespace: &str) -> String {
    let text = text.replace(namespace, "{ns}");
    let text = sorted(&text, "are controlled by multiple HPAs: [");
    let text = without_list(&text, "are controlled by more than one HPA (e.g. [");
    ["of Pod ", "in Pod "].iter().fold(text, |text, before| unnamed(&text, before))
}

/// Sorts the words between `before` and the next `]`.
fn sorted(text: &str, before: &str) -> String {
    let Some((head, rest)) = text.split_once(before) else { return text.to_owned() };
    let Some((list, tail)) = rest.split_once(']') else { return text.to_owned() };
    let mut words: Vec<&str> = list.split(' ').collect();
    words.sort_unstable();
    format!("{head}{before}{}]{}", words.join(" "), sorted(tail, before))
}

/// Replaces the words between `before` and the next `]` by how many there are.
fn without_list(text: &str, before: &str) -> String {
    let Some((head, rest)) = text.split_once(before) else { return text.to_owned() };
    let Some((list, tail)) = rest.split_once(']') else { return text.to_owned() };
    format!("{head}{before}(any {})]{}", list.split(' ').count(), without_list(tail, before))
}

/// Leaves out the word after `before`.
fn unnamed(text: &str, before: &str) -> String {
    let Some((head, rest)) = text.split_once(before) else { return text.to_owned() };
    let end = rest.find(' ').unwrap_or(rest.len());
    format!("{head}{before}(any){}", unnamed(rest.get(end..).unwrap_or_default(), before))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    fn view(namespace: &str, status: &Value) -> View {
        let mut view = View { replicas: Some(3), ..View::default() };
        let annotations = json!({"team": "a", "plimsoll.dev/memory": namespace});
        let object =
            json!({"metadata": {"annotations": annotations}, "spec": {"maxReplicas": 3}, "status": status});
        view.add_autoscaler(namespace, "web", &object);
        view
    }

    #[test]
    fn only_what_is_masked_is_left_out() {
        let status = |time: &str, list: &str, pod: &str| {
            json!({
                "lastScaleTime": time,
                "conditions": [
                    {"message": format!("pods by selector a=b are controlled by multiple HPAs: [{list}]"), "lastTransitionTime": time},
                    {"message": format!("missing request for cpu in container app of Pod {pod}")},
                ],
            })
        };
        let one = view("n1", &status("2026-01-01T00:00:00Z", "n1/a n1/b", "x-1"));
        let other = view("n2", &status("2026-01-01T00:00:09Z", "n2/b n2/a", "x-2"));
        assert_eq!(View::differences(&one, &other), []);
        let without = view("n2", &json!({"conditions": status("", "n2/b n2/a", "x")["conditions"]}));
        let found = View::differences(&one, &without);
        assert_eq!(
            found.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
            ["hpa/web.status.lastScaleTime"]
        );
    }

    #[test]
    fn the_number_of_named_autoscalers_is_compared() {
        let text = |list: &str| {
            masked(&format!("pods by selector a=b are controlled by more than one HPA (e.g. [{list}])"), "n1")
        };
        assert_eq!(text("n1/a n1/b"), text("n1/c n1/d"));
        assert_ne!(text("n1/a n1/b"), text("n1/a n1/b n1/c"));
    }

    #[test]
    fn every_unmasked_field_is_compared() {
        let one = view("n1", &json!({"currentReplicas": 1, "currentMetrics": [{"type": "Pods"}, null]}));
        let other = view("n2", &json!({"currentReplicas": 2, "currentMetrics": [{"type": ""}]}));
        let fields: Vec<String> =
            View::differences(&one, &other).into_iter().map(|field| field.name).collect();
        let wanted = ["currentMetrics[0].type", "currentMetrics[1]", "currentReplicas"];
        assert_eq!(fields, wanted.map(|field| format!("hpa/web.status.{field}")));
        let scaled = View { replicas: None, ..one.clone() };
        assert_eq!(View::differences(&one, &scaled)[0].ours, "no target");
    }

    #[test]
    fn a_deletion_excuses_its_own_two_events_only() {
        let event =
            |reason: &str, message: &str| json!({"type": "Warning", "reason": reason, "message": message});
        let mut seen = View::default();
        seen.add_event(
            "n1",
            &event("FailedComputeMetricsReplicas", "HPA n1/s1 was deleted during reconciliation"),
        );
        seen.add_event(
            "n1",
            &event("FailedUpdateStatus", "horizontalpodautoscalers.autoscaling \"s1\" not found"),
        );
        let all = seen.clone();
        seen.forget_deletions(&["s2".to_owned(), "s".to_owned(), "s1-b".to_owned()].into());
        assert_eq!(seen, all, "of other autoscalers");
        seen.add_event("n1", &event("FailedUpdateStatus", "deployments.apps \"s1\" not found"));
        seen.add_event(
            "n1",
            &event("FailedGetScale", "horizontalpodautoscalers.autoscaling \"s1\" not found"),
        );
        seen.forget_deletions(&["s1".to_owned()].into());
        let left: Vec<&str> = seen.events.iter().filter_map(|event| event.split(" (").next()).collect();
        assert_eq!(
            left,
            [
                "Warning FailedGetScale: horizontalpodautoscalers.autoscaling \"s1\" not found",
                "Warning FailedUpdateStatus: deployments.apps \"s1\" not found",
            ]
        );
    }

    #[test]
    fn events_are_compared_as_a_set() {
        let event = |reason: &str, count: u64| json!({"type": "Warning", "reason": reason, "message": "in n1", "count": count});
        let (mut one, mut other) = (View::default(), View::default());
        one.add_event("n1", &event("A", 3));
        other.add_event("n1", &event("A", 5));
        assert_eq!(View::differences(&one, &other), []);
        assert_eq!((one.warnings, other.warnings), (3, 5));
        other.add_event("n1", &event("B", 1));
        let found = View::differences(&one, &other);
        assert!(
            found.len() == 1
                && found[0].theirs == "-"
                && found[0].name.starts_with("event Warning B: in {ns}"),
            "{found:?}"
        );
    }
}
