//! Frames of HTTP/2 that no client library sends.

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const CONTINUATION: u8 = 9;
pub const END_STREAM_AND_HEADERS: u8 = 5;
/// `GET https://x/` in HPACK: three entries of the static table, and `:authority`.
pub const GET: [u8; 6] = [0x82, 0x84, 0x87, 0x01, 0x01, b'x'];
const SETTINGS: u8 = 4;

/// A frame of HTTP/2.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head[..], &stream.to_be_bytes(), payload].concat()
}

/// Sends the preface of a connection.
pub async fn send_preface(stream: &mut (impl AsyncWrite + Unpin)) {
    let mut preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    preface.extend(frame(SETTINGS, 0, 0, &[]));
    stream.write_all(&preface).await.unwrap();
}
