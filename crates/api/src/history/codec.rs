//! The bytes of one pass: what differs from a prediction made from the pass before it.
//!
//! ```text
//! flags     1: the shape is another one; 2: the decision equals the one before, measured values aside
//! [shape]   its index, if it is another one
//! time      the time since the pass before, less the time between that and its predecessor
//! number    the same for the number of the pass
//! count     how many leaves differ from their prediction
//! …         of each: how many leaves are in between, and the new value
//! ```
//!
//! A leaf is predicted to stay as it is; a time that moved with the time of the pass, to do so again; and a leaf that was equal to
//! another, to be equal to it again: the value that a metric had is in the evaluation and in the status.

use std::sync::Arc;

use jiff::Timestamp;

use super::leaf::Leaf;
use super::prediction::{LastPass, Prediction};
use super::shape::{Shape, Tables};
use super::varint::{put, put_nanos, put_signed, take, take_bytes, take_nanos, take_signed, take_size};

const OTHER_SHAPE: u8 = 1;
const CONTINUES: u8 = 2;

/// How many leaves before a float are tried as the operands of a division.
const MAX_OPERANDS: usize = 8;
/// Marks a float that is the quotient of two integers before it.
const QUOTIENT: u8 = 0xc0;

/// When a pass was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassTime {
    /// The time of the decision.
    pub at: Timestamp,
    /// The number of the pass among all passes of the process that keeps it, in the order in which they were added.
    pub number: u64,
    /// Whether the decision equals the one before it; measured values may differ.
    pub continues: bool,
}

/// Appends a pass. None if its time is out of range, which no clock is.
pub(super) fn encode(
    out: &mut Vec<u8>,
    last: &mut Option<LastPass>,
    time: PassTime,
    shape: (usize, Arc<Shape>),
    leaves: &[Leaf],
) -> Option<()> {
    let at = i64::try_from(time.at.as_nanosecond()).ok()?;
    let (index, shape) = shape;
    let first = last.is_none();
    let other = last.as_ref().is_none_or(|last| !Arc::ptr_eq(&last.shape, &shape));
    let mut prediction = Prediction::new(last.take(), &shape)?;
    let elapsed = at.wrapping_sub(prediction.at);
    out.push(if other { OTHER_SHAPE } else { 0 } | if time.continues { CONTINUES } else { 0 });
    if other {
        put(out, index as u128);
    }
    put_nanos(out, i128::from(elapsed) - i128::from(prediction.step));
    let numbers = time.number.wrapping_sub(prediction.number).wrapping_sub(prediction.number_step);
    put_signed(out, (numbers as i64).into());
    let start = out.len();
    let (mut count, mut next) = (0_u128, 0);
    for (place, new) in leaves.iter().enumerate() {
        if prediction.is_same(place, *new) {
            continue;
        }
        let predicted = prediction.predict(place, elapsed)?;
        if *new != predicted {
            put(out, (place - next) as u128);
            put_leaf(out, *new, predicted, leaves.get(..place)?);
            (count, next) = (count + 1, place + 1);
        }
        prediction.learn(place, *new, elapsed);
    }
    // The count is known last and comes first.
    let end = out.len();
    put(out, count);
    let length = out.len() - end;
    out.get_mut(start..)?.rotate_right(length);
    *last = Some(prediction.done(shape, at, time.number, first));
    Some(())
}

/// Reads a pass into `last`. None if the bytes are damaged.
pub(super) fn decode(input: &mut &[u8], last: &mut Option<LastPass>, tables: &Tables) -> Option<PassTime> {
    let flags = take_bytes(input, 1)?.first().copied()?;
    let shape = match (flags & OTHER_SHAPE != 0, &*last) {
        (true, _) => tables.shapes.get(take_size(input)?)?.clone(),
        (false, Some(last)) => last.shape.clone(),
        (false, None) => return None,
    };
    let first = last.is_none();
    let mut prediction = Prediction::new(last.take(), &shape)?;
    let elapsed = i64::try_from(take_nanos(input)?.checked_add(prediction.step.into())?).ok()?;
    let at = prediction.at.checked_add(elapsed)?;
    let numbers = i64::try_from(take_signed(input)?).ok()? as u64;
    let number = numbers.wrapping_add(prediction.number).wrapping_add(prediction.number_step);
    let mut count = take(input)?;
    let total = prediction.leaves.len();
    let mut next = if count > 0 { take_size(input)? } else { total };
    for place in 0..total {
        let predicted = prediction.predict(place, elapsed)?;
        let mut new = predicted;
        if place == next && count > 0 {
            new = take_leaf(input, predicted, prediction.leaves.get(..place)?)?;
            count -= 1;
            next = if count > 0 { (place + 1).checked_add(take_size(input)?)? } else { total };
        }
        prediction.learn(place, new, elapsed);
    }
    if count > 0 {
        return None;
    }
    *last = Some(prediction.done(shape, at, number, first));
    let at = Timestamp::from_nanosecond(at.into()).ok()?;
    Some(PassTime { at, number, continues: flags & CONTINUES != 0 })
}

