//! Results of functions.

use super::{refused, yields};

#[test]
fn numbers() {
    yields(&[
        ("abs(-5)", "int 5"),
        ("abs(-1.5)", "float64 1.5"),
        ("ceil(1.2)", "float64 2"),
        ("ceil(3)", "float64 3"),
        ("floor(-1.2)", "float64 -2"),
        ("round(2.5)", "float64 3"),
        ("round(-2.5)", "float64 -3"),
        ("int(2.9)", "int 2"),
        ("int(-2.9)", "int -2"),
        ("int('12')", "int 12"),
        ("float('1.25')", "float64 1.25"),
        ("float(3)", "float64 3"),
        ("string(2.0)", "string 2"),
        ("string(nil)", "string <nil>"),
        ("string([1, {x: 'y'}])", "string [1 map[x:y]]"),
        ("type(nil) + type(true) + type(1) + type(1.0)", "string nilboolintfloat"),
        ("type('') + type([]) + type({})", "string stringarraymap"),
        ("type(now()) + type(duration('1s'))", "string time.Timetime.Duration"),
        ("len('héllo') + len([1]) + len({x: 1})", "int 7"),
    ]);
}

#[test]
fn aggregates() {
    yields(&[
        ("max(1, 2.5)", "float64 2.5"),
        ("max(3, 2.5)", "int 3"),
        ("max([1, [2, 3]], 4)", "int 4"),
        ("max([])", "<nil> <nil>"),
        ("min(a, b, c)", "float64 2"),
        ("min([5, 4])", "int 4"),
        ("mean(1, 2)", "float64 1.5"),
        ("mean([1, 2, 3])", "float64 2"),
        ("mean([])", "float64 0"),
        ("median(3, 1, 2)", "float64 2"),
        ("median([1, 2, 3, 4])", "float64 2.5"),
        ("median([])", "float64 0"),
        ("sum([1, 2.5])", "float64 3.5"),
        ("sum([])", "int 0"),
        ("sum([a])", "float64 2"),
        // With an item that is no literal, expr computes 0.1 + (0.1 + 0.6); of literals each is added to the sum so far.
        ("sum([a * 0.05, 0.1, 0.6])", "float64 0.7999999999999999"),
        ("sum([0.1, 0.1, 0.6])", "float64 0.8"),
        ("sum([-0.1, +0.1, 0.3 * 2])", "float64 0.6"),
        ("sum(1..4)", "int 10"),
        ("sum([1, 2], # * 10)", "int 30"),
        ("count([true, false, true])", "int 2"),
        ("count([a, b, c], # > 2)", "int 2"),
    ]);
}

#[test]
fn searches() {
    yields(&[
        ("all([1, 2], # > 0)", "bool true"),
        ("all([], # > 0)", "bool true"),
        ("any([1, 2], # > 1)", "bool true"),
        ("any([], # > 1)", "bool false"),
        ("none([1, 2], # > 2)", "bool true"),
        ("one([1, 2], # > 1)", "bool true"),
        ("one([1, 2], # > 0)", "bool false"),
        ("find([1, 2, 3], # > 1)", "int 2"),
        ("find([1], # > 1)", "<nil> <nil>"),
        ("findIndex([1, 2, 3], # > 1)", "int 1"),
        ("findLast([1, 2, 3], # > 1)", "int 3"),
        ("findLastIndex([1, 2, 3], # < 3)", "int 1"),
        ("findLastIndex([1], # > 3)", "<nil> <nil>"),
    ]);
}

