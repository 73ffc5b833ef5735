//! Limits on time, memory and stack.

use super::{refused, result};

const DEEP: &str = "formula is nested too deeply";
const LARGE: &str = "memory budget exceeded";
const LONG: &str = "formula takes more than 2000000 steps";

#[test]
fn large_values_are_refused() {
    refused(&[
        ("1..1000000000", LARGE),
        ("-9223372036854775807..9223372036854775807", LARGE),
        ("repeat('x', 1000000000)", LARGE),
        ("repeat('x', 9223372036854775807)", LARGE),
        ("map(1..1000, 1..1000)", LARGE),
        ("reduce(1..64, concat(#acc, #acc), [1])", LARGE),
        ("reduce(1..64, #acc + #acc, 'x')", LARGE),
        ("reduce(1..64, [#acc, #acc], 1)", LARGE),
        ("reduce(1..64, {{x: #acc, y: #acc}}, 1)", LARGE),
        ("reduce(1..200, [#acc], 1)", LARGE),
        ("replace(repeat('x', 1000), '', repeat('y', 100000))", LARGE),
        ("join(map(1..1000, repeat('x', 1000)), repeat('y', 1000))", LARGE),
        ("toJSON(reduce(1..90, [#acc], 1..9000))", LARGE),
    ]);
}

#[test]
fn long_runs_are_refused() {
    refused(&[
        ("sum(map(1..1000, sum(map(1..1000, # * #))))", LARGE),
        ("count(1..900000, any([# > 1, # > 2], #))", LARGE),
        ("let r = 1..10000; count(r, # in r and not (# in r))", LONG),
        ("let r = 1..2000; len(uniq(map(r, [#])))", LONG),
        ("let r = 1..3000; count(r, {let x = #; all(r, # != x + 9999)})", LONG),
        ("let t = repeat('x', 100000); count(1..100000, t matches 'y')", LONG),
    ]);
}

/// The syntax tree of these patterns would take gigabytes.
#[test]
fn long_patterns_are_refused_before_they_are_parsed() {
    let many = (0..17).map(|number| format!("'a' matches '{number}'")).collect::<Vec<_>>().join(" or ");
    let constant = format!("'a' matches '{}' ? 1 : 2", "x".repeat(1025));
    let repeated = "let p = repeat('x', 600); count(1..9, 'a' matches (p + string(#)))";
    refused(&[
        (&constant, "error parsing regexp: longer than 1024 bytes"),
        (r"'a' matches repeat('\\w', 300000) ? 1 : 2", LONG),
        (r"'a' matches repeat('\\w', 600) ? 1 : 2", "error parsing regexp: longer than 1024 bytes"),
        (repeated, LONG),
        (&format!("{many} ? 1 : 2"), "formula has more than 16 patterns"),
    ]);
    assert_eq!(result(&format!("'xx' matches '{}' ? 1 : 2", "x|".repeat(500))).as_deref(), Ok("int 1"));
}

#[test]
fn deep_formulas_are_refused() {
    for (opening, closing) in [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("!", ""),
        ("{x:", "}"),
        ("abs(", ")"),
        ("map([1],", ")"),
        ("a ? ", " : 1"),
        ("let x = ", "; 1"),
        ("if true {", "} else { 1 }"),
        ("1 ** ", ""),
        ("1 + (", ")"),
        ("[1][", "]"),
    ] {
        for depth in [10_000, 3_000, 400] {
            let formula = format!("{}1{}", opening.repeat(depth), closing.repeat(depth));
            let error = result(&formula).expect_err(opening);
            let expected = error.starts_with(DEEP) || error.starts_with("formula is longer than");
            assert!(expected, "{opening} {depth}: {}", error.get(..80).unwrap_or(&error));
        }
    }
    for link in [" + 1", ".x", "[0]", " | max(1)", " ?? 1", " ? 1 : 1", " and true", " < 1"] {
        let formula = format!("a{}", link.repeat(5_000));
        let error = result(&formula).expect_err(link);
        let expected =
            ["formula is", "formula exceeds", "type float64", "Operator (", "non-bool", "invalid op"];
        assert!(
            expected.iter().any(|text| error.starts_with(text)),
            "{link}: {}",
            error.get(..80).unwrap_or(&error)
        );
    }
    let formula = "a;".repeat(20_000);
    assert!(result(&formula).expect_err("many").starts_with("formula exceeds maximum allowed nodes"));
}

#[test]
fn usual_formulas_are_allowed() {
    let nested = format!("{}a{}", "(".repeat(150), ")".repeat(150));
    assert_eq!(result(&nested).as_deref(), Ok("float64 2"));
    let sum = format!("a{}", " + a".repeat(200));
    assert_eq!(result(&sum).as_deref(), Ok("float64 402"));
    assert_eq!(result("sum(1..100000)").as_deref(), Ok("int 5000050000"));
}

/// A node with two parents is checked once, so that chains do not grow exponentially.
#[test]
fn chains_of_comparisons_do_not_explode() {
    let mut formula = "a".to_owned();
    for _ in 0..40 {
        formula = format!("(1 < ({formula}) < 2 ? 1 : 2)");
    }
    assert!(result(&formula).expect_err("chain").starts_with("formula takes more than"));
}

/// The stack size of server threads, in a build without optimization.
#[test]
fn the_deepest_formulas_fit_a_small_stack() {
    let run = || {
        let mut formulas = vec![format!("a{}", " + a".repeat(245))];
        for (opening, closing) in
            [("(1 + ", ")"), ("abs(", ")"), ("sum(map([1], ", "))"), ("-", ""), ("[1][0 * ", "]")]
        {
            for depth in (10..200).rev() {
                let formula = format!("{}1{}", opening.repeat(depth), closing.repeat(depth));
                if result(&formula).is_ok() {
                    formulas.push(formula);
                    break;
                }
            }
        }
        formulas.iter().filter(|formula| result(formula).is_ok()).count()
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
    assert_eq!(thread.join().unwrap(), 6);
}
