//! Literals, operators, precedence, declarations, members.

use super::{result, result_with_nil, yields};

#[test]
fn literals() {
    yields(&[
        ("1", "int 1"),
        ("1_000", "int 1000"),
        ("0x1F", "int 31"),
        ("0b101", "int 5"),
        ("0o17", "int 15"),
        ("007", "int 7"),
        ("1.5", "float64 1.5"),
        ("1.", "float64 1"),
        (".5", "float64 0.5"),
        ("1e3", "float64 1000"),
        ("1E-3", "float64 0.001"),
        ("1e21", "float64 1e+21"),
        ("1e-7", "float64 1e-07"),
        ("true", "bool true"),
        ("nil", "<nil> <nil>"),
        (r"'it\'s'", "string it's"),
        (r#""\u00e4\x41\n" == "äA\n""#, "bool true"),
        (r"`raw\n`", r"string raw\n"),
        ("[1, 'x', nil,]", "[]interface {} [1 x <nil>]"),
        ("{x: 1, 'y z': 2, 3: 4, (string(5)): 6,}", "map[string]interface {} map[3:4 5:6 x:1 y z:2]"),
        ("/* one */ 1 // two", "int 1"),
    ]);
}

#[test]
fn arithmetic_keeps_integers_except_in_division_and_powers() {
    yields(&[
        ("1 + 2", "int 3"),
        ("1 + 2.0", "float64 3"),
        ("2 * 3 - 1", "int 5"),
        ("5 / 2", "float64 2.5"),
        ("4 / 2", "float64 2"),
        ("2 ** 3", "float64 8"),
        ("2 ^ 3", "float64 8"),
        ("7 % 3", "int 1"),
        ("-7 % 3", "int -1"),
        ("7 % -3", "int 1"),
        ("1 / 0", "float64 +Inf"),
        ("-1 / 0", "float64 -Inf"),
        ("0 / 0", "float64 NaN"),
        ("+a", "float64 2"),
        ("- - 1", "int 1"),
        ("1 + + 2", "int 3"),
        ("'a' + 'b'", "string ab"),
    ]);
}

#[test]
fn operators_bind_by_precedence() {
    yields(&[
        ("1 + 2 * 3", "int 7"),
        ("(1 + 2) * 3", "int 9"),
        ("2 ** 3 ** 2", "float64 512"),
        ("-2 ** 2", "float64 -4"),
        ("2 ** -1", "float64 0.5"),
        ("10 - 4 - 3", "int 3"),
        ("100 / 10 / 2", "float64 5"),
        ("10 % 4 * 2", "int 4"),
        ("1 + 1..3 + 1", "[]interface {} [2 3 4]"),
        ("2 in 1..3", "bool true"),
        ("1 < 2 == true", "bool true"),
        ("true or false and false", "bool true"),
        ("(true || false) && false", "bool false"),
        ("not false and false", "bool false"),
        ("not (false and false)", "bool true"),
        ("!true == false", "bool true"),
        ("1 == 1 and 2 != 3", "bool true"),
        ("a ?? 1 ?? 2", "float64 2"),
        ("1 + (nil ?? 2)", "int 3"),
        ("1 + nil ?? 2", "int 3"),
        ("-(nil ?? 2)", "int -2"),
        ("nil ?? 1 | max(3)", "int 3"),
        ("1 + 2 | max(7)", "int 7"),
        ("1 | max(7) + 1", "int 8"),
        ("true ? 1 : 2 | max(3)", "int 1"),
        ("false ? 1 : 2 | max(3)", "int 3"),
    ]);
}

#[test]
fn comparisons() {
    yields(&[
        ("1 == 1.0", "bool true"),
        ("a == 2", "bool true"),
        ("'a' < 'b'", "bool true"),
        ("1 < a < 5", "bool true"),
        ("5 > a > 2", "bool false"),
        ("1 <= 1 <= 1 <= 1", "bool true"),
        ("[1, 2] == [1.0, 2]", "bool true"),
        ("1..3 == [1, 2, 3]", "bool true"),
        ("{x: 1} == {x: 1}", "bool true"),
        ("nil == nil", "bool true"),
        ("a != nil", "bool true"),
        ("a == nil", "bool false"),
        ("0 / 0 == 0 / 0", "bool false"),
        ("0 / 0 <= 1", "bool false"),
        ("0 / 0 >= 1", "bool false"),
    ]);
}

#[test]
fn membership_and_texts() {
    yields(&[
        ("2 in [1, 2]", "bool true"),
        ("a in [1, 2]", "bool true"),
        ("a not in [1, 2]", "bool false"),
        ("not (a in [1, 2])", "bool false"),
        ("a in 1..1000000000", "bool true"),
        ("2.5 in 1..5", "bool false"),
        ("'x' in {x: nil}", "bool true"),
        ("'y' in {x: nil}", "bool false"),
        ("'a' in $env", "bool true"),
        ("'zzz' in $env", "bool false"),
        ("'hello' contains 'ell'", "bool true"),
        ("'hello' not contains 'ell'", "bool false"),
        ("'hello' startsWith 'he' and 'hello' endsWith 'lo'", "bool true"),
        ("'hello' matches '^h.*o$'", "bool true"),
        ("'hello' not matches 'x'", "bool true"),
        ("'abc' matches 'a' + 'b'", "bool true"),
    ]);
}

#[test]
fn conditions() {
    yields(&[
        ("a > 1 ? 1 : 2", "int 1"),
        ("a > 5 ? 1 : b > 2 ? 2 : 3", "int 2"),
        ("a > 1 ? b > 5 ? 1 : 2 : 3", "int 2"),
        ("true ?: 5", "bool true"),
        ("false ?: 5", "int 5"),
        ("if a > 1 { 1 } else { 2 }", "int 1"),
        ("if a > 5 { 1 } else if b > 5 { 2 } else { 3 }", "int 3"),
        ("if true { let x = 1; x + 1 } else { 0 }", "int 2"),
        ("(if true { 1 } else { 2 }) + 1", "int 2"),
        // Unreached operands are not evaluated.
        ("true or 1 / 0 == nil", "bool true"),
        ("false and [1][5] == 1", "bool false"),
        ("true ? 1 : [1][5]", "int 1"),
    ]);
}

#[test]
fn declarations_and_sequences() {
    yields(&[
        ("let x = a + 1; x * 2", "float64 6"),
        ("let x = 1; let y = x + 1; x + y", "int 3"),
        ("(let x = 1; x) + (let x = 2; x)", "int 3"),
        ("1; 2; 3", "int 3"),
        ("(1; 2) + 3", "int 5"),
        ("1; 2;", "int 2"),
        ("let x = (let y = 2; y * y); x", "int 4"),
        ("sum(let x = [1, 2]; x)", "int 3"),
    ]);
}

#[test]
fn pipes() {
    yields(&[
        ("a | max(b)", "float64 3"),
        ("[1, 2, 3] | filter(# > 1) | map({# * 2}) | sum()", "int 10"),
        ("'A,B' | lower() | split(',')", "[]interface {} [a b]"),
        ("([3, 1] | sort())[0]", "int 1"),
        ("[1, 2] | count(# > 1)", "int 1"),
        ("[1, 2] | reduce(#acc + #, 10)", "int 13"),
    ]);
}

#[test]
fn predicates() {
    yields(&[
        ("filter(1..6, {# % 2 == 0})", "[]interface {} [2 4 6]"),
        ("filter(1..6, # % 2 == 0)", "[]interface {} [2 4 6]"),
        ("map([{n: 1}, {n: 2}], .n)", "[]interface {} [1 2]"),
        ("map([{n: 1}, {n: 2}], #.n * 2)", "[]interface {} [2 4]"),
        ("map(1..2, map(1..2, # * 10))", "[]interface {} [[10 20] [10 20]]"),
        ("map(1..2, {let x = #; map(1..2, # * x)})", "[]interface {} [[1 2] [2 4]]"),
        ("map([5, 6], #index)", "[]interface {} [0 1]"),
        ("reduce([1, 2, 3], #acc * 10 + #)", "int 123"),
        ("reduce([1, 2, 3], #acc + #index, 0)", "int 3"),
        ("reduce([7], #acc + #)", "int 7"),
        ("map([1], {{x: #}})", "[]interface {} [map[x:1]]"),
    ]);
}

#[test]
fn members_slices_and_chains() {
    yields(&[
        ("[1, 2, 3][0]", "int 1"),
        ("[1, 2, 3][-1]", "int 3"),
        ("[1, 2, 3][1:]", "[]interface {} [2 3]"),
        ("[1, 2, 3][:2]", "[]interface {} [1 2]"),
        ("[1, 2, 3][1:-1]", "[]interface {} [2]"),
        ("[1, 2, 3][:]", "[]interface {} [1 2 3]"),
        ("[1, 2, 3][2:1]", "[]interface {} []"),
        ("[1, 2, 3][5:9]", "[]interface {} []"),
        ("[1, 2, 3][-9:2]", "[]interface {} [1 2]"),
        ("'hello'[1:3]", "string el"),
        ("{x: {y: 1}}.x.y", "int 1"),
        ("{x: {y: 1}}['x']['y']", "int 1"),
        ("{x: 1}.y", "<nil> <nil>"),
        ("{x: 1}.y?.z", "<nil> <nil>"),
        ("{x: 1}.y?.z.w.v", "<nil> <nil>"),
        ("{x: 1}?.x", "int 1"),
        ("{x: [1]}.x?.[0]", "int 1"),
        ("{x: 1}.y?.[0] ?? 7", "int 7"),
        ("$env.a + $env['b']", "float64 5"),
        ("$env['a' + '']", "float64 2"),
        ("{'in': 1}.in", "int 1"),
        ("[1, 2][a > 1 ? 1 : 0]", "int 2"),
        ("[1, 2, 3, 4][max([a, b])]", "int 4"),
        ("[1, 2, 3][min([a, b]):]", "[]interface {} [3]"),
    ]);
}

#[test]
fn nil_is_only_handled_where_requested() {
    let cases = [
        ("a ?? c", "float64 5"),
        ("a ?? b", "<nil> <nil>"),
        ("a ?? b ?? c", "float64 5"),
        ("(a ?? 1) + (b ?? 2)", "int 3"),
        ("a == nil and b == nil", "bool true"),
        ("count([a, b, c], # != nil)", "int 1"),
        ("[a, b, c] | filter(# != nil) | sum()", "float64 5"),
        ("$env.a ?? 4", "int 4"),
        ("max(a) ?? min(b) ?? 6", "int 6"),
    ];
    for (formula, expected) in cases {
        assert_eq!(result_with_nil(formula).as_deref(), Ok(expected), "{formula}");
    }
    for formula in ["a + 1", "-a", "a > 1", "max(a, c)", "sum([a, c])", "mean([a])", "a ? 1 : 2", "float(a)"]
    {
        let error = result_with_nil(formula).unwrap_or_else(|error| error);
        assert!(error.contains("nil") || formula == "a ? 1 : 2", "{formula}: {error}");
    }
}

#[test]
fn unicode_names_are_allowed() {
    let program = super::Program::compile("ünï + _x * $y", &["ünï", "_x", "$y"].map(str::to_owned)).unwrap();
    let value = program.run(&[1.0, 2.0, 3.0].map(super::Value::Float), super::moment()).unwrap();
    assert_eq!(value.number(), Some(7.0));
    assert!(result("ä").unwrap_err().starts_with("unknown name ä (1:1)"));
}

#[test]
fn first_of_equal_names_counts() {
    let program = super::Program::compile("a + b", &["a", "b", "a"].map(str::to_owned)).unwrap();
    let value = program.run(&[1.0, 2.0, 4.0].map(super::Value::Float), super::moment()).unwrap();
    assert_eq!(value.number(), Some(3.0));
}

#[test]
fn trigger_name_hides_function() {
    let names = ["max".to_owned()];
    assert!(super::Program::compile("max + 1", &names).is_ok());
    let error = super::Program::compile("max(1, 2)", &names).unwrap_err();
    assert_eq!(error.message, "float64 is not callable");
}
