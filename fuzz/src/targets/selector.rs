//! Label selectors and field selectors.

use std::collections::BTreeMap;

use api::scale::normalize_selector;
use api::selector::{FieldSelector, Selector};

/// The input is a selector as text.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = normalize_selector(&text);
    if let Ok(fields) = FieldSelector::parse(&text) {
        let _ = (
            fields.exact("metadata.name"),
            fields.matches(|_| "x"),
            fields.restricted_to(&["metadata.name"]),
        );
    }
    let Ok(selector) = Selector::parse(&text) else { return };
    let shown = selector.to_string();
    let again = Selector::parse(&shown);
    assert_eq!(again.as_ref().map(ToString::to_string).ok(), Some(shown), "{text}");
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "7".to_owned())]);
    let matches = selector.matches_map(&labels);
    assert_eq!(again.map(|again| again.matches_map(&labels)).ok(), Some(matches), "{text}");
    if let Ok(object) = selector.to_label_selector() {
        // The result is not always the same selector, because Kubernetes keeps the last of two values for one key.
        let _ = (object.go_string(), object.to_selector());
    }
}
