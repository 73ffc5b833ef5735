//! GJSON paths, which tenants write, and JSON responses of their servers. The result is a value or a typed error.

use scalers::metrics_api::query::stream::{FindError, find};

/// The first line of the input is a path, the rest is the body of the response.
pub fn run(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (path, body) = data.split_at(at);
    let path = String::from_utf8_lossy(path);
    let body = body.get(1..).unwrap_or_default();
    match find(body, &path) {
        Ok(found) => {
            // A found value is a scalar, or an empty list or object that stands for a list or object of any size.
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
