//! Mutations of an input: its bits, bytes, lines and words.

/// A pseudorandom number generator (splitmix64); the same seed gives the same sequence.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number of the sequence.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; zero if `end` is zero.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.number() % end as u64) as usize }
    }

    /// A random element of a slice; none if it is empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// The maximum length of an input in bytes.
const MAX_INPUT_BYTES: usize = 1 << 16;

/// Words that mutations insert: texts with which parsers have failed before.
const DICTIONARY: &[&str] = &[
    "0",
    "1",
    "-1",
    "00",
    "0x1f",
    "0o17",
    "1_000",
    "2147483647",
    "2147483648",
    "-2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "99999999999999999999999999999999999999999999",
    "1e400",
    "1e-400",
    "0.1",
    ".5",
    "5.",
    "1e3",
    "1E",
    "1Ei",
    "100n",
    "1m",
    "1.5Gi",
    "-0",
    "NaN",
    "Infinity",
    ".inf",
    ".nan",
    "~",
    "null",
    "true",
    "yes",
    "{}",
    "[]",
    "\"\"",
    "''",
    "&a",
    "*a",
    "<<",
    "---",
    "...",
    "|",
    ">-",
    "%",
    "@",
    "\t",
    "\u{0}",
    "\u{feff}",
    "ß",
    "😀",
    "\u{85}",
    "2026-01-05T09:00:00Z",
    "9999-12-31T23:59:59Z",
    "-009999-01-01T00:00:00Z",
    "1ms",
    "24h",
    "9600h",
    "1d",
    "0s",
    "-1s",
    "PT1S",
    "in (a,b)",
    "notin ()",
    "!=",
    "==",
    "!",
    ",",
    "Max",
    "Min",
    "Disabled",
    "Pods",
    "Percent",
    "Utilization",
    "AverageValue",
    "Value",
    "average",
    "holdCurrent",
    "static",
    "metadata",
    "spec",
];

/// `base` with one to five mutations, some of which insert parts of `other`.
pub fn mutate(random: &mut Random, base: &[u8], other: &[u8]) -> Vec<u8> {
    let mut input = base.to_vec();
    for _ in 0..=random.below(4) {
        input = mutate_once(random, input, other);
        input.truncate(MAX_INPUT_BYTES);
    }
    input
}

fn mutate_once(random: &mut Random, mut input: Vec<u8>, other: &[u8]) -> Vec<u8> {
    let at = random.below(input.len());
    match random.below(10) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
            input
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.number() as u8;
            }
            input
        }
        2 => splice(&input, at, at + random.below(16), b""),
        3 => {
            let part = input.iter().skip(at).take(random.below(64)).copied().collect::<Vec<_>>();
            splice(&input, at, at, &part)
        }
        4 => {
            let word = random.pick(DICTIONARY).copied().unwrap_or_default();
            splice(&input, at, at, word.as_bytes())
        }
        5 | 6 => {
            let (from, to) = token(&input, at);
            let word = random.pick(DICTIONARY).copied().unwrap_or_default();
            splice(&input, from, to, word.as_bytes())
        }
        7 => {
            let (from, to) = token(&input, at);
            let (start, end) = token(other, random.below(other.len()));
            splice(&input, from, to, other.get(start..end).unwrap_or_default())
        }
        8 => {
            let cut = random.below(other.len());
            let mut joined = input.get(..at).unwrap_or_default().to_vec();
            joined.extend_from_slice(other.get(cut..).unwrap_or_default());
            joined
        }
        _ => mutate_lines(random, &input),
    }
}

/// Removes, duplicates or swaps one line.
fn mutate_lines(random: &mut Random, input: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
    let (from, to) = (random.below(lines.len()), random.below(lines.len()));
    if let Some(line) = lines.get(from).copied() {
        match random.below(3) {
            0 => drop(lines.remove(from)),
            1 => lines.insert(to, line),
            _ => lines.swap(from, to),
        }
    }
    lines.concat()
}

/// The range of the word around a position.
fn token(input: &[u8], at: usize) -> (usize, usize) {
    let word = |b: &u8| b.is_ascii_alphanumeric() || b"._-+/".contains(b);
    let before = input.iter().take(at).rev().take_while(|b| word(b)).count();
    let after = input.iter().skip(at).take_while(|b| word(b)).count();
    (at - before.min(at), at + after)
}

/// `input` with the range `from..to` replaced by `by`.
fn splice(input: &[u8], from: usize, to: usize, by: &[u8]) -> Vec<u8> {
    let (from, to) = (from.min(input.len()), to.min(input.len()).max(from.min(input.len())));
    let mut out = input.get(..from).unwrap_or_default().to_vec();
    out.extend_from_slice(by);
    out.extend_from_slice(input.get(to..).unwrap_or_default());
    out
}
