//! The state of a cluster without values that differ between clusters: generated names, ids and times.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Generated names, and their placeholders.
pub(super) struct GeneratedNames(BTreeMap<String, String>);

impl GeneratedNames {
    pub(super) fn of(objects: &[Value]) -> Self {
        let mut names = BTreeMap::new();
        for object in objects {
            let labels = &object["metadata"]["labels"];
            let image = match &object["spec"]["template"] {
                Value::Null => &object["spec"]["containers"][0]["image"],
                template => &template["spec"]["containers"][0]["image"],
            };
            let hashes = [
                &labels["pod-template-hash"],
                &labels["controller-revision-hash"],
                &object["status"]["updateRevision"],
            ];
            for hash in hashes {
                if let Some(hash) = hash.as_str() {
                    let hash = hash.rsplit('-').next().unwrap();
                    names.insert(hash.to_owned(), format!("<{}>", image.as_str().unwrap()));
                }
            }
            if let Some(uid) = object["metadata"]["uid"].as_str() {
                names.insert(uid.to_owned(), "<uid>".to_owned());
            }
        }
        Self(names)
    }

    /// Whether there is an object with this uid.
    pub(super) fn knows(&self, uid: &str) -> bool {
        self.0.contains_key(uid)
    }

    /// A text with placeholders for generated names.
    pub(super) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, stand_in) in &self.0 {
            text = text.replace(name.as_str(), stand_in);
        }
        // `generateName` adds `-` and five letters at the end of a word.
        let word = |word: &str| match word.rsplit_once('-') {
            Some((prefix, suffix)) if suffix.trim_end_matches(['"', ')', ']', ',']).len() == 5 => {
                format!("{prefix}-<x>")
            }
            _ => word.to_owned(),
        };
        text.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    /// The compared fields of an object, on one line.
    pub(super) fn clean(&self, object: &Value, exact: bool) -> String {
        let mut meta = json!({});
        for field in ["name", "generateName", "labels", "annotations", "ownerReferences"] {
            meta[field] = object["metadata"][field].clone();
        }
        let mut status = object["status"].clone();
        if exact && object["kind"] != "Pod" {
            meta["generation"] = object["metadata"]["generation"].clone();
        } else if let Some(status) = status.as_object_mut() {
            status.remove("observedGeneration");
        }
        if let Some(status) = status.as_object_mut() {
            for field in ["startTime", "completionTime", "qosClass"] {
                status.remove(field);
            }
        }
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            let condition = condition.as_object_mut().unwrap();
            condition.retain(|field, _| !field.starts_with("last"));
        }
        let spec = &object["spec"];
        let shown = json!([spec["replicas"], spec["hostname"], spec["subdomain"], spec["restartPolicy"]]);
        let kind = &object["kind"];
        self.text(&format!("{kind} {} {} {}", spaced(&meta), spaced(&shown), spaced(&status)))
    }
}

/// JSON in which every string is a word, and fields are in order.
fn spaced(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
            let fields = sorted.iter().map(|(name, value)| format!("{name}: {}", spaced(value)));
            fields.collect::<Vec<_>>().join(" ")
        }
        Value::Array(items) => {
            items.iter().map(|item| format!("- {}", spaced(item))).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}
