//! Pages that version 0.1.0 sent are copied, and so are those of a later version as far as they can be read.

use serde_json::{Value, json};

use super::fetch::decoded;
use crate::hpa::records::Records;

const CONTROLLER: &str = include_str!("../../../../../../tests/stored/v0.1.0/controller-passes.json");
const OPERATOR: &str = include_str!("../../../../../../tests/stored/v0.1.0/operator-passes.json");

/// Copies a page into an empty history; how many passes it has then.
fn copied(page: &Value) -> usize {
    Records::default().copy(None, decoded(page.to_string().as_bytes()).unwrap(), true)
}

#[test]
fn pages_of_other_versions_are_copied() {
    for text in [CONTROLLER, OPERATOR] {
        let mut page: Value = serde_json::from_str(text).unwrap();
        assert_eq!(copied(&page), 2, "{text}");
        // A later version has further fields.
        for object in [
            "",
            "/metadata",
            "/items/0",
            "/items/0/record",
            "/items/0/record/spec",
            "/items/0/record/decision",
        ] {
            page.pointer_mut(object).unwrap()["laterField"] = json!({"a": [1]});
        }
        assert_eq!(copied(&page), 2, "{text}");
        // A value that is not known here takes one pass and not the page.
        page["items"][0]["record"]["mode"] = json!("laterMode");
        assert_eq!(copied(&page), 1, "{text}");
    }
}
