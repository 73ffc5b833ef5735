//! Changes to an input: bytes, lines and whole words.

/// A small generator of random numbers (splitmix64); the same start gives the same sequence.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; zero if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.number() % end as u64) as usize }
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// Longest input.
const LONGEST: usize = 1 << 16;

/// Words that parsers have failed on before.
const WORDS: &[&str] = &[
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

/// `base` with a few changes; `other` lends parts.
pub fn mutate(random: &mut Random, base: &[u8], other: &[u8]) -> Vec<u8> {
    let mut input = base.to_vec();
    for _ in 0..=random.below(4) {
        input = change(random, input, other);
        input.truncate(LONGEST);
    }
    input
}

fn change(random: &mut Random, mut input: Vec<u8>, other: &[u8]) -> Vec<u8> {
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
            let word = random.pick(WORDS).copied().unwrap_or_default();
            splice(&input, at, at, word.as_bytes())
        }
        5 | 6 => {
            let (from, to) = token(&input, at);
            let word = random.pick(WORDS).copied().unwrap_or_default();
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
        _ => lines(random, &input),
    }
}

/// One line removed, doubled or moved.
fn lines(random: &mut Random, input: &[u8]) -> Vec<u8> {
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

/// The word around a place.
fn token(input: &[u8], at: usize) -> (usize, usize) {
    let word = |b: &u8| b.is_ascii_alphanumeric() || b"._-+/".contains(b);
    let before = input.iter().take(at).rev().take_while(|b| word(b)).count();
    let after = input.iter().skip(at).take_while(|b| word(b)).count();
    (at - before.min(at), at + after)
}

/// `input` with `from..to` replaced.
fn splice(input: &[u8], from: usize, to: usize, by: &[u8]) -> Vec<u8> {
    let (from, to) = (from.min(input.len()), to.min(input.len()).max(from.min(input.len())));
    let mut out = input.get(..from).unwrap_or_default().to_vec();
    out.extend_from_slice(by);
    out.extend_from_slice(input.get(to..).unwrap_or_default());
    out
}
