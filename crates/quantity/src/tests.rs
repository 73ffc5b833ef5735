//! Rules of docs/spec/hpa.md Appendix A, one table each.

mod properties;

use std::collections::HashSet;

use super::*;

fn q(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[track_caller]
fn shows(cases: &[(&str, &str)]) {
    for (input, expected) in cases {
        assert_eq!(q(input).to_string(), *expected, "{input}");
    }
}

#[track_caller]
fn is_canonically(cases: &[(&str, &str)]) {
    for (input, expected) in cases {
        assert_eq!(q(input).canonical(), *expected, "{input}");
    }
}

#[test]
fn decimal_text_has_the_largest_unit() {
    shows(&[
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("20000m", "20"),
        ("1000000m", "1k"),
        ("1500", "1500"),
        ("260000k", "260M"),
        ("0.000001", "1u"),
        ("-30.21G", "-30210M"),
        ("1000P", "1E"),
        ("1000E", "1"),
        ("60701949345090440200005495067k", "60701949345090440200005495067k"),
    ]);
}

#[test]
fn binary_text_has_the_largest_power_of_1024() {
    shows(&[
        ("1024Ki", "1Mi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        ("1.25Ki", "1280"),
        ("1.1Gi", "1181116006400m"),
        ("-64104Ki", "-64104Ki"),
    ]);
    assert_eq!(Quantity::new(157_286_400, Format::BinarySi).to_string(), "150Mi");
    assert_eq!(Quantity::new(1536, Format::BinarySi).to_string(), "1536");
    assert_eq!(Quantity::new(1000, Format::BinarySi).to_string(), "1k");
    assert_eq!(Quantity::new(i64::MIN, Format::BinarySi).to_string(), "-9223372036854775808");
    assert_eq!(Quantity::from_scaled(i64::MIN, 1, Format::BinarySi).to_string(), "-80Ei");
}

#[test]
fn exponents_are_multiples_of_three() {
    shows(&[
        ("12e-1", "1200e-3"),
        ("-39E+7", "-390e6"),
        ("1e400", "10e399"),
        ("1e-1000", "1e-9"),
        ("1e0", "1e0"),
    ]);
    is_canonically(&[("1e0", "1"), ("1E3", "1e3")]);
}

#[test]
fn text_is_kept_where_kubernetes_treats_it_as_canonical() {
    shows(&[
        ("+1", "+1"),
        ("007", "007"),
        ("1.500", "1.500"),
        ("1E3", "1E3"),
        ("5.", "5."),
        ("03Ki", "03Ki"),
    ]);
    is_canonically(&[("+1", "1"), ("007", "7"), ("1.500", "1500m"), ("03Ki", "3Ki")]);
    // Not kept: a leading zero before the point, thousands, a scale between units, a multiple of eight.
    shows(&[("0.500", "500m"), ("1000", "1k"), ("1.50", "1500m"), ("08Ki", "8Ki")]);
}

#[test]
fn only_a_text_that_differs_is_stored() {
    assert!(q("100m").verbatim.is_none());
    assert!(q("1536Mi").verbatim.is_none());
    assert!(q("+100m").verbatim.is_some());
}

#[test]
fn arithmetic_drops_the_text() {
    let mut sum = q("+1");
    sum.add(&q("0"));
    assert_eq!(sum.to_string(), "1");

    let mut untouched = q("1.500");
    assert!(untouched.round_up(-3));
    assert_eq!(untouched.to_string(), "1.500");
    assert!(!untouched.round_up(0));
    assert_eq!(untouched.to_string(), "2");
}

#[test]
fn strange_texts_are_zero() {
    for text in ["0", "-0", "+", "-", ".", "Ki", "00", "0.0", "0e9"] {
        assert!(q(text).is_zero(), "{text}");
        assert_eq!(q(text).to_string(), "0", "{text}");
    }
}

#[test]
fn errors_are_those_of_kubernetes() {
    let form = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let suffix = "unable to parse quantity's suffix";
    let number = "unable to parse numeric part of quantity";
    let cases = [
        ("", form),
        (" 1", form),
        ("1 ", form),
        ("1.2.3", form),
        ("1KiB", form),
        ("1Zi", form),
        ("1e3.5", form),
        ("∞", form),
        ("１", form),
        ("1\0", form),
        ("1K", suffix),
        ("1ki", suffix),
        ("1e", suffix),
        ("--1", suffix),
        ("1m3", suffix),
        ("1e9223372036854775808", suffix),
        ("1e4294967296", suffix),
        ("Ei", number),
        ("e-10", number),
        ("+.e-10", number),
    ];
    for (text, expected) in cases {
        let error = Quantity::parse(text).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn values_round_away_from_zero() {
    for (text, value, milli) in [
        ("100m", 1, 100),
        ("-100m", -1, -100),
        ("1n", 1, 1),
        ("-.5", -1, -500),
        ("1.0005", 2, 1001),
        ("1Ki", 1024, 1_024_000),
    ] {
        assert_eq!(q(text).value(), value, "{text}");
        assert_eq!(q(text).milli_value(), milli, "{text}");
    }
    assert_eq!(q("668591703Mi").scaled_value(12), 702);
    assert_eq!(q("-5800M").scaled_value(10), -1);
}

#[test]
fn negative_wide_numbers_round_as_recorded() {
    assert_eq!(q("-1.1n").value(), 1);
    assert_eq!(q("-08.3Mi").value(), -8_703_179);
    assert_eq!(q("-9223372036854775808").value(), 0);
}

#[test]
fn values_saturate() {
    assert_eq!(q("9223372036854775807").milli_value(), i64::MAX);
    assert_eq!(q("10E").milli_value(), i64::MAX);
    assert_eq!(q("-10E").value(), i64::MIN);
    assert_eq!(q("-1e2000000000").value(), i64::MIN);
    assert_eq!(q("1e30").scaled_value(i32::MIN), i64::MAX);
    assert_eq!(q("1e30").scaled_value(i32::MAX), 1);
}

#[test]
fn texts_are_limited_to_nano_and_63_bits() {
    shows(&[
        ("0.0000000001", "1n"),
        ("-1.1n", "-2n"),
        ("1.0000000001", "1000000001n"),
        ("9Ei", "9223372036854775807"),
    ]);
    assert_eq!(q("-9Ei"), q("-9223372036854775807"));
    assert_eq!(q("9E"), Quantity::from_scaled(9, 18, Format::DecimalSi));
    assert_eq!(q("0.0001Ki").format(), Format::DecimalSi);
    assert_eq!(q("0.1Ki").format(), Format::BinarySi);
}

#[test]
fn floats_are_mantissa_times_power() {
    assert_eq!(q("50m").as_f64(), 0.05);
    assert_eq!(q("19029395u").as_f64(), 19_029_395.0 * 1e-6);
    assert_eq!(q("1e400").as_f64(), f64::INFINITY);
    assert_eq!(q("-1e400").as_f64(), f64::NEG_INFINITY);
    assert_eq!(Quantity::from_scaled(7, -400, Format::DecimalSi).as_f64(), 0.0);
    assert_eq!(q("0e400").as_f64(), 0.0);
    let mut long = q("0e-2000");
    long.add(&q("1.5"));
    assert_eq!(long.as_f64(), 1.5);
}

#[test]
fn a_zero_takes_over_the_format() {
    let mut sum = Quantity::default();
    assert_eq!(sum.format(), Format::DecimalSi);
    sum.add(&q("1Gi"));
    assert_eq!(sum.to_string(), "1Gi");
    sum.add(&q("1"));
    assert_eq!(sum.format(), Format::BinarySi);

    let mut difference = q("0e3");
    difference.sub(&q("1Ki"));
    assert_eq!((difference.format(), difference.to_string().as_str()), (Format::BinarySi, "-1Ki"));
}

#[test]
fn arithmetic_is_exact_beyond_64_bits() {
    let mut sum = q("1E");
    sum.add(&q("1n"));
    assert_eq!(sum.to_string(), "1000000000000000000000000001n");
    sum.sub(&q("1E"));
    assert_eq!(sum, q("1n"));

    let mut double = q("7Ei");
    double.add(&q("7Ei"));
    assert_eq!(double.to_string(), "14Ei");

    let mut most = Quantity::new(i64::MIN, Format::DecimalSi);
    most.neg();
    assert_eq!(most.to_string(), "9223372036854775808");
}

#[test]
fn mul_returns_whether_the_mantissa_fits() {
    for (text, by, fits, product) in [
        ("12012030004T", 63_293, true, "760277415043172T"),
        ("-1560Pi", 14_932_733, false, "-23295063480Pi"),
        ("37130424308m", 642_577_756, false, "23859184731162492848m"),
        ("1.5", -1, true, "-1500m"),
        ("1Ki", 0, true, "0"),
    ] {
        let mut quantity = q(text);
        assert_eq!(quantity.mul(by), fits, "{text}");
        assert_eq!(quantity.to_string(), product, "{text}");
    }
}

#[test]
fn round_up_returns_whether_it_was_exact() {
    for (text, scale, exact, rounded) in [
        ("902541300k", -7, true, "902541300k"),
        ("11563Ki", 2, false, "11840600"),
        ("+65", 5, false, "100k"),
        ("-9", 1, false, "-10"),
        ("8651506.E-18", -4, false, "100e-6"),
        ("498720000000Gi", -9, true, "9223372036854775807"),
    ] {
        let mut quantity = q(text);
        assert_eq!(quantity.round_up(scale), exact, "{text}");
        assert_eq!(quantity.to_string(), rounded, "{text}");
    }
}

#[test]
fn equality_order_and_hash_are_numeric() {
    let equal = ["1Ki", "1024", "1.024k", "1024000m", "1024.00", "1024e0", "1024.0000000000000000000"];
    for a in equal {
        for b in equal {
            assert_eq!(q(a), q(b), "{a} {b}");
        }
    }
    assert_eq!(equal.iter().map(|text| q(text)).collect::<HashSet<_>>().len(), 1);
    assert_eq!(["0", "0Ki", "0e-20", "0e20"].iter().map(|text| q(text)).collect::<HashSet<_>>().len(), 1);

    let ascending = [
        "-1e2000000000",
        "-1e400",
        "-1Ei",
        "-1",
        "-1n",
        "0",
        "1n",
        "1m",
        "999",
        "1Ki",
        "1025",
        "8Ei",
        "1e400",
    ];
    let mut sorted: Vec<_> = ascending.iter().rev().map(|text| q(text)).collect();
    sorted.sort();
    assert_eq!(sorted, ascending.map(q));
}

#[test]
fn very_long_numbers_are_handled_quickly() {
    let endless = q("1e2000000000");
    assert_eq!(endless.to_string(), "100e1999999998");
    assert_eq!(q("1e-2000000000"), q("1n"));
    assert_eq!(q("123456789012345678901234567890e2000000000").sign(), 1);

    let mut sum = endless.clone();
    sum.add(&q("1n"));
    assert_eq!(sum, endless);
    sum.sub(&endless);
    assert!(sum.is_zero());

    let mut zero = q("0e-2000000000");
    zero.add(&q("3"));
    assert_eq!(zero, q("3"));

    let binary = Quantity::from_scaled(3, i32::MAX, Format::BinarySi);
    assert_eq!(binary.to_string(), "30e2147483646");

    let mut wide = q("1234567890123456789012");
    assert!(wide.round_up(i32::MIN));
    assert!(!wide.round_up(i32::MAX));
    assert_eq!(wide, Quantity::from_scaled(1, i32::MAX, Format::DecimalSi));

    let digits = "9".repeat(100_000);
    let mut long = q(&digits);
    long.add(&Quantity::new(1, Format::DecimalSi));
    assert_eq!(long, q("1e100000"));
}

#[test]
fn raw_json() {
    for (json, text) in [("null", "0"), ("\" 1Ki \"", "1Ki"), ("1e-3", "1e-3"), (" 820 ", "820")] {
        assert_eq!(Quantity::from_json_text(json).unwrap().to_string(), text, "{json}");
    }
    for json in ["\"\"", "true", "{}", "[]", "\"\\u0031\"", "\"null\"", "\"", ""] {
        assert!(Quantity::from_json_text(json).is_err(), "{json}");
    }
}

#[test]
fn display_pads() {
    assert_eq!(format!("{:>6}|{:<6}|{:^7}", q("1Gi"), q("+1"), q("0")), "   1Gi|+1    |   0   ");
}
