//! Lists of the blobs of a container, without IO.

use regex::Regex;

use crate::ScalerError;
use crate::azure_storage::{StorageConnection, StorageRequest, check_storage_answer};
use crate::responses::hidden;
use crate::web::{path_escaped, path_unescaped};
use crate::xml;

/// Maximum number of blobs per page: so many with the longest names fit into a response.
pub(super) const PAGE_SIZE: &str = "2000";

/// Which blobs are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BlobFilter {
    pub(super) container: String,
    /// Beginning of the names; may be empty.
    pub(super) prefix: String,
    /// Blobs whose name has it after the prefix are left out; none are if it is empty.
    pub(super) delimiter: String,
}

impl BlobFilter {
    /// The request for a page; `marker` is that of the page before.
    pub(super) fn page(
        &self,
        connection: &StorageConnection,
        marker: &str,
        date: &str,
    ) -> Result<StorageRequest, ScalerError> {
        // In the order of their names, as signatures need it.
        let query = [
            ("comp", "list"),
            ("delimiter", &*self.delimiter),
            ("marker", marker),
            ("maxresults", PAGE_SIZE),
            ("prefix", &*self.prefix),
            ("restype", "container"),
        ];
        let query: Vec<(&str, &str)> = query.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        connection.request(&format!("/{}", path_escaped(&self.container)), &query, date)
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlobPage {
    /// How many blobs of it count.
    pub(super) count: usize,
    /// Marker of the next page; empty after the last one.
    pub(super) next: String,
}

/// Reads a page; with a pattern only blobs whose name matches count.
pub(super) fn page(status: u16, body: &[u8], pattern: Option<&Regex>) -> Result<BlobPage, ScalerError> {
    check_storage_answer("blob storage", status, body)?;
    let text = std::str::from_utf8(body).unwrap_or_default();
    if !text.contains("<EnumerationResults") || !text.contains("</EnumerationResults>") {
        bail!("the answer of the blob storage is not a list of blobs: {}", hidden(body));
    }
    let mut count = 0;
    for blob in text.split("<Blob>").skip(1) {
        let Some(pattern) = pattern else {
            count += 1;
            continue;
        };
        let name =
            name(blob).ok_or_else(|| scaler_error!("the blob storage listed a blob without a name"))?;
        count += usize::from(pattern.is_match(&name));
    }
    Ok(BlobPage { count, next: xml::element(text, "NextMarker").unwrap_or_default() })
}

/// The name of a blob. Names with characters that XML cannot have are escaped like those in URLs.
fn name(blob: &str) -> Option<String> {
    if let Some((_, rest)) = blob.split_once(r#"<Name Encoded="true">"#) {
        let (name, _) = rest.split_once("</Name>")?;
        return path_unescaped(name);
    }
    xml::element(blob, "Name")
}
