//! The question, and how many documents it finds.

use crate::Error;
use crate::answers::{excerpt, json, number};
use crate::web::{escaped, path_escaped};

/// The address of a query; the documents themselves are not wanted.
pub(super) fn url(host: &str, collection: &str, query: &str) -> String {
    let (host, collection) = (host.trim_end_matches('/'), path_escaped(collection));
    format!("{host}/solr/{collection}/select?q={}&wt=json&rows=0", escaped(query))
}

/// How many documents were found.
pub(super) fn found(status: u16, body: &[u8]) -> Result<f64, Error> {
    if status != 200 {
        return Err(Error::new(format!("Solr returned {status}: {}", excerpt(body))));
    }
    number(&json(body)?, "/response/numFound")
}
