//! Exact Kubernetes quantities: parse, canonical text, milli-values, arithmetic.
//!
//! A quantity is a decimal number with a unit suffix: `100m`, `1.5Gi`, `12e6`. It behaves like
//! `resource.Quantity` of Kubernetes 1.36, whose recorded answers this crate is checked against:
//!
//! ```
//! use quantity::Quantity;
//!
//! let mut memory: Quantity = "1.5Gi".parse()?;
//! assert_eq!(memory.to_string(), "1536Mi");
//! memory.add(&"512Mi".parse()?);
//! assert_eq!(memory.to_string(), "2Gi");
//! assert_eq!(Quantity::parse("0.1")?.milli_value(), 100);
//! # Ok::<(), quantity::ParseError>(())
//! ```
//!
//! Deliberate differences, all outside what a cluster contains:
//!
//! - [`Quantity::value`] and its siblings saturate where Kubernetes wraps around or returns zero.
//! - An exponent must fit 32 bits; Kubernetes keeps its low 32 bits.
//! - Zeros are written out up to 4096 digits: a sum of `1e1000000` and `1` is cut off below that many
//!   digits, and a binary quantity beyond them is written with an exponent. Kubernetes does not return.
//! - Negating the most negative 64-bit number is exact, and no float is ever NaN.

mod amount;
mod digits;
mod error;
mod integer;
#[cfg(feature = "serde")]
mod json;
mod parse;
mod text;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use amount::Amount;
pub use error::ParseError;

/// An exact decimal number that remembers in which units to show itself.
///
/// Equality, order and hash are those of the number: `1Ki` equals `1024`. Ordinary quantities do not
/// allocate. The default is zero.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text as it was written, where it is shown and differs from the canonical one.
    verbatim: Option<Box<str>>,
}

/// The units a quantity is shown in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of 1000: `12M`.
    #[default]
    DecimalSi,
    /// Powers of 1024: `12Mi`.
    BinarySi,
    /// Exponents of ten: `12e6`.
    DecimalExponent,
}

impl Quantity {
    /// Reads a quantity; surrounding space is an error.
    ///
    /// More than nine decimal places are rounded away from zero, and binary units end at 2^63−1.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let parse::Parsed { amount, format, verbatim } = parse::parse(text)?;
        Ok(Self { amount, format, verbatim: verbatim.then(|| text.into()) })
    }

    /// Reads a quantity from the raw text of a JSON value: a string (trimmed), a number, or null for zero.
    ///
    /// As in Kubernetes the string is not unescaped, so `"\u0031"` is an error.
    pub fn from_json_text(json: &str) -> Result<Self, ParseError> {
        let json = json.trim();
        if json == "null" {
            return Ok(Self::default());
        }
        let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        Self::parse(inner.unwrap_or(json).trim())
    }

    /// The integer `value`.
    pub fn new(value: i64, format: Format) -> Self {
        Self::from_scaled(value, 0, format)
    }

    /// `milli` thousandths.
    ///
    /// ```
    /// # use quantity::{Format, Quantity};
    /// assert_eq!(Quantity::from_milli(20_000, Format::DecimalSi).to_string(), "20");
    /// assert_eq!(Quantity::from_milli(157_286_400_000, Format::BinarySi).to_string(), "150Mi");
    /// ```
    pub fn from_milli(milli: i64, format: Format) -> Self {
        Self::from_scaled(milli, -3, format)
    }

    /// `n × 10^scale`.
    pub fn from_scaled(n: i64, scale: i32, format: Format) -> Self {
        Self { amount: Amount::Narrow { mantissa: n, scale: scale.into() }, format, verbatim: None }
    }

    /// The units this quantity is shown in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The integer next to the number, away from zero; saturates.
    ///
    /// Negative numbers outside the 64-bit fast form round as Kubernetes does, which is not always
    /// away from zero.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// The number in thousandths, rounded like [`Quantity::value`].
    ///
    /// ```
    /// # use quantity::{Format, Quantity};
    /// assert_eq!(Quantity::parse("1.5")?.milli_value(), 1500);
    /// assert_eq!(Quantity::parse("1n")?.milli_value(), 1);
    /// assert_eq!(Quantity::parse("10E")?.milli_value(), i64::MAX);
    /// # Ok::<(), quantity::ParseError>(())
    /// ```
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    /// The number in units of `10^scale`, rounded like [`Quantity::value`].
    pub fn scaled_value(&self, scale: i32) -> i64 {
        self.amount.scaled(scale.into())
    }

    /// The number as a float: the mantissa times a power of ten, each rounded (docs/spec/hpa.md Appendix A.5).
    pub fn as_f64(&self) -> f64 {
        self.amount.to_f64()
    }

    /// −1, 0 or 1.
    pub fn sign(&self) -> i32 {
        self.amount.signum()
    }

    /// Whether the number is zero.
    pub fn is_zero(&self) -> bool {
        self.sign() == 0
    }

    /// Adds; a zero takes over the format of what is added.
    pub fn add(&mut self, other: &Self) {
        self.adopt_format(other);
        self.set(self.amount.add(&other.amount));
    }

    /// Subtracts; a zero takes over the format of what is subtracted.
    pub fn sub(&mut self, other: &Self) {
        self.adopt_format(other);
        self.set(self.amount.add(&other.amount.neg()));
    }

    /// Changes the sign.
    pub fn neg(&mut self) {
        self.set(self.amount.neg());
    }

    /// Multiplies; false when the mantissa of the product, which is exact all the same, exceeds 64 bits.
    pub fn mul(&mut self, by: i64) -> bool {
        let (product, fits) = self.amount.mul(by);
        self.set(product);
        fits
    }

    /// Rounds away from zero to a multiple of `10^scale`; false when that changed the number.
    pub fn round_up(&mut self, scale: i32) -> bool {
        let Some((rounded, exact)) = self.amount.round_up(scale.into()) else { return true };
        self.set(rounded);
        exact
    }

    /// Number and unit of its text, where 64 bits suffice: what writes many of them need not go through a formatter.
    pub fn short(&self) -> Option<(i64, &'static str)> {
        match (&self.verbatim, &self.amount) {
            (None, Amount::Narrow { mantissa, scale }) => text::narrow(*mantissa, *scale, self.format),
            _ => None,
        }
    }

    /// The canonical text: the largest unit that leaves an integer, whatever was once parsed.
    ///
    /// As in Kubernetes 1.36 there is no unit beyond `E` and `Ei`, and none is written: `1000E` gives `1`.
    ///
    /// ```
    /// # use quantity::Quantity;
    /// let quantity = Quantity::parse("+1.500")?;
    /// assert_eq!(quantity.to_string(), "+1.500");
    /// assert_eq!(quantity.canonical(), "1500m");
    /// # Ok::<(), quantity::ParseError>(())
    /// ```
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = text::write(&self.amount, self.format, &mut out);
        out
    }

    fn adopt_format(&mut self, other: &Self) {
        if self.is_zero() {
            self.format = other.format;
        }
    }

    fn set(&mut self, amount: Amount) {
        self.amount = amount;
        self.verbatim = None;
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self { amount: Amount::ZERO, format: Format::default(), verbatim: None }
    }
}

impl FromStr for Quantity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// The text as it was written where Kubernetes keeps it (`+1`, `1.500`, `1E3`), else the canonical one.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verbatim {
            Some(text) => f.pad(text),
            None if f.width().is_some() => f.pad(&self.canonical()),
            None => text::write(&self.amount, self.format, f),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.amount.hash(state);
    }
}

#[cfg(test)]
mod tests;
