#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn head(text: &str) -> Result<Option<(ResponseHead, usize)>, HttpSyntaxError> {
    ResponseHead::read(text.as_bytes(), 0)
}

fn good(text: &str) -> (u16, BodyFraming, bool) {
    let (head, length) = head(text).unwrap().unwrap();
    assert_eq!(length, text.len());
    (head.status, head.body, head.is_kept)
}

#[test]
fn heads_have_status_framing_and_persistence() {
    let of = |fields: &str| good(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
    assert_eq!(of("Content-Length: 12\r\n"), (200, BodyFraming::Length(12), true));
    assert_eq!(of("content-length:12\r\nCONTENT-LENGTH: 12\r\n"), (200, BodyFraming::Length(12), true));
    assert_eq!(of("Transfer-Encoding: Chunked\r\n"), (200, BodyFraming::Size, true));
    assert_eq!(of("Content-Length: 0\r\nConnection: a, Close\r\n"), (200, BodyFraming::Length(0), false));
    assert_eq!(of(""), (200, BodyFraming::UntilClosed, false));
    assert_eq!(good("HTTP/1.0 403\r\nContent-Length: 1\r\n\r\n"), (403, BodyFraming::Length(1), false));
    assert_eq!(good("HTTP/1.1 100 Continue\r\n\r\n"), (100, BodyFraming::Length(0), true));
    assert_eq!(good("HTTP/1.1 204 \r\nContent-Length: 5\r\n\r\n"), (204, BodyFraming::Length(0), true));
}

#[test]
fn malformed_heads_are_rejected() {
    for fields in [
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "no colon\r\n",
        " folded: x\r\n",
        "two words: x\r\n",
        ": x\r\n",
        "x: a\rb\r\n",
    ] {
        assert!(head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).is_err(), "{fields}");
    }
    for line in
        ["HTTP/2 200 OK", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 099", "HTTP/1.1  200", "HTTP/1.2 200"]
    {
        assert!(head(&format!("{line}\r\n\r\n")).is_err(), "{line}");
    }
    assert!(head("HTTQ").is_err());
    assert!(head(&format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(MAX_HEAD_BYTES))).is_err());
}

#[test]
fn head_may_arrive_in_chunks() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    for end in 0..text.len() - 3 {
        assert_eq!(ResponseHead::read(&text[..end], end.saturating_sub(1)), Ok(None));
    }
    let (read, length) = ResponseHead::read(text, text.len() - 4).unwrap().unwrap();
    assert_eq!((read.body, &text[length..]), (BodyFraming::Length(3), &b"abc"[..]));
}

/// Body and trailing bytes for input in chunks of `size` bytes.
fn decoded(
    mut framing: BodyFraming,
    bytes: &[u8],
    size: usize,
) -> Result<(Vec<u8>, Vec<u8>), HttpSyntaxError> {
    let (mut body, mut rest) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(size) {
        rest.extend_from_slice(piece);
        while let Some((piece, used)) = framing.next(&rest)? {
            body.extend_from_slice(piece);
            rest.drain(..used);
        }
    }
    if framing.is_done() || framing == BodyFraming::UntilClosed { Ok((body, rest)) } else { Err("more") }
}

#[test]
fn bodies_decode_from_chunks_of_any_size() {
    let chunks = b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n00\r\nTrailer: x\r\n\r\nrest";
    for size in 1..=chunks.len() {
        assert_eq!(
            decoded(BodyFraming::Size, chunks, size).unwrap(),
            (b"abc0123456789".to_vec(), b"rest".to_vec())
        );
        assert_eq!(decoded(BodyFraming::Length(3), b"abcd", size).unwrap(), (b"abc".to_vec(), b"d".to_vec()));
        assert_eq!(
            decoded(BodyFraming::UntilClosed, b"abcd", size).unwrap(),
            (b"abcd".to_vec(), b"".to_vec())
        );
    }
}

#[test]
fn malformed_chunks_are_rejected() {
    let long = "1".repeat(MAX_CHUNK_LINE_BYTES);
    let trailers = format!("0\r\n{}", "x: y\r\n".repeat(MAX_TRAILER_BYTES));
    for chunks in
        ["zz\r\n", "\r\n", "-1\r\n", "3\r\nabcd\r\n", "3\r\nabc\n", "fffffffffffffffff\r\n", &long, &trailers]
    {
        let failed = decoded(BodyFraming::Size, chunks.as_bytes(), 7).unwrap_err();
        assert_ne!(failed, "more", "{}", &chunks[..chunks.len().min(20)]);
    }
}
