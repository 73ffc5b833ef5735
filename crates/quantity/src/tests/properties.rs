//! Properties of all quantities.

use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;

use super::*;

fn suffix() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["n", "u", "m", "", "k", "M", "G"]).prop_map(str::to_owned),
        3 => prop::sample::select(vec!["Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "T", "P", "E"]).prop_map(str::to_owned),
        1 => (-20..20_i32).prop_map(|exponent| format!("e{exponent}")),
    ]
}

/// Texts of short and long numbers, all valid.
fn text() -> impl Strategy<Value = String> {
    ("[+-]?", prop_oneof!["[0-9]{1,9}", "[0-9]{10,45}", "[1-9]0{0,30}"], "(\\.[0-9]{0,24})?", suffix())
        .prop_map(|(sign, whole, fraction, suffix)| format!("{sign}{whole}{fraction}{suffix}"))
}

fn quantity() -> impl Strategy<Value = Quantity> {
    text().prop_map(|text| q(&text))
}

/// Whether the text has a unit for the number: Kubernetes has none beyond `E` and `Ei`.
fn has_unit(quantity: &Quantity) -> bool {
    let mut rest = quantity.clone();
    rest.round_up(21);
    quantity.is_zero() || rest != *quantity
}

/// The number in billionths, where 128 bits can hold it: what a parsed text exactly is.
fn nanos(quantity: &Quantity) -> Option<i128> {
    let (mantissa, scale) = quantity.amount.parts();
    if scale >= -9 {
        return mantissa.shift_up(scale + 9).to_string().parse().ok();
    }
    // A zero keeps the scale it was written with, and so does a sum with it.
    let number: i128 = mantissa.to_string().parse().ok()?;
    let unit = 10_i128.checked_pow(u32::try_from(-9 - scale).ok()?)?;
    (number % unit == 0).then_some(number / unit)
}

fn hash(quantity: &Quantity) -> u64 {
    let mut hasher = DefaultHasher::new();
    quantity.hash(&mut hasher);
    hasher.finish()
}

proptest! {
    #[test]
    fn texts_round_trip(quantity in quantity()) {
        prop_assume!(has_unit(&quantity));
        prop_assert_eq!(&q(&quantity.to_string()), &quantity);
        prop_assert_eq!(&q(&quantity.canonical()), &quantity);
        prop_assert_eq!(q(&quantity.canonical()).canonical(), quantity.canonical());
    }

    #[test]
    fn subtraction_undoes_addition(a in quantity(), b in quantity()) {
        let mut sum = a.clone();
        sum.add(&b);
        let mut back = sum.clone();
        back.sub(&b);
        prop_assert_eq!(&back, &a);

        let mut swapped = b.clone();
        swapped.add(&a);
        prop_assert_eq!(swapped, sum);
    }

    #[test]
    fn order_is_the_sign_of_the_difference(a in quantity(), b in quantity()) {
        let mut difference = a.clone();
        difference.sub(&b);
        prop_assert_eq!(a.cmp(&b) as i32, difference.sign());
        prop_assert_eq!(b.cmp(&a), a.cmp(&b).reverse());
        prop_assert!(a != b || hash(&a) == hash(&b));
    }

    #[test]
    fn order_and_sum_are_those_of_integers(a in quantity(), b in quantity()) {
        if let (Some(x), Some(y)) = (nanos(&a), nanos(&b)) {
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
            let mut sum = a.clone();
            sum.add(&b);
            prop_assert_eq!(nanos(&sum), x.checked_add(y));
        }
    }

    #[test]
    fn positive_values_are_ceilings(text in "[0-9]{1,12}(\\.[0-9]{0,9})?", suffix in suffix(), scale in -12..12_i32) {
        let quantity = q(&format!("{text}{suffix}"));
        if let Some(nanos) = nanos(&quantity) {
            let ceiling = if scale < -9 {
                nanos.checked_mul(10_i128.pow(scale.abs_diff(-9)))
            } else {
                let unit = 10_i128.pow(scale.abs_diff(-9));
                Some(nanos / unit + i128::from(nanos % unit != 0))
            };
            let expected = ceiling.and_then(|n| i64::try_from(n).ok()).unwrap_or(i64::MAX);
            prop_assert_eq!(quantity.scaled_value(scale), expected);
        }
    }

    #[test]
    fn multiplication_repeats_addition(quantity in quantity(), times in 0..20_i64) {
        let mut product = quantity.clone();
        product.mul(times);
        let mut sum = Quantity::default();
        for _ in 0..times {
            sum.add(&quantity);
        }
        prop_assert_eq!(product, sum);
    }

    #[test]
    fn rounding_up_never_shrinks(quantity in quantity(), scale in -15..40_i32) {
        let mut rounded = quantity.clone();
        let exact = rounded.round_up(scale);
        prop_assert_eq!(exact, rounded == quantity);
        let (mut size, mut rounded_size) = (quantity.clone(), rounded.clone());
        if quantity.sign() < 0 {
            size.neg();
            rounded_size.neg();
        }
        prop_assert!(rounded_size >= size);
    }

    #[test]
    fn constructed_quantities_are_their_numbers(n: i64, scale in -30..60_i32) {
        for format in [Format::DecimalSi, Format::BinarySi, Format::DecimalExponent] {
            let quantity = Quantity::from_scaled(n, scale, format);
            prop_assert_eq!(quantity.scaled_value(scale), n);
            prop_assert_eq!(quantity.sign(), n.signum() as i32);
        }
    }

    #[test]
    fn no_text_panics(text in prop_oneof![
        any::<String>(),
        "[-+0-9.eEinumkKMGTP]{0,40}",
        "[-+]?[0-9.]{0,30}[eE][-+]?[0-9]{0,11}",
    ]) {
        let _ = Quantity::from_json_text(&text);
        if let Ok(mut quantity) = Quantity::parse(&text) {
            let _ = (quantity.to_string(), quantity.canonical(), quantity.as_f64(), quantity.milli_value());
            let other = quantity.clone();
            quantity.add(&q("1n"));
            quantity.sub(&other);
            quantity.mul(i64::MIN);
            quantity.round_up(3);
            quantity.neg();
            let _ = (quantity.to_string(), quantity.cmp(&other), hash(&quantity));
        }
    }
}
