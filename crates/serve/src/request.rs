//! A request that has passed authentication and authorization.

use http::{HeaderMap, Method};
use runtime::Clock;

use crate::access::RequestAttributes;
use crate::identity::User;
use crate::query::Query;
use crate::stream::WatchStreams;

/// An authorized request. Routes find it among the extensions of the HTTP request.
#[derive(Clone, Debug)]
pub struct AuthorizedRequest {
    /// Method.
    pub method: Method,
    /// The decoded path: the one that was authorized.
    pub path: String,
    /// The query.
    pub query: Query,
    /// Headers, without credentials and user headers.
    pub headers: HeaderMap,
    /// The user.
    pub user: User,
    /// The attributes that were authorized.
    pub wanted: RequestAttributes,
    /// Sends the events of a watch.
    pub streams: WatchStreams,
    /// The clock of the server.
    pub clock: Clock,
}
