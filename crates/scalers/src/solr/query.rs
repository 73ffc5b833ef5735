//! The request, and the number of matching documents.

use crate::ScalerError;
use crate::responses::{error_field, json, number};
use crate::web::{escaped, path_escaped};

/// The URL of a query that returns only the count.
pub(super) fn url(host: &str, collection: &str, query: &str) -> String {
    let (host, collection) = (host.trim_end_matches('/'), path_escaped(collection));
    format!("{host}/solr/{collection}/select?q={}&wt=json&rows=0", escaped(query))
}

/// The number of documents returned.
pub(super) fn found(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    if status != 200 {
        bail!("Solr returned {status}: {}", error_field(body, "/error/msg"));
    }
    number(&json(body)?, "/response/numFound")
}
