//! GJSON paths that tenants write, and JSON that their servers answer: a value, or a typed error.

use scalers::metrics_api::query::stream::{FindError, find};

/// A path, and after the first line the body.
pub fn run(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (path, body) = data.split_at(at);
    let path = String::from_utf8_lossy(path);
    let body = body.get(1..).unwrap_or_default();
    match find(body, &path) {
        Ok(found) => {
            // What is found is a scalar, or stands for a list or object.
            let small = found.is_none_or(|found| match found {
                serde_json::Value::Array(items) => items.is_empty(),
                serde_json::Value::Object(members) => members.is_empty(),
                _ => true,
            });
            assert!(small, "{path}");
        }
        Err(
            FindError::Json(_) | FindError::Path { .. } | FindError::Work { .. } | FindError::TooLarge(_),
        ) => {}
    }
}
