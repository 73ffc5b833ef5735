//! Embedded files that are compressed with gzip.

use std::io::Read as _;

use flate2::read::GzDecoder;

/// The bytes of an embedded file; none if it is not valid, which tests of the tables would show.
pub(crate) fn unpacked(file: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match GzDecoder::new(file).read_to_end(&mut bytes) {
        Ok(_) => bytes,
        Err(_) => Vec::new(),
    }
}