#[inline(never)]
fn put_leaf(out: &mut Vec<u8>, new: Leaf, predicted: Leaf, before: &[Leaf]) {
    match (new, predicted) {
        (Leaf::Int(new), Leaf::Int(was)) => put_signed(out, i128::from(new) - i128::from(was)),
        (Leaf::Time(new), Leaf::Time(was)) | (Leaf::Span(new), Leaf::Span(was)) => {
            put_nanos(out, i128::from(new) - i128::from(was));
        }
        (Leaf::Float(new), Leaf::Float(was)) => put_float(out, new, was, before),
        (Leaf::Text(new), _) => put(out, new.into()),
        // A prediction is of the kind of its leaf.
        _ => {}
    }
}

fn take_leaf(input: &mut &[u8], predicted: Leaf, before: &[Leaf]) -> Option<Leaf> {
    let apart = |was: i64, by: i128| i64::try_from(i128::from(was).checked_add(by)?).ok();
    Some(match predicted {
        Leaf::Int(was) => Leaf::Int(apart(was, take_signed(input)?)?),
        Leaf::Time(was) => Leaf::Time(apart(was, take_nanos(input)?)?),
        Leaf::Span(was) => Leaf::Span(apart(was, take_nanos(input)?)?),
        Leaf::Float(was) => Leaf::Float(take_float(input, was, before)?),
        Leaf::Text(_) => Leaf::Text(u32::try_from(take(input)?).ok()?),
    })
}

/// The integers just before a leaf, nearest first.
fn operands(before: &[Leaf]) -> impl Iterator<Item = (usize, f64)> {
    before.iter().rev().take(MAX_OPERANDS).enumerate().filter_map(|(back, leaf)| match leaf {
        Leaf::Int(value) => Some((back, *value as f64)),
        _ => None,
    })
}

/// A float is often the quotient of two numbers before it, as a ratio is. Otherwise those of its bytes are written that differ.
fn put_float(out: &mut Vec<u8>, new: u64, was: u64, before: &[Leaf]) {
    for (upper, dividend) in operands(before) {
        for (lower, divisor) in operands(before) {
            if (dividend / divisor).to_bits() == new {
                out.push(QUOTIENT | (upper as u8) << 3 | lower as u8);
                return;
            }
        }
    }
    let difference = new ^ was;
    let leading = difference.leading_zeros() / 8;
    let trailing = if difference == 0 { 0 } else { difference.trailing_zeros() / 8 };
    out.push((leading << 4 | trailing) as u8);
    let bytes = difference.to_be_bytes();
    out.extend_from_slice(bytes.get(leading as usize..8 - trailing as usize).unwrap_or_default());
}

fn take_float(input: &mut &[u8], was: u64, before: &[Leaf]) -> Option<u64> {
    let head = take_bytes(input, 1)?.first().copied()?;
    if head & QUOTIENT == QUOTIENT {
        let operand = |back: u8| operands(before).find(|(place, _)| *place == usize::from(back));
        let (dividend, divisor) = (operand(head >> 3 & 7)?.1, operand(head & 7)?.1);
        return Some((dividend / divisor).to_bits());
    }
    let (leading, trailing) = (usize::from(head >> 4), usize::from(head & 15));
    let written = take_bytes(input, 8_usize.checked_sub(leading + trailing)?)?;
    let mut bytes = [0; 8];
    bytes.get_mut(leading..8 - trailing)?.copy_from_slice(written);
    Some(was ^ u64::from_be_bytes(bytes))
}
