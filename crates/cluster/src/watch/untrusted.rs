//! Decodes lists and watches from bytes, for fuzzing.

use super::View;
use super::event::{Event, read};
use super::lines::Lines;
use super::list::{List, ListPiece};
use super::source::WatchSource;

/// Decodes a list that arrives in chunks of this size; returns the number of its items if it is complete and valid.
pub fn count_items(bytes: &[u8], chunk: usize) -> Option<usize> {
    let mut list = List::default();
    let mut chunks = bytes.chunks(chunk.max(1));
    let mut items = 0;
    loop {
        match list.next().ok()? {
            ListPiece::More => match chunks.next() {
                Some(chunk) => list.push(chunk),
                None => list.end(),
            },
            ListPiece::Begin(_) => {}
            ListPiece::Item(_) => items += 1,
            ListPiece::End => return Some(items),
        }
    }
}

/// Decodes the lines of a watch; returns the number of events before the first failure.
pub fn count_events<T: View>(bytes: &[u8], source: &WatchSource) -> usize {
    let (mut lines, mut scratch, mut events) = (Lines::default(), Vec::new(), 0);
    lines.push(bytes);
    while let Ok(Some(line)) = lines.next() {
        match read::<T>(&line, source, &mut scratch) {
            Ok(Event::Change(..) | Event::Known(_) | Event::Bookmark(_) | Event::Other) => events += 1,
            Err(_) => break,
        }
    }
    events
}
