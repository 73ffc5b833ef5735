//! SHA-2 of the cryptography library that TLS uses.

use api::text::hex;
use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384;

fn hash(suite: SupportedCipherSuite, bytes: &[u8]) -> Vec<u8> {
    suite.tls13().map(|suite| suite.common.hash_provider.hash(bytes).as_ref().to_vec()).unwrap_or_default()
}

/// SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> Vec<u8> {
    hash(TLS13_AES_128_GCM_SHA256, bytes)
}

/// SHA-384 in upper-case hexadecimal digits, for ETags of documents.
pub(crate) fn tag(bytes: &[u8]) -> String {
    hex(&hash(TLS13_AES_256_GCM_SHA384, bytes)).to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(hex(&sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(tag(b"").starts_with("38B060A751AC9638"));
    }
}
