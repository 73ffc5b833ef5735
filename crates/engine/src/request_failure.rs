//! Why a request failed. It is a module of its own because errors of specs and samples carry it.

use serde::{Deserialize, Serialize};

/// Why a request to an API server failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestFailure {
    /// 403: authorization denied it.
    Forbidden(DeniedAccess),
    /// 401: the server does not accept the credentials.
    Unauthorized,
    /// 404 with a `Status`: the object, or the metric, does not exist.
    NotFound,
    /// No server is registered for the API group, or the resource has no such subresource.
    NotServed,
    /// The kind of the object is unknown.
    UnknownKind,
    /// 502, 503: the server behind the API is not available.
    Unavailable,
    /// 429: the server is overloaded.
    TooManyRequests,
    /// 504, or no response within the deadline.
    Timeout,
    /// Another code that is an error.
    Refused(u16),
    /// The server could not be reached, or its response could not be decoded.
    Unreachable,
    /// A response without samples.
    NoItems,
    /// The samples are older than `maxAgeSeconds`, or of unknown age; both in seconds.
    TooOld {
        /// Their age, if it is known.
        age: Option<i64>,
        /// The largest accepted age.
        most: i64,
    },
}

impl RequestFailure {
    /// Whether the server carries out no request now, whatever the request is.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unreachable | Self::Unavailable | Self::Timeout | Self::TooManyRequests)
    }
}

/// Which access was denied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeniedAccess {
    /// The user, for example `system:serviceaccount:plimsoll:controller`; empty if the server did not say.
    pub user: String,
    /// The verb: `get`, `list`, `update`.
    pub verb: String,
    /// Resource and subresource: `deployments/scale`.
    pub resource: String,
    /// API group; empty for the core group.
    pub group: String,
}
