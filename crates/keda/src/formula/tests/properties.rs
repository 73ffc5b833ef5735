//! Properties of all formulas: no panics, and correct arithmetic.

use proptest::prelude::*;

use super::{Program, Value, moment, run};

/// Arithmetic over three numbers, as text and expected value.
fn arithmetic() -> impl Strategy<Value = (String, f64)> {
    let leaf = prop_oneof![
        Just(("a".to_owned(), 2.0)),
        Just(("b".to_owned(), 3.0)),
        Just(("c".to_owned(), 5.0)),
        (-1000i32..1000).prop_map(|n| (format!("{n}.0"), f64::from(n))),
        (0u32..1000).prop_map(|n| (format!("{n}.25"), f64::from(n) + 0.25)),
    ];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let three = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|((a, x), (b, y))| (format!("({a} + {b})"), x + y)),
            two.clone().prop_map(|((a, x), (b, y))| (format!("({a} - ({b}))"), x - y)),
            two.clone().prop_map(|((a, x), (b, y))| (format!("({a}) * ({b})"), x * y)),
            two.clone().prop_map(|((a, x), (b, y))| (format!("({a}) / ({b})"), x / y)),
            two.clone().prop_map(|((a, x), (b, y))| (format!("max({a}, [{b}])"), if x < y { y } else { x })),
            two.clone().prop_map(|((a, x), (b, y))| (format!("sum([{a}, {b}])"), x + y)),
            two.prop_map(|((a, x), (b, y))| (format!("(let v = {a}; [v, {b}][0])"), {
                let _ = y;
                x
            })),
            three.prop_map(|((a, x), (b, y), (c, z))| {
                (format!("(({a}) > ({b}) ? ({c}) : ({b}))"), if x > y { z } else { y })
            }),
            inner.clone().prop_map(|(a, x)| (format!("-({a})"), -x)),
            inner.clone().prop_map(|(a, x)| (format!("abs({a})"), x.abs())),
            inner.prop_map(|(a, x)| (format!("({a} ?? 1.0)"), x)),
        ]
    })
    .prop_filter("a variable may be declared once", |(text, _)| text.matches("let v").count() <= 1)
}

/// Random sequences of tokens.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "a", "b", "c", "1", "2.5", "'x'", "nil", "true", "(", ")", "[", "]", "{", "}", "+", "-", "*", "/",
        "%", "**", "==", "<", ">=", "and", "or", "not", "in", "..", "??", "?.", "?", ":", ".", ",", ";", "|",
        "#", "#acc", "let", "x", "=", "if", "else", "map(", "filter(", "sum(", "max(", "len(", "reduce(",
        "now()", "$env", "matches", "contains",
    ]);
    prop::collection::vec(word, 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn numbers_follow_arithmetic((text, expected) in arithmetic()) {
        let value = run(&text, &[2.0, 3.0, 5.0].map(Value::Float)).map_err(TestCaseError::fail)?;
        let number = value.number().unwrap_or(f64::INFINITY);
        prop_assert!(number == expected || (number.is_nan() && expected.is_nan()), "{text}: {number} {expected}");
    }

    #[test]
    fn arbitrary_tokens_do_not_panic(text in words()) {
        let _ = run(&text, &[Value::Float(-1.0), Value::Nil, Value::Float(f64::NAN)]);
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC{0,200}") {
        let _ = run(&text, &[Value::Nil, Value::Nil, Value::Nil]);
    }

    #[test]
    fn evaluation_is_deterministic((text, _) in arithmetic()) {
        let names = ["a", "b", "c"].map(str::to_owned);
        let program = Program::compile(&text, &names).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let values = [2.0, 3.0, 5.0].map(Value::Float);
        let once = program.run(&values, moment()).map(|value| value.to_string());
        let again = program.run(&values, moment()).map(|value| value.to_string());
        prop_assert_eq!(once, again);
    }
}
