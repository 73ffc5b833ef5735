//! Replies of a Redis server in its protocol RESP.

/// The input is the bytes of a reply.
pub fn run(data: &[u8]) {
    let _ = scalers::redis::untrusted::is_reply(data);
}
