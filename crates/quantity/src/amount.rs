//! The number of a quantity, in the two forms of Kubernetes.
//!
//! Kubernetes computes with a 64-bit mantissa while it can and switches to arbitrary precision for good
//! when it cannot. Which form a number is in decides the flags of `mul` and `round_up`, the last bit of
//! `to_f64` and the rounding of negative numbers, so the form is kept, not only the number.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::integer::Integer;

/// `mantissa × 10^scale`.
#[derive(Clone, Debug)]
pub(crate) enum Amount {
    /// The fast form.
    Narrow { mantissa: i64, scale: i64 },
    /// The arbitrary-precision form.
    Wide { mantissa: Integer, scale: i64 },
}

use Amount::{Narrow, Wide};

/// Zeros are written out up to this many digits.
///
/// Kubernetes has no limit and computes for minutes on `1e1000000000` plus one. Here a sum keeps this
/// many digits (or as many as its longer operand has) and drops lower digits.
pub(crate) const MAX_WRITTEN_DIGITS: i64 = 4096;

/// The finest scale a text can have.
pub(crate) const NANO_SCALE: i64 = -9;

impl Amount {
    pub(crate) const ZERO: Self = Narrow { mantissa: 0, scale: 0 };

    pub(crate) fn signum(&self) -> i32 {
        match self {
            Narrow { mantissa, .. } => mantissa.signum() as i32,
            Wide { mantissa, .. } => mantissa.signum(),
        }
    }

    /// Mantissa and scale, whatever the form.
    pub(crate) fn parts(&self) -> (Integer, i64) {
        match self {
            Narrow { mantissa, scale } => (Integer::from(*mantissa), *scale),
            Wide { mantissa, scale } => (mantissa.clone(), *scale),
        }
    }

    /// The integer `self / 10^scale`, rounded away from zero, or the nearest one that 64 bits can hold.
    pub(crate) fn scaled(&self, scale: i64) -> i64 {
        let places = scale - self.scale();
        match self {
            Narrow { mantissa, .. } if places <= 0 => {
                checked_shift(*mantissa, -places).unwrap_or_else(|| self.extreme())
            }
            Narrow { mantissa, .. } => {
                Integer::from(*mantissa).round_down(places).0.to_i64().unwrap_or_else(|| self.extreme())
            }
            Wide { mantissa, .. } if places <= 0 => {
                let fits = mantissa.to_i64().and_then(|n| checked_shift(n, -places));
                fits.unwrap_or_else(|| self.extreme())
            }
            Wide { mantissa, .. } => match mantissa.round_down(places).0.to_i64() {
                None => self.extreme(),
                Some(_) if self.signum() < 0 => negative_wide(mantissa, places),
                Some(rounded) => rounded,
            },
        }
    }

    /// The float Kubernetes approximates this number by: the nearest one to the mantissa times a power of ten.
    pub(crate) fn to_f64(&self) -> f64 {
        let (base, scale) = match self {
            Narrow { mantissa, scale } => (*mantissa as f64, *scale),
            Wide { mantissa, scale } => (mantissa.to_f64(), *scale),
        };
        if scale == 0 || base == 0.0 {
            return base;
        }
        let product = base * power(scale);
        if product.is_nan() {
            // Infinity times zero. Kubernetes returns NaN; here the number is parsed from its digits.
            let (mantissa, scale) = self.parts();
            return format!("{mantissa}e{scale}").parse().unwrap_or(product);
        }
        product
    }

    pub(crate) fn neg(&self) -> Self {
        match self {
            Narrow { mantissa, scale } => match mantissa.checked_neg() {
                Some(mantissa) => Narrow { mantissa, scale: *scale },
                None => Wide { mantissa: Integer::from(*mantissa).neg(), scale: *scale },
            },
            Wide { mantissa, scale } => Wide { mantissa: mantissa.neg(), scale: *scale },
        }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        if let (Narrow { mantissa: a, scale: a_scale }, Narrow { mantissa: b, scale: b_scale }) =
            (self, other)
        {
            if *b == 0 {
                return self.clone();
            }
            if *a == 0 {
                return other.clone();
            }
            let scale = *a_scale.min(b_scale);
            let sum = checked_shift(*a, a_scale - scale)
                .and_then(|a| a.checked_add(checked_shift(*b, b_scale - scale)?));
            if let Some(mantissa) = sum {
                return Narrow { mantissa, scale };
            }
        }
        let (a, b, scale) = align(self.parts(), other.parts());
        Wide { mantissa: a.add(&b), scale }
    }

    /// The product, and whether its mantissa fits 64 bits.
    pub(crate) fn mul(&self, by: i64) -> (Self, bool) {
        if let Narrow { mantissa, scale } = self {
            if *mantissa == 0 {
                return (self.clone(), true);
            }
            if by == 0 {
                return (Self::ZERO, true);
            }
            // The fast form must be able to show the product as an integer.
            let product = mantissa.checked_mul(by).filter(|product| match scale {
                0.. => checked_shift(*product, *scale).is_some(),
                _ => Integer::from(*product).shift_down(-scale).1,
            });
            if let Some(mantissa) = product {
                return (Narrow { mantissa, scale: *scale }, true);
            }
        }
        let (mantissa, scale) = self.parts();
        let mantissa = mantissa.mul(by);
        let fits = mantissa.to_i64().is_some();
        (Wide { mantissa, scale }, fits)
    }

