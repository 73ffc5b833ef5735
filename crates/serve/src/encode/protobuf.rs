//! The protobuf encoding of Kubernetes: a magic number, an envelope with the kind, the message.
//!
//! As Go writes it: ascending fields, and every string and number even if it is empty or zero.

use bytes::Bytes;
use jiff::Timestamp;

/// The magic number.
const MAGIC: &[u8] = b"k8s\0";

/// The maximum length of a varint.
const MAX_VARINT_BYTES: usize = 10;

/// The bytes of the envelope before and after a message of this size.
pub(crate) fn around(version: &str, kind: &str, size: usize) -> (Vec<u8>, Vec<u8>) {
    let mut head = MAGIC.to_vec();
    message(&mut head, 1, |out| {
        text(out, 1, version);
        text(out, 2, kind);
    });
    tag(&mut head, 2, 2);
    varint(&mut head, size as u64);
    let mut end = Vec::new();
    // Content encoding and content type are empty.
    text(&mut end, 3, "");
    text(&mut end, 4, "");
    (head, end)
}

/// An object in its envelope. The message is written once and not moved: space for the bytes before it is reserved, and
/// unused space is cut off.
pub(crate) fn envelope(version: &str, kind: &str, size: usize, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let room = around(version, kind, 0).0.len() + MAX_VARINT_BYTES;
    let mut all = Vec::with_capacity(room + size + 4);
    all.resize(room, 0);
    write(&mut all);
    let (head, end) = around(version, kind, all.len() - room);
    let start = room - head.len();
    if let Some(place) = all.get_mut(start..room) {
        place.copy_from_slice(&head);
    }
    all.extend_from_slice(&end);
    Bytes::from(all).slice(start..)
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn tag(out: &mut Vec<u8>, field: u32, wire: u32) {
    varint(out, u64::from(field << 3 | wire));
}

/// A varint field.
pub(crate) fn number(out: &mut Vec<u8>, field: u32, number: i64) {
    tag(out, field, 0);
    varint(out, number as u64);
}

/// A string field.
pub(crate) fn text(out: &mut Vec<u8>, field: u32, text: &str) {
    tag(out, field, 2);
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// A nested message. Most are shorter than 128 bytes; longer ones are moved by the size of their length.
pub(crate) fn message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, 2);
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    if length >= 0x80 {
        // The length is encoded at the end and then moved to its place.
        let end = out.len();
        varint(out, length as u64);
        let more = out.len() - end - 1;
        let mut bytes = [0; MAX_VARINT_BYTES];
        for (to, from) in bytes.iter_mut().zip(out.get(end..).unwrap_or_default()) {
            *to = *from;
        }
        out.truncate(end + more);
        out.copy_within(at + 1..end, at + 1 + more);
        for (to, from) in out.get_mut(at..=at + more).unwrap_or_default().iter_mut().zip(bytes) {
            *to = from;
        }
    } else if let Some(place) = out.get_mut(at) {
        *place = length as u8;
    }
}

/// An entry of a string map.
pub(crate) fn entry(out: &mut Vec<u8>, field: u32, key: &str, value: &str) {
    message(out, field, |out| {
        text(out, 1, key);
        text(out, 2, value);
    });
}

/// A time in whole seconds; empty if there is none.
pub(crate) fn instant(out: &mut Vec<u8>, field: u32, time: Option<Timestamp>) {
    message(out, field, |out| {
        if let Some(time) = time {
            number(out, 1, time.as_nanosecond().div_euclid(1_000_000_000) as i64);
            number(out, 2, 0);
        }
    });
}

/// A quantity.
pub(crate) fn quantity(out: &mut Vec<u8>, field: u32, quantity: &quantity::Quantity) {
    message(out, field, |out| message(out, 1, |out| super::json::amount(out, quantity)));
}

/// Empty list metadata.
pub(crate) fn list_meta(out: &mut Vec<u8>) {
    message(out, 1, |out| (1..=3).for_each(|field| text(out, field, "")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_short_as_can_be() {
        for length in [0, 1, 127, 128, 300, 20_000] {
            let mut out = Vec::new();
            message(&mut out, 1, |out| out.extend(std::iter::repeat_n(7, length)));
            let mut expected = vec![0x0a];
            varint(&mut expected, length as u64);
            expected.extend(std::iter::repeat_n(7, length));
            assert_eq!(out, expected, "{length}");
            let whole = envelope("v1", "K", 0, |out| out.extend(std::iter::repeat_n(7, length)));
            let head = [&b"k8s\0\x0a\x07\x0a\x02v1\x12\x01K\x12"[..]].concat();
            assert!(whole.starts_with(&head) && whole.ends_with(b"\x1a\0\x22\0"), "{whole:?}");
        }
    }

    #[test]
    fn numbers_below_zero_take_ten_bytes() {
        let mut out = Vec::new();
        number(&mut out, 7, -1);
        assert_eq!(out, [0x38, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    }
}
