//! The definitions of KEDA's kinds: every field of `api::keda` (docs/spec/keda.md 1), from the `.schema` files beside this
//! one; the spec of a Job is taken from the API server's own schemas ([`job`]).
//!
//! These definitions accept and refuse the same objects as KEDA's. The API server fills in only the two defaults that
//! KEDA's definitions have.

mod job;
#[cfg(test)]
mod tests;

use api::keda::EVENT_TYPES;
use serde_json::json;

use super::definition::{self, Definition};
use super::schema::SchemaReader;

const COMMON: &str = include_str!("common.schema");
const FILES: [&str; 4] = [
    include_str!("cloud_events.schema"),
    include_str!("authentication.schema"),
    include_str!("scaled_job.schema"),
    include_str!("scaled_object.schema"),
];

pub(super) fn definitions() -> anyhow::Result<Vec<Definition>> {
    let mut reader = SchemaReader::new(json!({"eventTypes": EVENT_TYPES}));
    definition::definitions(COMMON, &mut reader)?;
    reader.define("job-spec", job::spec()?);
    let mut found = Vec::new();
    for file in FILES {
        found.extend(definition::definitions(file, &mut reader)?);
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}
