//! The packed form of passes: every decision of an autoscaler, in a few bytes each and without loss.
//!
//! A pass is the JSON text of its [`DecisionRecord`](crate::decisions::DecisionRecord). Consecutive passes differ in a few numbers, so
//! the text is split into a *shape* (keys, punctuation, words) and *leaves* (numbers, times, durations, other texts). Shapes and
//! texts are shared by all passes of the process; of the leaves only those are written that differ from their prediction:
//!
//! ```text
//! split    serialize a pass into its shape and its leaves
//! shape    join them again to JSON; shapes and texts that passes share
//! leaf     how a leaf is recognized and printed
//! canonical times and durations in the one form in which they are printed
//! prediction the leaves of a pass, from the pass before it
//! codec    the bytes of one pass, as the difference to the pass before it
//! chunk    up to 64 passes of one autoscaler, readable without others
//! segment  passes of all autoscalers as they are made: a file of a recording, readable up to where it ends
//! ```
//!
//! Because the text is kept and not a selection of fields, a field that is added to a decision is kept too.

mod canonical;
mod chunk;
mod codec;
mod document;
mod leaf;
mod prediction;
mod segment;
mod shape;
mod split;
mod varint;

#[cfg(test)]
mod tests;

pub use chunk::{Chunk, ChunkBuilder, MAX_CHUNK_PASSES, NewestPass, PassReader};
pub use codec::PassTime;
pub use document::{NewPass, PassDocument};
pub use segment::{RecordedPass, SegmentError, SegmentReader, SegmentWriter};
pub use shape::{Shape, SharedTexts};
