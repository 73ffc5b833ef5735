//! The `includeObject` option of tables.

use crate::query::Query;
use crate::status::Status;

/// The `includeObject` policy of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    /// Nothing.
    Nothing,
    /// The object's metadata.
    Metadata,
    /// The object.
    Object,
}

impl IncludeObject {
    /// The policy of a request, with the error of Kubernetes for another value.
    pub(crate) fn of(query: &Query) -> Result<Self, Status> {
        match query.get("includeObject").unwrap_or_default() {
            "None" => Ok(Self::Nothing),
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            other => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                 'Object', 'None', or empty",
                api::gotext::quote(other)
            ))),
        }
    }
}