#[test]
fn arrays() {
    yields(&[
        ("first([1, 2])", "int 1"),
        ("first([])", "<nil> <nil>"),
        ("last([1, 2])", "int 2"),
        ("take([1, 2, 3], 2)", "[]interface {} [1 2]"),
        ("take([1], 5)", "[]interface {} [1]"),
        ("reverse([1, 2])", "[]interface {} [2 1]"),
        ("uniq([1, 2, 1, 1.0])", "[]interface {} [1 2]"),
        ("concat([1], [2], [3])", "[]interface {} [1 2 3]"),
        ("flatten([1, [2, [3, []]]])", "[]interface {} [1 2 3]"),
        ("sort([3, 1.5, 2])", "[]interface {} [1.5 2 3]"),
        ("sort([3, 1, 2], 'desc')", "[]interface {} [3 2 1]"),
        ("sort(['b', 'a'])", "[]interface {} [a b]"),
        ("sortBy([{n: 2}, {n: 1}], .n)", "[]interface {} [map[n:1] map[n:2]]"),
        ("sortBy([1, 3, 2], #, 'desc')", "[]interface {} [3 2 1]"),
        ("groupBy([1, 2, 3], # > 1)[true]", "[]interface {} [2 3]"),
        ("len(groupBy([1], # > 1)[true])", "int 0"),
        ("groupBy(['a', 'bb', 'c'], len(#))[1]", "[]interface {} [a c]"),
        ("map([1, 2], string(#))", "[]interface {} [1 2]"),
    ]);
}

#[test]
fn maps_and_json() {
    yields(&[
        ("keys({b: 1, a: 2})", "[]interface {} [a b]"),
        ("values({b: 1, a: 2})", "[]interface {} [2 1]"),
        ("toPairs({b: 1, a: 2})", "[]interface {} [[a 2] [b 1]]"),
        ("fromPairs([['x', 1], ['y', 2]])", "map[string]interface {} map[x:1 y:2]"),
        ("fromPairs(toPairs({x: 1})) == {x: 1}", "bool true"),
        ("get({x: 1}, 'x')", "int 1"),
        ("get({x: 1}, 'y')", "<nil> <nil>"),
        ("get([1, 2], 5)", "<nil> <nil>"),
        ("get([1, 2], -1)", "int 2"),
        ("fromJSON('{\"k\": [1, \"x\", null]}').k", "[]interface {} [1 x <nil>]"),
        ("type(fromJSON('1'))", "string float"),
        ("toJSON([1, 2])", "string [\n  1,\n  2\n]"),
        ("toJSON({b: '<', a: 1.5})", "string {\n  \"a\": 1.5,\n  \"b\": \"\\u003c\"\n}"),
        ("toJSON([])", "string []"),
        ("toJSON(1e21)", "string 1e+21"),
        ("toJSON(1e-7)", "string 1e-7"),
        ("fromJSON(toJSON({x: [1]})).x[0]", "float64 1"),
    ]);
}

#[test]
fn texts() {
    yields(&[
        ("trim('  x ')", "string x"),
        ("trim('__x_', '_')", "string x"),
        ("trimPrefix('abc', 'a')", "string bc"),
        ("trimPrefix(' abc') + trimSuffix('abc ')", "string abcabc"),
        ("trimSuffix('abc', 'x')", "string abc"),
        ("upper('ä') + lower('Ä')", "string Ää"),
        ("split('a,b,c', ',')", "[]interface {} [a b c]"),
        ("split('a,b,c', ',', 2)", "[]interface {} [a b,c]"),
        ("split('abc', '')", "[]interface {} [a b c]"),
        ("len(split('a', ',', 0))", "int 0"),
        ("splitAfter('a,b,c', ',')", "[]interface {} [a, b, c]"),
        ("splitAfter('a,b,c', ',', 2)", "[]interface {} [a, b,c]"),
        ("replace('aXaX', 'X', 'y')", "string ayay"),
        ("replace('aXaX', 'X', 'y', 1)", "string ayaX"),
        ("repeat('ab', 3)", "string ababab"),
        ("join(['a', 'b'], '-')", "string a-b"),
        ("join(['a', 'b'])", "string ab"),
        ("indexOf('abca', 'a') + lastIndexOf('abca', 'a')", "int 3"),
        ("indexOf('abc', 'x')", "int -1"),
        ("hasPrefix('abc', 'ab') and hasSuffix('abc', 'bc')", "bool true"),
        ("toBase64('Hello')", "string SGVsbG8="),
        ("toBase64('')", "string "),
        ("fromBase64('SGVsbG8=')", "string Hello"),
        ("fromBase64(toBase64('äöü€'))", "string äöü€"),
    ]);
    refused(&[
        ("fromBase64('x')", "illegal base64 data"),
        ("repeat('a', -1)", "invalid argument for repeat"),
        ("join([1])", "invalid argument for join (type int)"),
    ]);
}

