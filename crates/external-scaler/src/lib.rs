//! The external scaler protocol: the messages, a client, and a small library to write a scaler in Rust.
