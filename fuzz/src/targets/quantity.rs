//! Quantities: parsing, printing and arithmetic.

use quantity::{Format, Quantity};

/// The input is two quantities, one on each line.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    let first = check_quantity(first);
    let second = check_quantity(second);
    if let (Some(a), Some(b)) = (first, second) {
        check_arithmetic(&a, &b);
    }
}

fn check_quantity(text: &str) -> Option<Quantity> {
    let _ = Quantity::from_json_text(text);
    let quantity = Quantity::parse(text).ok()?;
    let canonical = quantity.canonical();
    // The canonical form of a canonical text is the same text. A number that is too large for every unit may have no text that can be parsed.
    if let Ok(again) = Quantity::parse(&canonical) {
        assert_eq!(again.canonical(), canonical, "{text}");
    }
    let json = serde_json::to_string(&quantity).unwrap_or_default();
    let _ = serde_json::from_str::<Quantity>(&json);
    let _ =
        (quantity.value(), quantity.milli_value(), quantity.as_f64(), quantity.sign(), quantity.is_zero());
    for scale in [-9, -3, 0, 3, 9, 18, 100] {
        let _ = quantity.scaled_value(scale);
        quantity.clone().round_up(scale);
    }
    for format in [Format::DecimalSi, Format::BinarySi, Format::DecimalExponent] {
        let _ = Quantity::from_milli(quantity.milli_value(), format).to_string();
    }
    Some(quantity)
}

fn check_arithmetic(a: &Quantity, b: &Quantity) {
    let mut sum = a.clone();
    sum.add(b);
    let mut back = sum.clone();
    back.sub(b);
    // Sums are exact up to some thousands of digits, and are rounded beyond that, by design.
    if [a, b].iter().all(|q| q.as_f64().abs() < 1e300) {
        assert_eq!(&back, a, "{a} + {b} - {b}");
    }
    assert_eq!(a.cmp(b), b.cmp(a).reverse());
    let mut product = a.clone();
    product.mul(b.value());
    product.neg();
    let _ = (sum.to_string(), product.to_string());
}