#[test]
fn bits() {
    yields(&[
        ("bitand(6, 3)", "int 2"),
        ("bitor(6, 3)", "int 7"),
        ("bitxor(6, 3)", "int 5"),
        ("bitnand(7, 2)", "int 5"),
        ("bitnot(0)", "int -1"),
        ("bitshl(1, 4)", "int 16"),
        ("bitshl(1, 64)", "int 0"),
        ("bitshr(-16, 2)", "int -4"),
        ("bitshr(-1, 99)", "int -1"),
        ("bitushr(16, 1)", "int 8"),
        ("bitushr(-1, 63)", "int 1"),
    ]);
    refused(&[("bitshl(1, -1)", "invalid operation: negative shift count")]);
}

#[test]
fn times() {
    yields(&[
        ("duration('1h30m').Minutes()", "float64 90"),
        ("duration('1m').Seconds()", "float64 60"),
        ("duration('1500ms').Milliseconds()", "int 1500"),
        ("string(duration('90s'))", "string 1m30s"),
        ("duration('1h') + duration('30m') > duration('1h')", "bool true"),
        ("(duration('1h') * 2).Hours()", "float64 2"),
        ("duration('1m') * a", "float64 120000000000"),
        ("float(0.5 * duration('1m'))", "float64 30000000000"),
        ("now().Year()", "int 2026"),
        ("now().Hour() * 100 + now().Minute()", "int 1020"),
        ("now().Weekday()", "int 5"),
        ("now().Unix()", "int 1786702830"),
        ("(now() - now()).Seconds()", "float64 0"),
        ("(now() + duration('1h')).Hour()", "int 11"),
        ("now() > date('2026-01-01')", "bool true"),
        ("date('2023-08-14').Month()", "int 8"),
        ("date('2023-08-14T10:00:00Z').Day()", "int 14"),
        ("date('2023-08-14T10:00:00+02:00').UTC().Hour()", "int 8"),
        ("date('2023-08-14 10:20:30').Second()", "int 30"),
        ("date('15:04:05').Hour()", "int 15"),
        ("date('Mon, 14 Aug 2023 10:20:30 GMT').YearDay()", "int 226"),
        ("date('14/08/2023', '02/01/2006').Day()", "int 14"),
        ("now().Format('2006-01-02')", "string 2026-08-14"),
        ("now().AddDate(0, 1, 0).Month()", "int 9"),
        ("date('2026-01-31').AddDate(0, 1, 0).Format('01-02')", "string 03-03"),
        ("date('2024-02-29').AddDate(1, 0, 0).Format('01-02')", "string 03-01"),
        ("date('2026-03-31T08:00:00Z').AddDate(0, -1, 1).Format('01-02 15')", "string 03-04 08"),
        // Multiples of a unit are counted from the year 1, which began on a Monday.
        ("now().Truncate(duration('168h')).Format('2006-01-02 15:04')", "string 2026-08-10 00:00"),
        ("now().Round(duration('168h')).Format('2006-01-02 15:04')", "string 2026-08-17 00:00"),
        ("now().Truncate(duration('1h')).Minute()", "int 0"),
        ("now().Truncate(duration('0s')) == now()", "bool true"),
        ("now().Sub(date('2026-08-14')).Hours() > 10", "bool true"),
        ("now().In(timezone('UTC')).Hour()", "int 10"),
        ("now(timezone('Europe/Berlin')).Hour()", "int 12"),
        ("string(timezone('UTC'))", "string UTC"),
    ]);
    refused(&[
        ("duration('x')", "time: invalid duration \"x\""),
        ("date('yesterday')", "invalid date yesterday"),
        ("now().Nonsense()", "type time.Time has no method Nonsense"),
        ("timezone('Nowhere/Land')", "unknown time zone Nowhere/Land"),
    ]);
}
