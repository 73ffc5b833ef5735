//! Random names and ids.

use std::sync::OnceLock;

use rustls::crypto::SecureRandom;
use rustls::crypto::aws_lc_rs::default_provider;

/// The letters of generated names: no vowels and no similar characters.
pub(crate) const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    static SOURCE: OnceLock<&'static dyn SecureRandom> = OnceLock::new();
    let mut bytes = [0; N];
    // Random bytes are unavailable only on a broken system; generated names then collide and are refused.
    let _ = SOURCE.get_or_init(|| default_provider().secure_random).fill(&mut bytes);
    bytes
}

/// A random suffix of five letters.
pub(crate) fn suffix() -> String {
    letters(u64::from_be_bytes(bytes()), 5)
}

/// `count` letters that encode a number.
pub(crate) fn letters(mut number: u64, count: usize) -> String {
    let base = LETTERS.len() as u64;
    let letters = std::iter::repeat_with(|| {
        let letter = LETTERS.get((number % base) as usize).copied().unwrap_or(b'x');
        number /= base;
        char::from(letter)
    });
    letters.take(count).collect()
}

/// A random uid.
pub(crate) fn uid() -> String {
    let mut id = u128::from_be_bytes(bytes());
    // Version 4, variant 1.
    id = (id & !(0xf << 76)) | (4 << 76);
    id = (id & !(0b11 << 62)) | (0b10 << 62);
    let hex = format!("{id:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_have_the_form_of_uuid_version_4() {
        let (one, two) = (uid(), uid());
        assert_ne!(one, two);
        assert_eq!(one.len(), 36);
        assert_eq!(one.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&one.as_bytes()[19]));
        assert!(suffix().bytes().all(|letter| LETTERS.contains(&letter)));
    }
}
