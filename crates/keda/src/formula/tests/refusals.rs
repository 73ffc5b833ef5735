//! Formulas that are refused at compile time.

use super::{refused, result};

#[test]
fn syntax() {
    refused(&[
        ("", "unexpected token EOF"),
        ("a b", "unexpected token Identifier(\"b\") (1:3)"),
        ("a +", "unexpected token EOF"),
        ("(a", "unexpected token EOF"),
        ("a)", "unexpected token Bracket(\")\")"),
        ("[1, 2", "unexpected token EOF"),
        ("{x 1}", "unexpected token Number(\"1\")"),
        ("{[]: 1}", "a map key must be"),
        ("a ? 1", "unexpected token EOF"),
        ("let x = 1", "unexpected token EOF"),
        ("let 1 = 1; 1", "unexpected token Number(\"1\")"),
        ("if a > 1 { 1 }", "unexpected token EOF"),
        ("1 + if true { 1 } else { 2 }", "unexpected token Operator(\"if\")"),
        ("in", "unexpected token Operator(\"in\")"),
        ("a not b", "unexpected token Operator(\"not\")"),
        ("#", "unexpected token Operator(\"#\")"),
        ("#acc", "unexpected token Operator(\"#\")"),
        ("map([1], #nonsense)", "unknown pointer #nonsense"),
        ("map([1], #acc)", "unknown pointer #acc"),
        (".x", "unexpected token Operator(\".\")"),
        ("'abc", "literal not terminated"),
        ("'a\nb'", "literal not terminated"),
        ("'\\q'", "invalid char escape"),
        ("a @ b", "unrecognized character: U+0040 '@'"),
        ("a = b", "unexpected token Operator(\"=\")"),
        ("1x", "bad number syntax: \"1x\""),
        ("0x", "invalid integer literal"),
        ("1e", "invalid float literal"),
        ("1e400", "invalid float literal"),
        ("99999999999999999999", "invalid integer literal"),
        ("/* open", "unclosed comment"),
        ("a | b", "unexpected token EOF"),
        ("a | 1", "unexpected token Number(\"1\")"),
        ("[3, 1] | sort()[0]", "unexpected token Bracket(\"[\")"),
        ("(a;)", "unexpected token Bracket(\")\")"),
        ("filter([1])", "unexpected token Bracket(\")\")"),
        ("filter([1], # > 0, 1)", "unexpected token Number(\"1\")"),
        ("[1][]", "unexpected token Bracket(\"]\")"),
        ("a ?? 1 + 2", "Operator (+) and coalesce expressions (??) cannot be mixed"),
        ("a ?? 1 > 2 ? 1 : 0", "Operator (>) and coalesce expressions (??) cannot be mixed"),
        ("a ?? b and true", "Operator (and) and coalesce expressions (??) cannot be mixed"),
    ]);
}

#[test]
fn names() {
    refused(&[
        ("d", "unknown name d (1:1)"),
        ("a + nosuch(1)", "unknown name nosuch (1:5)"),
        ("$env.d", "unknown name d"),
        ("$env['d']", "unknown name d"),
        ("let a = 1; a", "cannot redeclare a"),
        ("let max = 1; max", "cannot redeclare builtin max"),
        ("let filter = 1; 1", "cannot redeclare builtin filter"),
        ("let x = 1; let x = 2; x", "cannot redeclare variable x"),
        ("(let x = 1; x) + x", "unknown name x"),
        ("let x = x; x", "unknown name x"),
        ("a(1)", "float64 is not callable"),
        ("'x'()", "string is not callable"),
        ("max.x", "type func"),
    ]);
}

#[test]
fn types_are_known_before_a_formula_runs() {
    // The operand after `a > 9` is not evaluated.
    let hidden = |formula: &str| result(&format!("a > 9 ? ({formula}) : 1"));
    let cases = [
        ("a % 3", "invalid operation: % (mismatched types float64 and int)"),
        ("a + 'x'", "invalid operation: + (mismatched types float64 and string)"),
        ("'x' - 'y'", "invalid operation: - (mismatched types string and string)"),
        ("nil + 1", "invalid operation: + (mismatched types nil and int)"),
        ("a and true", "invalid operation: and (mismatched types float64 and bool)"),
        ("not a", "invalid operation: not (mismatched type float64)"),
        ("-'x'", "invalid operation: - (mismatched type string)"),
        ("a == 'x'", "invalid operation: == (mismatched types float64 and string)"),
        ("a < 'x'", "invalid operation: < (mismatched types float64 and string)"),
        ("true < false", "invalid operation: < (mismatched types bool and bool)"),
        ("a ? 1 : 2", "non-bool expression (type float64) used as condition"),
        ("a..5", "invalid operation: .. (mismatched types float64 and int)"),
        ("1..1e9", "invalid operation: .. (mismatched types int and float64)"),
        ("a in b", "invalid operation: in (mismatched types float64 and float64)"),
        ("1 in ['x']", "cannot use int as type string in array"),
        ("1 in {x: 1}", "cannot use int as type string in map key"),
        ("a contains 'x'", "invalid operation: contains (mismatched types float64 and string)"),
        ("'x' matches '('", "error parsing regexp"),
        ("a.b", "type float64 has no field b"),
        ("a?.b", "type float64 has no field b"),
        ("a[0]", "type float64[int] is undefined"),
        ("'abc'[0]", "type string[int] is undefined"),
        ("[1]['x']", "array elements can only be selected using an integer (got string)"),
        ("[1].x", "array elements can only be selected using an integer (got string)"),
        ("{x: 1}[1]", "cannot use int to get an element from map[string]interface {}"),
        ("a[1:2]", "cannot slice float64"),
        ("[1]['x':]", "non-integer slice index string"),
        ("a.b()", "type float64 has no method b"),
        ("1 % 0", "integer divide by zero"),
        ("filter(a, # > 1)", "builtin filter takes only array (got float64)"),
        ("filter([a], #)", "predicate should return boolean (got float64)"),
        ("filter([a], #index > 0)", "unknown pointer #index"),
        ("map([[a]], count(#, #index > 0))", "unknown pointer #index"),
        ("a in nil", "invalid operation: in (mismatched types float64 and nil)"),
        ("get([1], a)", "non-integer slice index float64"),
        ("get('abc', 0)", "invalid argument for get (type string)"),
        ("all([1], # + 1)", "predicate should return boolean (got int)"),
        ("map(['x'], # + 1)", "invalid operation: + (mismatched types string and int)"),
        ("[a, b][0] + 'x'", "invalid operation: + (mismatched types float64 and string)"),
        ("(let x = 'y'; x + 1)", "invalid operation: + (mismatched types string and int)"),
        ("(1..3)[0] + 'x'", "invalid operation: + (mismatched types int and string)"),
    ];
    for (formula, expected) in cases {
        let error = hidden(formula).expect_err(formula);
        assert!(error.starts_with(expected), "{formula}: {error}");
    }
}

