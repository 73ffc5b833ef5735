//! Replies of a Redis server.

/// The bytes of a reply.
pub fn run(data: &[u8]) {
    let _ = scalers::redis::untrusted::is_reply(data);
}