    /// The number at `scale`, rounded away from zero, and whether that is exact.
    ///
    /// `None`: the fast form is coarse enough already and stays untouched.
    pub(crate) fn round_up(&self, scale: i64) -> Option<(Self, bool)> {
        match self {
            Narrow { scale: own, .. } if *own >= scale => None,
            Narrow { mantissa, scale: own } => {
                let (rounded, exact) = Integer::from(*mantissa).round_down(scale - own);
                let mantissa = rounded.to_i64().unwrap_or_else(|| self.extreme());
                Some((Narrow { mantissa, scale }, exact))
            }
            Wide { mantissa, scale: own } => {
                let (mantissa, scale, exact) = rescale(mantissa, *own, scale);
                Some((Wide { mantissa, scale }, exact))
            }
        }
    }

    fn scale(&self) -> i64 {
        match self {
            Narrow { scale, .. } | Wide { scale, .. } => *scale,
        }
    }

    /// The value at which results saturate.
    fn extreme(&self) -> i64 {
        if self.signum() < 0 { i64::MIN } else { i64::MAX }
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = self.signum();
        let by_sign = sign.cmp(&other.signum());
        if by_sign.is_ne() || sign == 0 {
            return by_sign;
        }
        let ((a, a_scale), (b, b_scale)) = (self.parts(), other.parts());
        // Numbers of different length need no common scale, which could be endless.
        let by_length = (a.len() + a_scale).cmp(&(b.len() + b_scale));
        if by_length.is_ne() {
            return if sign < 0 { by_length.reverse() } else { by_length };
        }
        let scale = a_scale.min(b_scale);
        a.shift_up(a_scale - scale).cmp(&b.shift_up(b_scale - scale))
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Amount {}

impl Hash for Amount {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (mantissa, scale) = self.parts();
        let (mantissa, tens) = mantissa.without_tens();
        mantissa.hash(state);
        if mantissa.signum() != 0 {
            (scale + tens).hash(state);
        }
    }
}

/// Writes a wide number at another scale, rounded away from zero; zeros only within [`MAX_WRITTEN_DIGITS`].
pub(crate) fn rescale(mantissa: &Integer, own: i64, scale: i64) -> (Integer, i64, bool) {
    if own > scale {
        let fits = mantissa.signum() == 0 || mantissa.len() + (own - scale) <= MAX_WRITTEN_DIGITS;
        return if fits {
            (mantissa.shift_up(own - scale), scale, true)
        } else {
            (mantissa.clone(), own, true)
        };
    }
    let (mantissa, exact) = mantissa.round_down(scale - own);
    (mantissa, scale, exact)
}

/// Two mantissas at the finer of the two scales.
fn align((a, a_scale): (Integer, i64), (b, b_scale): (Integer, i64)) -> (Integer, Integer, i64) {
    if a_scale < b_scale {
        let (b, a, scale) = align((b, b_scale), (a, a_scale));
        return (a, b, scale);
    }
    let room = (MAX_WRITTEN_DIGITS.max(b.len()) - a.len()).max(0);
    if a_scale - b_scale <= room || a.signum() == 0 {
        return (a.shift_up(a_scale - b_scale), b, b_scale);
    }
    if b.signum() == 0 {
        return (a, b, a_scale);
    }
    let scale = a_scale - room;
    (a.shift_up(room), b.shift_down(scale - b_scale).0, scale)
}

/// `n × 10^places` if 64 bits can hold it.
fn checked_shift(n: i64, places: i64) -> Option<i64> {
    if n == 0 {
        return Some(0);
    }
    n.checked_mul(10_i64.checked_pow(u32::try_from(places).ok()?)?)
}

/// Rounds a negative number of the wide form as Kubernetes does: one above the quotient, of the low 64 bits.
///
/// Thus `-1.1n` has the value 1. The recorded behaviour is kept; nothing in autoscaling depends on it.
fn negative_wide(mantissa: &Integer, places: i64) -> i64 {
    match u32::try_from(places).ok().and_then(|places| 10_i64.checked_pow(places)) {
        Some(divisor) => {
            let low = mantissa.low_64();
            low / divisor + i64::from(low % divisor != 0)
        }
        None => mantissa.shift_down(places).0.to_i64().unwrap_or(i64::MIN),
    }
}

/// Ten to the power of `scale` as Go's math library computes it, which is not always the nearest float.
fn power(scale: i64) -> f64 {
    const POSITIVE: [f64; 10] = [1e0, 1e32, 1e64, 1e96, 1e128, 1e160, 1e192, 1e224, 1e256, 1e288];
    const NEGATIVE: [f64; 11] =
        [1e0, 1e-32, 1e-64, 1e-96, 1e-128, 1e-160, 1e-192, 1e-224, 1e-256, 1e-288, 1e-320];
    const UNITS: [f64; 32] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
        1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
    ];
    let size = usize::try_from(scale.unsigned_abs()).unwrap_or(usize::MAX);
    let unit = UNITS.get(size % 32).copied().unwrap_or(1.0);
    match scale {
        0..=308 => POSITIVE.get(size / 32).map_or(f64::INFINITY, |coarse| coarse * unit),
        309.. => f64::INFINITY,
        -323..0 => NEGATIVE.get(size / 32).map_or(0.0, |coarse| coarse / unit),
        _ => 0.0,
    }
}
