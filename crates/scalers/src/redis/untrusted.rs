//! Decodes the replies of a server, for fuzzing.

use futures::FutureExt as _;

use super::{client, query, resp};

/// Decodes a reply as each request does. Returns whether it is a reply at all.
pub fn is_reply(mut bytes: &[u8]) -> bool {
    // All bytes are there, so nothing is waited for.
    let Some(Ok(reply)) = resp::read(&mut bytes).now_or_never() else { return false };
    if let Some(text) = reply.text() {
        let _ = (query::knows_lag(&text), query::counts("key", &text), query::host_and_port(&text));
    }
    let _ = (client::pending_of(&reply), client::lag_of(&reply, "group"));
    true
}
