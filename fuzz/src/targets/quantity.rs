//! Quantities: parse, print, arithmetic.

use quantity::{Format, Quantity};

/// Two quantities, one on each line.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    let first = one(first);
    let second = one(second);
    if let (Some(a), Some(b)) = (first, second) {
        together(&a, &b);
    }
}

fn one(text: &str) -> Option<Quantity> {
    let _ = Quantity::from_json_text(text);
    let quantity = Quantity::parse(text).ok()?;
    let canonical = quantity.canonical();
    // A canonical text is canonical. (It may not read back where the number is beyond every unit.)
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

fn together(a: &Quantity, b: &Quantity) {
    let mut sum = a.clone();
    sum.add(b);
    let mut back = sum.clone();
    back.sub(b);
    // Sums keep some thousands of digits, by design; below that they are exact.
    if [a, b].iter().all(|q| q.as_f64().abs() < 1e300) {
        assert_eq!(&back, a, "{a} + {b} - {b}");
    }
    assert_eq!(a.cmp(b), b.cmp(a).reverse());
    let mut product = a.clone();
    product.mul(b.value());
    product.neg();
    let _ = (sum.to_string(), product.to_string());
}
