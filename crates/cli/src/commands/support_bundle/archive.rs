//! A tar archive (ustar), compressed with gzip.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;

/// The size of a block of an archive.
const BLOCK_BYTES: usize = 512;
/// The longest name of a file in the header.
const MAX_NAME_BYTES: usize = 100;

/// A file of the archive.
pub(super) struct BundleFile {
    /// Its name, at most 100 bytes.
    pub(super) name: String,
    pub(super) text: String,
}

/// The compressed archive.
pub(super) fn packed(files: &[BundleFile], now: Timestamp) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for BundleFile { name, text } in files {
        encoder.write_all(&header(name, text.len(), now))?;
        encoder.write_all(text.as_bytes())?;
        encoder.write_all(&vec![0; text.len().next_multiple_of(BLOCK_BYTES) - text.len()])?;
    }
    // Two empty blocks end an archive.
    encoder.write_all(&[0; 2 * BLOCK_BYTES])?;
    encoder.finish()
}

/// The header of a file that its owner may read.
fn header(name: &str, size: usize, now: Timestamp) -> Vec<u8> {
    let name: String = name.chars().filter(char::is_ascii).take(MAX_NAME_BYTES - 1).collect();
    let before = format!(
        "{name:\0<100}0000600\x000000000\x000000000\x00{size:011o}\x00{:011o}\x00",
        now.as_second().max(0)
    );
    let after = format!("0{:\0<100}ustar\x0000{:\0<247}", "", "");
    // The checksum is that of the header with spaces in its place.
    let sum: u32 = before.bytes().chain([b' '; 8]).chain(after.bytes()).map(u32::from).sum();
    format!("{before}{sum:06o}\x00 {after}").into_bytes()
}
