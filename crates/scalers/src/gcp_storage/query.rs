//! Lists of the objects of a bucket, without IO.

use serde_json::Value;

use super::Parameters;
use crate::ScalerError;
use crate::google_client::google_answer;
use crate::responses::kind;
use crate::web::{escaped, path_escaped};

const SERVER: &str = "https://storage.googleapis.com/storage/v1/b";

/// The URL of a page of objects, with only the size of each.
pub(super) fn url(parameters: &Parameters, token: &str) -> String {
    let fields = escaped("items(size),nextPageToken");
    let mut url = format!("{SERVER}/{}/o?fields={fields}&maxResults=1000", path_escaped(&parameters.bucket));
    for (name, value) in
        [("prefix", &*parameters.prefix), ("delimiter", &*parameters.delimiter), ("pageToken", token)]
    {
        if !value.is_empty() {
            url.push_str(&format!("&{name}={}", escaped(value)));
        }
    }
    url
}

/// A page of objects.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObjectPage {
    /// How many objects of it are not empty: folders are empty objects.
    pub(super) count: i64,
    /// Token of the next page; empty after the last one.
    pub(super) next: String,
}

/// Reads a page.
pub(super) fn page(status: u16, body: &[u8]) -> Result<ObjectPage, ScalerError> {
    let answer = google_answer("Cloud Storage", status, body)?;
    let mut count = 0;
    match answer.get("items") {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) => {
            for item in items {
                // Sizes are strings in JSON, because they have 64 bits.
                let size = item.get("size");
                let bytes = size.and_then(Value::as_str).and_then(|text| text.parse::<u64>().ok());
                let Some(bytes) = bytes.or_else(|| size.and_then(Value::as_u64)) else {
                    bail!("Cloud Storage listed an object with {} as size", kind(size));
                };
                count += i64::from(bytes > 0);
            }
        }
        Some(other) => bail!("the answer of Cloud Storage has {} as items", kind(Some(other))),
    }
    let next = answer.get("nextPageToken").and_then(Value::as_str).unwrap_or_default();
    Ok(ObjectPage { count, next: next.to_owned() })
}
