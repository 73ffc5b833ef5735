//! Frames that an AMQP server sends.

/// The input is the bytes that a connection receives.
pub fn run(data: &[u8]) {
    // A frame has at least a header and an end.
    assert!(scalers::rabbitmq::count_frames(data) <= data.len() / 8);
}
