//! The expected values are those of a real API server.

use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "kind": "Probe",
        "metadata": {"name": "x", "labels": {"app.x.io/name": "lab"}},
        "spec": {
            "a b": 3, "a-b": 1, "a_b": 2, "big": 12_345_678_901_234_567_u64, "text": "hello",
            "list": ["a", "b", "c"],
            "map": {"k": "v"},
            "mixed": {"a": "<x>", "f": [1e30, null], "z": 1.5},
            "objs": [
                {"name": "p", "n": 1, "f": true, "alias": "zz"},
                {"name": "q", "n": 2, "f": false, "alias": "q", "o": {"x": "y"}, "r": 1.5},
            ],
        },
    })
}

#[test]
fn paths_find_values() {
    let cases: &[(&str, Value)] = &[
        (".spec.list[:2]", json!("a")),
        (".spec.list[::2]", json!("a")),
        (".spec.list[1:3:2]", json!("b")),
        (
            ".spec.objs[?(@.name=='q')]",
            json!({"name": "q", "n": 2, "f": false, "alias": "q", "o": {"x": "y"}, "r": 1.5}),
        ),
        (".spec.objs[?(@.n==1)].name", json!("p")),
        (".spec.objs[?(@.n>=2)].name", json!("q")),
        (".spec.objs[?(@.n<2)].name", json!("p")),
        (".spec.objs[?(@.n<=1)].name", json!("p")),
        (".spec.objs[?(@.f==true)].name", json!("p")),
        (r#".spec.objs[?(@.o.x=="y")].name"#, json!("q")),
        (".spec.objs[1]['name']", json!("q")),
        (r".metadata.labels.app\.x\.io\/name", json!("lab")),
        (".metadata.name", json!("x")),
        (".spec.objs[*].n", json!(1)),
        (".spec.objs[?(@.f==false)].name", json!("q")),
        (".spec.objs[?(@.r==1.5)].name", json!("q")),
        (".spec.a-b", json!(1)),
        (".spec.a_b", json!(2)),
        (".spec.objs[?(@.name==@.alias)].n", json!(2)),
        (".spec.objs[?( @.n == 1 )].name", json!("p")),
        (r#".spec.list[?(@=="b")]"#, json!("b")),
        (r#".spec.list[?(@!="a")]"#, json!("b")),
        (".spec..n", json!(1)),
        (".spec.map.*", json!("v")),
        (".spec.list[-1:]", json!("c")),
        (".spec.objs[-1:].name", json!("q")),
        (".spec['objs'][0]['name']", json!("p")),
        (".spec.objs[?(@.n!=1)].name", json!("q")),
        (".spec.objs[0,1].name", json!("p")),
        (".kind", json!("Probe")),
        (".spec.big", json!(12_345_678_901_234_567_u64)),
        (".spec.mixed", json!({"a": "<x>", "f": [1e30, null], "z": 1.5})),
        (".spec.list[-2:-1]", json!("b")),
        (".spec.list[1:]", json!("b")),
    ];
    for (path, value) in cases {
        assert_eq!(JsonPath::parse(path).unwrap().first(&object()), Some(value), "{path}");
    }
}

#[test]
fn paths_may_find_nothing() {
    let cases = [
        ".metadata.labels['app.x.io/name']",
        ".spec.objs[0].missing",
        ".spec.objs[?(@.n=='1')].name",
        r#".spec.objs[?(@.missing=="x")].name"#,
        ".spec.text.deeper",
        ".spec.objs.name",
        ".spec.list.0",
        ".",
        ".spec.a b",
        ".spec.list[0:0]",
        ".spec.list[3:1]",
        ".spec.list[0::-1]",
        ".spec.list[*].x",
        ".status.x[?(@.a)]",
        ".spec.text range",
        r#".spec."text""#,
        ".spec.list[5]",
        ".spec.list[-9]",
    ];
    for path in cases {
        assert_eq!(JsonPath::parse(path).unwrap().first(&object()), None, "{path}");
    }
}

#[test]
fn malformed_paths_are_refused() {
    let cases = [
        r#".metadata.labels["app\.x\.io/name"]"#,
        r#".spec["text"]"#,
        r#".spec["a b"]"#,
        ".spec.objs[ 0 ].name",
        ".spec.list[(@.length-1)]",
        ".spec.x[",
        ".spec.list[a]",
        r#".spec.objs[?(@.name=="q" && @.n==2)].name"#,
        r#".spec.objs[?(@.name=~"q")].name"#,
        r#".spec["text"]["y"]"#,
    ];
    for path in cases {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
    assert!(JsonPath::parse(&".a[?(@".repeat(100_000)).is_err());
}
