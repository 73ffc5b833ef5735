//! Integers too large for 128 bits, as decimal digits.
//!
//! Quantities only ever scale by ten, add, and multiply or divide by small numbers, so decimal digits
//! make every costly operation (text, rounding, alignment) a copy.

use std::cmp::Ordering;
use std::fmt;
use std::iter::repeat_n;

/// A signed integer of any length: its digits, most significant first, without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digits {
    negative: bool,
    digits: Vec<u8>,
}

impl Digits {
    fn new(negative: bool, digits: Vec<u8>) -> Self {
        let digits: Vec<u8> = match digits.first() {
            Some(0) => digits.into_iter().skip_while(|&d| d == 0).collect(),
            _ => digits,
        };
        Self { negative: negative && !digits.is_empty(), digits }
    }

    pub(crate) fn from_ascii(negative: bool, ascii: impl Iterator<Item = u8>) -> Self {
        Self::new(negative, ascii.map(|c| c.wrapping_sub(b'0')).collect())
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative
    }

    pub(crate) fn len(&self) -> usize {
        self.digits.len()
    }

    pub(crate) fn trailing_zeros(&self) -> usize {
        self.digits.iter().rev().take_while(|&&d| d == 0).count()
    }

    pub(crate) fn to_i128(&self) -> Option<i128> {
        // 39 digits is the length of the largest 128-bit number.
        if self.digits.len() > 39 {
            return None;
        }
        let sign = if self.negative { -1 } else { 1 };
        self.digits.iter().try_fold(0_i128, |n, &d| n.checked_mul(10)?.checked_add(sign * i128::from(d)))
    }

    /// The low 64 bits of the two's complement.
    pub(crate) fn low_64(&self) -> i64 {
        let magnitude = self.digits.iter().fold(0_u64, |n, &d| n.wrapping_mul(10).wrapping_add(u64::from(d)));
        (if self.negative { magnitude.wrapping_neg() } else { magnitude }) as i64
    }

    pub(crate) fn neg(&self) -> Self {
        Self { negative: !self.negative, digits: self.digits.clone() }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        if self.negative == other.negative {
            return Self::new(self.negative, sum(&self.digits, &other.digits));
        }
        match magnitude_cmp(&self.digits, &other.digits) {
            Ordering::Less => Self::new(other.negative, difference(&other.digits, &self.digits)),
            _ => Self::new(self.negative, difference(&self.digits, &other.digits)),
        }
    }

    pub(crate) fn mul(&self, by: i64) -> Self {
        let factor = u128::from(by.unsigned_abs());
        let mut carry = 0_u128;
        let mut reversed = Vec::with_capacity(self.digits.len() + 20);
        for &d in self.digits.iter().rev() {
            carry += u128::from(d) * factor;
            reversed.push((carry % 10) as u8);
            carry /= 10;
        }
        while carry > 0 {
            reversed.push((carry % 10) as u8);
            carry /= 10;
        }
        reversed.reverse();
        Self::new(self.negative != (by < 0), reversed)
    }

    /// Times ten to the power of `places`.
    pub(crate) fn shift_up(&self, places: usize) -> Self {
        let mut digits = self.digits.clone();
        digits.extend(repeat_n(0, places));
        Self::new(self.negative, digits)
    }

    /// Divided by ten to the power of `places`, toward zero, and whether nothing was cut off.
    pub(crate) fn shift_down(&self, places: usize) -> (Self, bool) {
        let keep = self.digits.len().saturating_sub(places);
        let exact = self.digits.iter().skip(keep).all(|&d| d == 0);
        (Self::new(self.negative, self.digits.iter().take(keep).copied().collect()), exact)
    }

    /// Divided by `divisor`, toward zero, and the magnitude of the remainder.
    pub(crate) fn div(&self, divisor: u32) -> (Self, u32) {
        let divisor = u64::from(divisor.max(1));
        let mut rest = 0_u64;
        let mut digits = Vec::with_capacity(self.digits.len());
        for &d in &self.digits {
            rest = rest * 10 + u64::from(d);
            digits.push((rest / divisor) as u8);
            rest %= divisor;
        }
        (Self::new(self.negative, digits), rest as u32)
    }
}

impl From<i128> for Digits {
    fn from(n: i128) -> Self {
        Self::from_ascii(n < 0, n.unsigned_abs().to_string().into_bytes().into_iter())
    }
}

impl Ord for Digits {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => magnitude_cmp(&self.digits, &other.digits),
            (true, true) => magnitude_cmp(&other.digits, &self.digits),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

impl PartialOrd for Digits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.digits.iter().map(|&d| char::from(b'0' + d)).collect();
        f.pad_integral(!self.negative, "", if text.is_empty() { "0" } else { &text })
    }
}

fn magnitude_cmp(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn sum(a: &[u8], b: &[u8]) -> Vec<u8> {
    let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
    let mut carry = 0;
    let mut reversed = Vec::with_capacity(long.len() + 1);
    for (x, y) in long.iter().rev().zip(short.iter().rev().chain(std::iter::repeat(&0))) {
        let digit = x + y + carry;
        carry = digit / 10;
        reversed.push(digit % 10);
    }
    reversed.push(carry);
    reversed.reverse();
    reversed
}

/// `large - small`, where `large` is not the smaller one.
fn difference(large: &[u8], small: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let mut reversed = Vec::with_capacity(large.len());
    for (x, y) in large.iter().rev().zip(small.iter().rev().chain(std::iter::repeat(&0))) {
        let digit = 10 + x - y - borrow;
        borrow = u8::from(digit < 10);
        reversed.push(digit % 10);
    }
    reversed.reverse();
    reversed
}
