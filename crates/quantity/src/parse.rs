//! From text to number: the grammar of docs/spec/hpa.md Appendix A.1 and A.2.

use crate::amount::{Amount, NANO_SCALE, rescale};
use crate::error::ParseError;
use crate::integer::Integer;
use crate::{Format, text};

/// The parts of a text.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    suffix: &'a str,
    /// Whether there is any digit at all, leading zeros included.
    has_digits: bool,
}

/// The factor of a suffix.
enum Unit {
    PowerOfTwo(u32),
    PowerOfTen(i64),
}

/// A parsed quantity; `verbatim` when the text is to be shown as it was written.
pub(crate) struct Parsed {
    pub(crate) amount: Amount,
    pub(crate) format: Format,
    pub(crate) verbatim: bool,
}

/// Digits that a 64-bit mantissa always holds.
const NARROW_DIGITS: usize = 18;

pub(crate) fn parse(text: &str) -> Result<Parsed, ParseError> {
    let parts = split(text)?;
    let (unit, format) = interpret(parts.suffix).ok_or(ParseError::SUFFIX)?;
    if let Some((amount, kept)) = narrow(&parts, &unit) {
        let verbatim = kept && !text::is_canonical(&amount, format, text);
        return Ok(Parsed { amount, format, verbatim });
    }
    if !parts.has_digits {
        return Err(ParseError::NUMBER);
    }
    let (amount, format) = wide(&parts, &unit, format);
    Ok(Parsed { amount, format, verbatim: false })
}

fn split(text: &str) -> Result<Parts<'_>, ParseError> {
    if text.is_empty() {
        return Err(ParseError::FORM);
    }
    let negative = text.starts_with('-');
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, rest) = take(rest, |c| c.is_ascii_digit());
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => take(rest, |c| c.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, rest) = take(suffix, |c| b"eEinumkKMGTP".contains(&c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    if rest.bytes().any(|c| !c.is_ascii_digit()) {
        return Err(ParseError::FORM);
    }
    let whole = digits.trim_start_matches('0');
    // A text that is only a sign is zero, as in Kubernetes; `Ki` is zero too, but `Ei` is an error.
    Ok(Parts { negative, whole, fraction, suffix, has_digits: !digits.is_empty() || !fraction.is_empty() })
}

fn take(text: &str, belongs: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn interpret(suffix: &str) -> Option<(Unit, Format)> {
    let decimal = |exponent| Some((Unit::PowerOfTen(exponent), Format::DecimalSi));
    let binary = |exponent| Some((Unit::PowerOfTwo(exponent), Format::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            // Kubernetes keeps the low 32 bits of a longer exponent; here it is an error.
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((Unit::PowerOfTen(i64::from(exponent)), Format::DecimalExponent))
        }
    }
}

/// The fast form, if the number has few enough digits, and whether Kubernetes keeps its text.
fn narrow(parts: &Parts<'_>, unit: &Unit) -> Option<(Amount, bool)> {
    // A missing number counts as one digit.
    let digits = parts.whole.len().max(1) + parts.fraction.len();
    let fits = match unit {
        Unit::PowerOfTen(_) => digits <= NARROW_DIGITS,
        // Every ten bits take about three digits.
        Unit::PowerOfTwo(bits) => parts.fraction.is_empty() && digits + *bits as usize * 3 / 10 <= 14,
    };
    let scale = match unit {
        Unit::PowerOfTen(exponent) => exponent - parts.fraction.len() as i64,
        Unit::PowerOfTwo(_) => 0,
    };
    if !fits || scale < NANO_SCALE {
        return None;
    }
    let number = parts.digits().fold(0_i64, |n, c| n * 10 + i64::from(c - b'0'));
    let (mantissa, kept) = match unit {
        Unit::PowerOfTwo(bits) => (number.checked_mul(1 << bits)?, number & 7 != 0),
        // Shown as written even with a needless plus, point or capital E; see `Display`.
        Unit::PowerOfTen(_) => {
            let thousands = digits >= 3 && number % 1000 == 0;
            (number, scale % 3 == 0 && !thousands && !parts.whole.is_empty())
        }
    };
    let mantissa = if parts.negative { -mantissa } else { mantissa };
    Some((Amount::Narrow { mantissa, scale }, kept))
}

/// The arbitrary-precision form: never finer than nano, and binary units never beyond 63 bits.
fn wide(parts: &Parts<'_>, unit: &Unit, format: Format) -> (Amount, Format) {
    let mantissa = Integer::from_ascii(parts.negative, parts.digits());
    let point = parts.fraction.len() as i64;
    let (mantissa, scale) = match unit {
        Unit::PowerOfTen(exponent) => (mantissa, exponent - point),
        Unit::PowerOfTwo(bits) => (mantissa.mul(1 << bits), -point),
    };
    if mantissa.signum() == 0 {
        return (Amount::Wide { mantissa, scale }, format);
    }
    // A value below the finest scale is rounded up, so that a request for some of a resource is not zero.
    let (mantissa, scale, _) = rescale(&mantissa, scale, NANO_SCALE);
    let amount = Amount::Wide { mantissa, scale };
    if format != Format::BinarySi {
        return (amount, format);
    }
    let (size, sign) = if parts.negative { (amount.neg(), -1) } else { (amount.clone(), 1) };
    if size > (Amount::Narrow { mantissa: i64::MAX, scale: 0 }) {
        return (Amount::Wide { mantissa: Integer::from(sign * i64::MAX), scale: 0 }, format);
    }
    if size < (Amount::Narrow { mantissa: 1, scale: 0 }) {
        return (amount, Format::DecimalSi);
    }
    (amount, format)
}

impl<'a> Parts<'a> {
    fn digits(&self) -> impl Iterator<Item = u8> + Clone + use<'a> {
        self.whole.bytes().chain(self.fraction.bytes())
    }
}
