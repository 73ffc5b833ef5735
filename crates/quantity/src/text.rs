//! From number to text: the canonical form of docs/spec/hpa.md Appendix A.4.

use std::fmt::{self, Write};

use crate::Format;
use crate::amount::{Amount, MAX_WRITTEN_DIGITS};
use crate::integer::Integer;

/// Writes the number with the largest unit that leaves an integer.
pub(crate) fn write(amount: &Amount, format: Format, out: &mut impl Write) -> fmt::Result {
    if amount.signum() == 0 {
        return out.write_char('0');
    }
    if let Amount::Narrow { mantissa, scale } = *amount
        && let Some((number, unit)) = narrow(mantissa, scale, format)
    {
        write!(out, "{number}")?;
        return out.write_str(unit);
    }
    if format == Format::BinarySi && !is_small(amount) {
        let (mantissa, scale) = amount.parts();
        if mantissa.len() + scale > MAX_WRITTEN_DIGITS {
            // Kubernetes writes all digits.
            return write_decimal(&mantissa, scale, Format::DecimalExponent, out);
        }
        if let Some(integer) = integer(&mantissa, scale) {
            return write_binary(amount, &integer, out);
        }
    }
    let (mantissa, scale) = amount.parts();
    let format = if format == Format::BinarySi { Format::DecimalSi } else { format };
    write_decimal(&mantissa, scale, format, out)
}

/// Number and unit where 64 bits suffice to find them, which is much faster and the usual case.
pub(crate) fn narrow(mut mantissa: i64, scale: i64, format: Format) -> Option<(i64, &'static str)> {
    if mantissa == 0 {
        return Some((0, ""));
    }
    match format {
        Format::DecimalExponent => return None,
        Format::BinarySi if scale != 0 || mantissa == i64::MIN => return None,
        Format::BinarySi if mantissa.unsigned_abs() >= 1024 => {
            let times = mantissa.trailing_zeros() / 10;
            return Some((mantissa >> (times * 10), binary_unit(times.into())));
        }
        Format::BinarySi | Format::DecimalSi => {}
    }
    let mut exponent = scale;
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent = exponent.checked_add(1)?;
    }
    let excess = exponent.rem_euclid(3);
    let factor = match excess {
        0 => 1,
        1 => 10,
        _ => 100,
    };
    Some((mantissa.checked_mul(factor)?, decimal_unit(exponent.checked_sub(excess)?)))
}

/// Whether `text` is what [`write`] would write; compares without allocating.
pub(crate) fn is_canonical(amount: &Amount, format: Format, text: &str) -> bool {
    let mut rest = Expected(text);
    write(amount, format, &mut rest).is_ok() && rest.0.is_empty()
}

/// A sink that accepts only the expected text.
struct Expected<'a>(&'a str);

impl Write for Expected<'_> {
    fn write_str(&mut self, written: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(written).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// Whether binary units are not used.
fn is_small(amount: &Amount) -> bool {
    let bound = |mantissa| Amount::Narrow { mantissa, scale: 0 };
    *amount > bound(-1024) && *amount < bound(1024)
}

fn integer(mantissa: &Integer, scale: i64) -> Option<Integer> {
    if scale >= 0 {
        return Some(mantissa.shift_up(scale));
    }
    let (integer, exact) = mantissa.shift_down(-scale);
    exact.then_some(integer)
}

fn write_binary(amount: &Amount, integer: &Integer, out: &mut impl Write) -> fmt::Result {
    // The smallest mantissa has no positive counterpart, and Kubernetes finds no factors in it.
    if matches!(amount, Amount::Narrow { mantissa: i64::MIN, scale: 0 }) {
        return write!(out, "{integer}");
    }
    let (number, times) = integer.without_1024s();
    write!(out, "{number}")?;
    out.write_str(binary_unit(times))
}

fn binary_unit(times: i64) -> &'static str {
    match times {
        1 => "Ki",
        2 => "Mi",
        3 => "Gi",
        4 => "Ti",
        5 => "Pi",
        6 => "Ei",
        // There is nothing beyond Ei, and Kubernetes 1.36 writes nothing then.
        _ => "",
    }
}

fn write_decimal(mantissa: &Integer, scale: i64, format: Format, out: &mut impl Write) -> fmt::Result {
    let (mantissa, tens) = mantissa.without_tens();
    let exponent = scale + tens;
    let excess = exponent.rem_euclid(3);
    write!(out, "{}", mantissa.shift_up(excess))?;
    let exponent = exponent - excess;
    if format == Format::DecimalExponent {
        return if exponent == 0 { Ok(()) } else { write!(out, "e{exponent}") };
    }
    out.write_str(decimal_unit(exponent))
}

fn decimal_unit(exponent: i64) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        // There is no unit for these, and Kubernetes 1.36 writes none: `1000E` becomes `1`.
        _ => "",
    }
}
