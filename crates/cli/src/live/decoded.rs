//! Decodes lists of decisions item by item: a decision that another version wrote must not hide the others.

use std::collections::BTreeSet;

use api::decisions::{DecisionList, DecisionRecord};
use serde::Deserialize;
use serde_json::Value;

use super::RequestError;

/// Autoscalers that a warning names.
const MAX_NAMED_AUTOSCALERS: usize = 3;
/// Characters of an error, which may list all values that are known.
const MAX_ERROR_CHARS: usize = 200;

/// A list whose items are not decoded yet.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EncodedList {
    items: Vec<Value>,
}

/// The decisions of a list; if some cannot be decoded, also their autoscalers and the first error.
pub(super) fn decisions(text: &str) -> Result<(Vec<DecisionRecord>, Option<String>), RequestError> {
    // Nearly every list can be decoded as a whole, which needs less memory.
    if let Ok(list) = serde_json::from_slice::<DecisionList>(text.as_bytes()) {
        return Ok((list.items, None));
    }
    let mut records = Vec::new();
    let (mut autoscalers, mut first_error) = (BTreeSet::new(), None);
    for item in &encoded(text)?.items {
        match serde_json::from_value::<DecisionRecord>(item.clone()) {
            Ok(record) => records.push(record),
            Err(error) => {
                autoscalers.insert(autoscaler(item));
                first_error = first_error.or(Some(error));
            }
        }
    }
    let undecodable = first_error.map(|error| {
        let others = autoscalers.len().saturating_sub(MAX_NAMED_AUTOSCALERS);
        let mut names: Vec<String> = autoscalers.into_iter().take(MAX_NAMED_AUTOSCALERS).collect();
        if others > 0 {
            names.push(format!("{others} more"));
        }
        format!("{}: {}", names.join(", "), api::text::truncated(&error.to_string(), MAX_ERROR_CHARS))
    });
    Ok((records, undecodable))
}

fn encoded(text: &str) -> Result<EncodedList, RequestError> {
    serde_json::from_slice(text.as_bytes()).map_err(|error| RequestError::InvalidResponse(error.to_string()))
}

/// The autoscaler of a record: `hpa/web in shop`.
fn autoscaler(item: &Value) -> String {
    let text = |path: &str| item.pointer(path).and_then(Value::as_str).unwrap_or("?");
    format!("{} in {}", text("/metadata/name").replacen('.', "/", 1), text("/metadata/namespace"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::record_of;
    use serde_json::json;

    /// A decision of a version that has another mode.
    fn of_another_version(name: &str) -> Value {
        let mut value = serde_json::to_value(record_of(name, "2026-01-05T09:15:00Z", 1, &[610])).unwrap();
        value["mode"] = json!("canary");
        value
    }

    #[test]
    fn decisions_that_cannot_be_decoded_are_named_and_left_out() {
        let web = record_of("web", "2026-01-05T09:15:00Z", 1, &[610]);
        let list = json!({"kind": "DecisionList", "metadata": {"resourceVersion": "7"},
            "items": [of_another_version("api"), web, of_another_version("api"), 7]});
        let (records, undecodable) = decisions(&list.to_string()).unwrap();
        assert_eq!(records.iter().map(|record| &*record.metadata.name).collect::<Vec<_>>(), ["hpa.web"]);
        let undecodable = undecodable.unwrap();
        assert!(
            undecodable.starts_with("? in ?, hpa/api in shop: unknown variant `canary`"),
            "{undecodable}"
        );
        let many: Vec<Value> = ["a", "b", "c", "d", "e"].into_iter().map(of_another_version).collect();
        let (records, undecodable) = decisions(&json!({"items": many}).to_string()).unwrap();
        assert!(records.is_empty());
        let undecodable = undecodable.unwrap();
        let names = "hpa/a in shop, hpa/b in shop, hpa/c in shop, 2 more: ";
        assert!(undecodable.starts_with(names), "{undecodable}");
    }

    #[test]
    fn other_answers_are_decoded_as_a_whole_or_refused() {
        let web = record_of("web", "2026-01-05T09:15:00Z", 1, &[610]);
        let (records, undecodable) = decisions(&json!({"items": [web]}).to_string()).unwrap();
        assert_eq!((records.len(), undecodable), (1, None));
        for text in ["<html>", "{\"items\": 7}"] {
            assert!(matches!(decisions(text), Err(RequestError::InvalidResponse(_))), "{text}");
        }
    }
}
