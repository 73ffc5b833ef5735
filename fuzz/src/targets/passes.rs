//! Recordings of passes and chunks of them, which come from disks and other replicas.

use api::history::{Chunk, SegmentReader};

/// How many passes of an input are decoded: an input of few bytes can refer to a long text many times.
const MAX_DECODED: usize = 64;

/// Reads a file of a recording, and the same bytes as chunks.
pub fn run(data: &[u8]) {
    if let Ok(mut reader) = SegmentReader::new(data) {
        let mut before = reader.rest();
        for _ in 0..MAX_DECODED {
            if reader.advance().is_none() {
                break;
            }
            assert!(reader.rest() < before, "a pass without bytes");
            before = reader.rest();
            drop(reader.record());
        }
    }
    let mut input = data;
    while let Ok(chunk) = Chunk::parse(&mut input) {
        let mut reader = chunk.read();
        let passes = std::iter::from_fn(|| reader.advance().map(|_| drop(reader.document()))).count();
        assert_eq!(passes as u32, chunk.len(), "a chunk that was checked has all its passes");
    }
}
