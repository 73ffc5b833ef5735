//! Random numbers for jitter, and UUIDs. They are not for secrets.

use std::hash::{BuildHasher, RandomState};

/// 64 random bits: the standard library seeds each `RandomState` with new keys.
fn bits() -> u64 {
    RandomState::new().hash_one(0)
}

/// A random number from 0 up to, but not including, 1.
pub fn fraction() -> f64 {
    (bits() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A random (version 4) UUID.
pub fn uuid() -> String {
    let (high, low) = (bits(), bits());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_their_range_and_differ() {
        let some: Vec<f64> = (0..1000).map(|_| fraction()).collect();
        assert!(some.iter().all(|x| (0.0..1.0).contains(x)));
        assert!(some.iter().any(|x| *x < 0.1) && some.iter().any(|x| *x > 0.9));
    }

    #[test]
    fn a_uuid_has_version_and_variant() {
        let one = uuid();
        let lengths: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{one}");
        assert_eq!(one.as_bytes().get(14), Some(&b'4'), "{one}");
        assert!(matches!(one.as_bytes().get(19), Some(b'8' | b'9' | b'a' | b'b')), "{one}");
        assert_ne!(one, uuid());
    }
}
