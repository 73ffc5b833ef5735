//! Frames of an AMQP server.

/// The bytes of a connection.
pub fn run(data: &[u8]) {
    // A frame has at least a header and an end.
    assert!(scalers::rabbitmq::count_frames(data) <= data.len() / 8);
}
