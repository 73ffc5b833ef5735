//! Integers of variable length, seven bits a byte, least significant first.

/// Appends a number. It is called from many places: one copy of the loop keeps their code small enough for the processor's cache.
#[inline(never)]
pub(super) fn put(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number. None if the input ends within it or it is too long.
pub(super) fn take(input: &mut &[u8]) -> Option<u128> {
    let mut value = 0_u128;
    for shift in (0..128).step_by(7) {
        let (first, rest) = input.split_first()?;
        *input = rest;
        value |= u128::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads a number that has to fit into `usize`.
pub(super) fn take_size(input: &mut &[u8]) -> Option<usize> {
    usize::try_from(take(input)?).ok()
}

/// Reads so many bytes.
pub(super) fn take_bytes<'a>(input: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(taken)
}

/// Appends a signed number; small ones of either sign are short.
pub(super) fn put_signed(out: &mut Vec<u8>, value: i128) {
    put(out, ((value << 1) ^ (value >> 127)) as u128);
}

/// Reads a signed number.
pub(super) fn take_signed(input: &mut &[u8]) -> Option<i128> {
    take(input).map(|value| (value >> 1) as i128 ^ -((value & 1) as i128))
}

/// The units of a duration, in nanoseconds.
const UNITS: [i128; 4] = [1, 1_000, 1_000_000, 1_000_000_000];

/// Appends a duration in nanoseconds, in the largest unit that is exact.
#[inline(never)]
pub(super) fn put_nanos(out: &mut Vec<u8>, nanos: i128) {
    let unit = UNITS.iter().rposition(|unit| nanos % unit == 0).unwrap_or(0);
    let count = nanos / UNITS.get(unit).copied().unwrap_or(1);
    let zigzag = ((count << 1) ^ (count >> 127)) as u128;
    put(out, zigzag << 2 | unit as u128);
}

/// Reads a duration in nanoseconds.
pub(super) fn take_nanos(input: &mut &[u8]) -> Option<i128> {
    let value = take(input)?;
    let unit = UNITS.get((value & 3) as usize)?;
    let zigzag = value >> 2;
    ((zigzag >> 1) as i128 ^ -((zigzag & 1) as i128)).checked_mul(*unit)
}
