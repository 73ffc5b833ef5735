use proptest::prelude::*;

use super::*;

fn n(text: &str) -> Integer {
    let digits = text.strip_prefix('-').unwrap_or(text);
    Integer::from_ascii(text.starts_with('-'), digits.bytes())
}

/// Numbers around the border between the two forms.
fn number() -> impl Strategy<Value = Integer> {
    "-?[0-9]{1,50}".prop_map(|text| n(&text))
}

#[test]
fn numbers_that_fit_are_small() {
    for limit in [i128::MAX, i128::MIN, 0, -1] {
        assert_eq!(n(&limit.to_string()), Small(limit));
        assert_eq!(Integer::from(Digits::from(limit)), Small(limit));
    }
    let beyond = Small(i128::MAX).add(&Small(1));
    assert!(matches!(beyond, Large(_)));
    assert_eq!(beyond.to_string(), "170141183460469231731687303715884105728");
    assert_eq!(beyond.neg(), Small(i128::MIN));
    assert_eq!(Small(i128::MIN).neg(), beyond);
}

#[test]
fn factors_are_removed() {
    assert_eq!(n("-12000").without_tens(), (n("-12"), 3));
    assert_eq!(Small(3).shift_up(100).without_tens(), (Small(3), 100));
    assert_eq!(Small(3 << 40).without_1024s(), (Small(3), 4));
    let large = (0..20).fold(Small(3), |number, _| number.mul(1024));
    assert_eq!(large.without_1024s(), (Small(3), 20));
    assert_eq!(Small(0).without_tens(), (Small(0), 0));
}

#[test]
fn low_bits_are_those_of_the_complement() {
    for number in [i128::MAX, i128::MIN, -1, 1 << 64, (1 << 64) - 5, -(1 << 63)] {
        assert_eq!(Small(number).low_64(), number as i64);
        assert_eq!(Digits::from(number).low_64(), number as i64);
    }
    // 2^130 + 7
    let large = Small(1 << 120).mul(1 << 10).add(&Small(7));
    assert_eq!((large.low_64(), large.neg().low_64()), (7, -7));
}

proptest! {
    #[test]
    fn text_is_read_back(number in number()) {
        prop_assert_eq!(n(&number.to_string()), number);
    }

    #[test]
    fn digits_agree_with_128_bits(a: i64, b: i64, by: i64, places in 0..25_i64) {
        let (x, y) = (i128::from(a) * i128::from(b), i128::from(b));
        let (dx, dy) = (Digits::from(x), Digits::from(y));
        prop_assert_eq!(dx.add(&dy).to_i128(), Some(x + y));
        prop_assert_eq!(dx.add(&dy.neg()).to_i128(), Some(x - y));
        prop_assert_eq!(dy.mul(by).to_i128(), Some(y * i128::from(by)));
        prop_assert_eq!(dx.cmp(&dy), x.cmp(&y));
        let (quotient, rest) = dx.div(1024);
        prop_assert_eq!((quotient.to_i128(), i128::from(rest)), (Some(x / 1024), (x % 1024).abs()));
        let ten = 10_i128.pow(places as u32);
        let (quotient, exact) = dx.shift_down(places as usize);
        prop_assert_eq!((quotient.to_i128(), exact), (Some(x / ten), x % ten == 0));
    }

    #[test]
    fn shifts_undo_each_other(number in number(), places in 0..60_i64) {
        prop_assert_eq!(number.shift_up(places).shift_down(places), (number, true));
    }

    #[test]
    fn addition_has_an_inverse(a in number(), b in number()) {
        prop_assert_eq!(a.add(&b).add(&b.neg()), a.clone());
        prop_assert_eq!(a.add(&b.neg()).signum(), a.cmp(&b) as i32);
    }
}
