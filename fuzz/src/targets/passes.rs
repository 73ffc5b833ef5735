//! Segment files of recorded passes.

use api::history::SegmentReader;

/// How many passes of an input are decoded. The number is limited because an input of few bytes can refer to a long text many times.
const MAX_DECODED: usize = 64;

/// The input is a segment file of a recording.
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
}
