//! The integer under a quantity: 128 bits while they suffice, digits beyond.

use std::cmp::Ordering;
use std::fmt;

use crate::digits::Digits;

/// An exact integer; `Large` is used only for what does not fit `Small`, so equal numbers are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Integer {
    Small(i128),
    Large(Digits),
}

use Integer::{Large, Small};

impl Integer {
    /// Reads ASCII digits.
    pub(crate) fn from_ascii(negative: bool, ascii: impl Iterator<Item = u8> + Clone) -> Self {
        let sign = if negative { -1 } else { 1 };
        let small = ascii
            .clone()
            .try_fold(0_i128, |n, c| n.checked_mul(10)?.checked_add(sign * i128::from(c.wrapping_sub(b'0'))));
        small.map_or_else(|| Digits::from_ascii(negative, ascii).into(), Small)
    }

    pub(crate) fn signum(&self) -> i32 {
        match self {
            Small(n) => n.signum() as i32,
            Large(n) if n.is_negative() => -1,
            Large(_) => 1,
        }
    }

    /// How many decimal digits the number has; none for zero.
    pub(crate) fn len(&self) -> i64 {
        match self {
            Small(n) => n.unsigned_abs().checked_ilog10().map_or(0, |log| i64::from(log) + 1),
            Large(n) => n.len() as i64,
        }
    }

    pub(crate) fn to_i64(&self) -> Option<i64> {
        match self {
            Small(n) => i64::try_from(*n).ok(),
            Large(_) => None,
        }
    }

    /// The low 64 bits of the two's complement.
    pub(crate) fn low_64(&self) -> i64 {
        match self {
            Small(n) => *n as i64,
            Large(n) => n.low_64(),
        }
    }

    /// The nearest float, infinite beyond the range of floats.
    pub(crate) fn to_f64(&self) -> f64 {
        match self {
            Small(n) => *n as f64,
            Large(n) => n.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    pub(crate) fn neg(&self) -> Self {
        match self {
            Small(n) => n.checked_neg().map_or_else(|| Digits::from(*n).neg().into(), Small),
            Large(n) => n.neg().into(),
        }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        if let (Small(a), Small(b)) = (self, other)
            && let Some(sum) = a.checked_add(*b)
        {
            return Small(sum);
        }
        self.digits().add(&other.digits()).into()
    }

    pub(crate) fn mul(&self, by: i64) -> Self {
        if let Small(n) = self
            && let Some(product) = n.checked_mul(i128::from(by))
        {
            return Small(product);
        }
        self.digits().mul(by).into()
    }

    /// Times ten to the power of `places`; the caller bounds `places`.
    pub(crate) fn shift_up(&self, places: i64) -> Self {
        if let Small(n) = self {
            if *n == 0 {
                return Small(0);
            }
            if let Some(product) = power(places).and_then(|p| n.checked_mul(p)) {
                return Small(product);
            }
        }
        self.digits().shift_up(usize::try_from(places).unwrap_or(0)).into()
    }

    /// Divided by ten to the power of `places`, toward zero, and whether that is exact.
    pub(crate) fn shift_down(&self, places: i64) -> (Self, bool) {
        match self {
            Small(n) => power(places).map_or((Small(0), *n == 0), |p| (Small(n / p), n % p == 0)),
            Large(n) => {
                let (quotient, exact) = n.shift_down(usize::try_from(places).unwrap_or(usize::MAX));
                (quotient.into(), exact)
            }
        }
    }

    /// Divided by ten to the power of `places`, away from zero, and whether that is exact.
    pub(crate) fn round_down(&self, places: i64) -> (Self, bool) {
        let (quotient, exact) = self.shift_down(places);
        if exact {
            return (quotient, true);
        }
        (quotient.add(&Small(i128::from(self.signum()))), false)
    }

    /// Without its factors of ten, and how many there were.
    pub(crate) fn without_tens(&self) -> (Self, i64) {
        match self {
            Small(n) => {
                let (n, times) = strip(*n, 10);
                (Small(n), times)
            }
            Large(n) => {
                let times = n.trailing_zeros();
                (n.shift_down(times).0.into(), times as i64)
            }
        }
    }

    /// Without its factors of 1024, and how many there were.
    pub(crate) fn without_1024s(&self) -> (Self, i64) {
        let mut number = self.clone();
        let mut times = 0;
        loop {
            match number {
                Small(n) => {
                    let (n, more) = strip(n, 1024);
                    return (Small(n), times + more);
                }
                Large(ref n) => match n.div(1024) {
                    (quotient, 0) => number = quotient.into(),
                    _ => return (number, times),
                },
            }
            times += 1;
        }
    }

    fn digits(&self) -> Digits {
        match self {
            Small(n) => Digits::from(*n),
            Large(n) => n.clone(),
        }
    }
}

impl From<Digits> for Integer {
    fn from(digits: Digits) -> Self {
        digits.to_i128().map_or(Large(digits), Small)
    }
}

impl From<i64> for Integer {
    fn from(n: i64) -> Self {
        Small(i128::from(n))
    }
}

impl Ord for Integer {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Small(a), Small(b)) => a.cmp(b),
            (Large(a), Large(b)) => a.cmp(b),
            // What does not fit 128 bits is further from zero than what does.
            (Large(a), Small(_)) if a.is_negative() => Ordering::Less,
            (Large(_), Small(_)) => Ordering::Greater,
            (Small(_), Large(b)) if b.is_negative() => Ordering::Greater,
            (Small(_), Large(_)) => Ordering::Less,
        }
    }
}

impl PartialOrd for Integer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Small(n) => match i64::try_from(*n) {
                // Much faster than 128 bits, and the usual case.
                Ok(n) => n.fmt(f),
                Err(_) => n.fmt(f),
            },
            Large(n) => n.fmt(f),
        }
    }
}

/// Ten to the power of `places`, where 128 bits can hold it.
fn power(places: i64) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(places).ok()?)
}

fn strip(mut n: i128, factor: i128) -> (i128, i64) {
    let mut times = 0;
    while n != 0 && n % factor == 0 {
        n /= factor;
        times += 1;
    }
    (n, times)
}

#[cfg(test)]
mod tests;