#[test]
fn possible_types_are_checked_at_run_time() {
    let hidden = |formula: &str| result(&format!("a > 9 ? ({formula}) : 1"));
    for formula in [
        "{x: 1}.x + 'y'",
        "[1, 'x'][0] + 'y'",
        "(a > 1 ? 1 : 2.5) % 2",
        "(a ?? 'x') + 1",
        "fromJSON('1') + 1",
        "reduce([1], #acc + 'x', nil)",
        "first([1]) and true",
        "max([1, 'x'])",
        "{x: 1}.x.y.z",
        "{x: 1}.x[0]",
        "[][5]",
    ] {
        assert_eq!(hidden(formula).as_deref(), Ok("int 1"), "{formula}");
    }
}

#[test]
fn arguments() {
    refused(&[
        ("max()", "not enough arguments to call max"),
        ("abs()", "invalid number of arguments (expected 1, got 0)"),
        ("round(a, 2)", "invalid number of arguments (expected 1, got 2)"),
        ("now(1)", "invalid number of arguments (expected 0, got 1)"),
        ("max('x')", "invalid argument for max (type string)"),
        ("max(1, true)", "invalid argument for max (type bool)"),
        ("max(['x'])", "invalid argument for max (type string)"),
        ("abs('x')", "invalid argument for abs (type string)"),
        ("len(a)", "invalid argument for len (type float64)"),
        ("float(true)", "invalid argument for float (type bool)"),
        ("float([1])", "invalid argument for float (type []interface {})"),
        ("float({})", "invalid argument for float (type map[string]interface {})"),
        ("float(nil)", "invalid argument for float (type %!s(<nil>))"),
        ("float(max)", "invalid argument for float (type func"),
        ("int('x')", "invalid operation: int(x)"),
        ("int('1.5')", "invalid operation: int(1.5)"),
        ("int(1e30)", "invalid operation: int(1e+30)"),
        ("int(0 / 0)", "invalid operation: int(NaN)"),
        ("float('x')", "invalid operation: float(x)"),
        ("upper(1)", "invalid argument for upper (type int)"),
        ("repeat('x', 2.0)", "invalid argument for repeat (type float64)"),
        ("take([1], a)", "invalid argument for take (type float64)"),
        ("bitand(a, 1)", "invalid argument for bitand (type float64)"),
        ("keys([1])", "invalid argument for keys (type []interface {})"),
        ("get(a, 1)", "invalid argument for get (type float64)"),
        ("sort([1], 'up')", "invalid order \"up\", expected asc or desc"),
        ("sort([1, 'x'])", "invalid operation: int < string"),
        ("sum(['x'])", "invalid operation: string + int"),
        ("sum(a)", "builtin sum takes only array (got float64)"),
        ("reduce([], #acc + #)", "reduce of empty array with no initial value"),
        ("fromPairs([[1]])", "invalid pair length 1"),
        ("fromJSON('{')", "unexpected end of JSON input"),
        ("toJSON(1 / 0)", "json: unsupported value: +Inf"),
        ("[1][5]", "index out of range: 5 (array length is 1)"),
        ("[1][-5]", "index out of range: -4 (array length is 1)"),
        ("{x: 1}.y.z", "cannot fetch z from <nil>"),
        ("int(a) % 0", "runtime error: integer divide by zero"),
    ]);
}

#[test]
fn an_error_shows_its_line() {
    let error = result("a +\n  d").unwrap_err();
    assert_eq!(error, "unknown name d (2:3)\n |   d\n | ..^");
    let error = result("'ä' + ü").unwrap_err();
    assert_eq!(error, "unknown name ü (1:7)\n | 'ä' + ü\n | ......^");
}
