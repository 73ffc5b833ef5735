#![allow(clippy::unwrap_used)]

use super::*;

fn args() -> QueryArgs {
    QueryArgs {
        series: "http_requests_total".to_owned(),
        label_matchers: "a=\"b\",namespace=\"default\"".to_owned(),
        label_values_by_name: [("a", "b"), ("namespace", "default")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        group_by: "pod,container".to_owned(),
        group_by_slice: vec!["pod".to_owned(), "container".to_owned()],
    }
}

fn run(text: &str) -> Result<String, TemplateError> {
    Template::parse("metrics-query", text)?.query(&args())
}

#[test]
fn output_equals_go() {
    for (text, expected) in [
        ("plain >> text", "plain >> text"),
        ("a <<- .Series ->>  b", "ahttp_requests_totalb"),
        ("<<- /* c */ ->> x", "x"),
        ("<</* c */>>x<</* d */ ->> y", "xy"),
        ("<</**/>>x<</*/*/>>y", "xy"),
        ("<<.Series | >>|<<(.Series |)>>|<<.Series | len|>>", "http_requests_total|http_requests_total|19"),
        ("<<range $i, $g := .GroupBySlice>><<if $i>>,<<end>><<$g>><<end>>", "pod,container"),
        ("<<range .LabelValuesByName>><<.>>;<<end>>", "b;default;"),
        ("<<range $i := 3>><<if eq $i 1>><<continue>><<end>><<$i>><<end>>", "02"),
        ("<<range 0>>x<<else>>none<<end>>", "none"),
        (
            "<<with $x := .GroupBy>><<$x>>/<<.>>/<<$.Series>><<end>>",
            "pod,container/pod,container/http_requests_total",
        ),
        ("<<if .LabelValuesByName.nope>>a<<else if .Series>>b<<else>>c<<end>>", "b"),
        ("<<$x := 1>><<if true>><<$x = 2>><<$y := 3>><<end>><<$x>>", "2"),
        ("<<.LabelValuesByName.nope>>|<<index .LabelValuesByName \"nope\">>", "<no value>|"),
        ("<<.LabelValuesByName.nope.more>>", "<no value>"),
        ("<<print .LabelValuesByName.nope 1 2 \"x\" 3>>", "<nil> 1 2x3"),
        (
            "<<html .LabelValuesByName.nope>>|<<.LabelValuesByName.nope | urlquery>>|<<js .LabelValuesByName.nope 1>>",
            "&lt;no value&gt;|%3Cno+value%3E|\\u003Cno value\\u003E1",
        ),
        (
            "<<printf \"%05d|%-4s|%q|%v|%.2f|%x\" 42 \"ab\" .GroupBySlice true 1.5 \"hi\">>",
            "00042|ab  |[\"pod\" \"container\"]|true|1.50|6869",
        ),
        ("<<printf \"%d %s\" .Series>>", "%!d(string=http_requests_total) %!s(MISSING)"),
        ("<<printf \"%s\" \"a\" 1>>", "a%!(EXTRA int=1)"),
        ("<<printf \"%[2]s %[1]s\" \"a\" \"b\">>", "b a"),
        ("<<(index .GroupBySlice 1) | printf \"%s!\">>", "container!"),
        ("<<len .LabelValuesByName>>-<<slice .Series 0 4>>", "2-http"),
        ("<<define \"x\">>[<<.>>]<<end>><<template \"x\" .GroupBy>>", "[pod,container]"),
        ("<<1e3>> <<0x1F>> <<'a'>> <<1.5>> <<1e21>> <<-7>> <<1_000>>", "1000 31 97 1.5 1e+21 -7 1000"),
        ("<<`raw\\n`>><<\"\\u00e9\\x41\">>", "raw\\né\u{41}"),
        ("<<and 1 \"\" (index .GroupBySlice 9)>>|<<or 0 \"x\">>", "|x"),
        ("<<le 1 1>> <<gt \"b\" \"a\">> <<eq .Series \"x\" .Series>>", "true true true"),
    ] {
        assert_eq!(run(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn parse_errors_equal_go() {
    for text in [
        "<<",
        "<<.Series",
        "<<end>>",
        "<<else>>",
        "<<if .Series>>x",
        "<<if>>x<<end>>",
        "<<range>>",
        "<<foo>>",
        "<<$x>>",
        "<<break>>",
        "<<range 3>><<end>><<break>>",
        "<<(>>",
        "<<)>>",
        "<<\"a>>",
        "<<'ab'>>",
        "<<.Series | 3>>",
        "<<| .Series>>",
        "<</* x>>",
        "<</*/>>",
        "<</* x */ .Series>>",
        "<< /* x */>>",
        "<<-  /* x */>>",
        "<<- ->>",
        "<<if 1>><<define \"x\">><<end>><<end>>",
        "<<template>>",
        "<<block \"x\">><<end>>",
        "<<$a, $b := 1>>",
        "<<< .Series>>",
        "<<1i>>",
        "<<1x>>",
        "<<.Series:>>",
        "<<if 1>><<else>><<else>><<end>>",
        "<<with 1>><<else if 2>><<end>>",
        "<<define \"a\">>x<<end>><<define \"a\">>y<<end>>",
        "<<true.x>>",
        "<<.Series!>>",
        "<<if $x := 1>><<end>><<$x>>",
        "<<>>",
    ] {
        assert!(Template::parse("metrics-query", text).is_err(), "{text}");
    }
}

#[test]
fn execution_errors_equal_go() {
    for text in [
        "<<.Nope>>",
        "<<.Series.Foo>>",
        "<<index .GroupBySlice 2>>",
        "<<index .GroupBySlice -1>>",
        "<<eq 1 1.0>>",
        "<<call .Series>>",
        "<<nil>>",
        "<<.Series 1>>",
        "<<1 | .Series>>",
        "<<len 3>>",
        "<<range .Series>><<end>>",
        "<<template \"nope\">>",
        "<<lt true false>>",
        "<<index .LabelValuesByName 1>>",
        "<<printf 3>>",
        "<<not>>",
        "<<slice .Series 3 1>>",
        "<<$x = 1>>",
        "<<18446744073709551615>>",
        "<<eq .GroupBySlice .GroupBySlice>>",
        "<<range $a, $b := 3>><<end>>",
        "<<len .>>",
    ] {
        let template = Template::parse("metrics-query", text).unwrap();
        assert!(template.query(&args()).is_err(), "{text}");
    }
}

#[test]
fn label_templates_have_group_and_resource() {
    let resource = GroupResource { group: "apps".to_owned(), resource: "deployment".to_owned() };
    let run = |text: &str| Template::parse("resource-label", text).unwrap().label(&resource);
    assert_eq!(run("kube_<<.Group>>_<<.Resource>>").unwrap(), "kube_apps_deployment");
    assert_eq!(run("<<.String>>|<<.>>|<<.Empty>>").unwrap(), "deployment.apps|deployment.apps|false");
    assert!(run("<<.Name>>").is_err());
}

#[test]
fn execution_is_bounded() {
    for text in [
        "<<range 1000000000>><<end>>",
        "<<range 1000000000>>xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx<<end>>",
        "<<define \"x\">><<template \"x\">><<end>><<template \"x\">>",
        "<<$x := \"xxxxxxxxxx\">><<range 99>><<$x = print $x $x>><<end>>",
        "<<range 1000>><<printf \"%9999d\" 1>><<end>>",
        "<<range 1000>><<range 1000>><<range 1000>><<end>><<end>><<end>>",
    ] {
        assert!(run(text).is_err(), "{text}");
    }
    for deep in ["<<if 1>>".repeat(5000), "(".repeat(9000), "<<if 1>><<else if 1>>".repeat(999)] {
        assert!(run(&deep).is_err() || deep.starts_with('('));
        assert!(run(&format!("<<{deep}")).is_err());
    }
}

#[test]
fn used_fields_are_reported() {
    let template = Template::parse("metrics-query", "<<if (eq $.GroupBy \"\")>><<.Nope.x>><<end>>").unwrap();
    assert!(template.uses("GroupBy") && !template.uses("Series"));
    assert_eq!(template.unknown_fields(), ["Nope"]);
}
