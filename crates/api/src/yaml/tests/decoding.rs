use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct DecodedAutoscaler {
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Spec {
    min_replicas: Option<i32>,
    max_replicas: i32,
    #[serde(default)]
    metrics: Vec<Metric>,
    #[serde(default)]
    paused: bool,
    ratio: Option<f64>,
    order: Option<Order>,
    load: Option<Load>,
    extra: Option<serde_json::Value>,
    pair: Option<(u8, u8)>,
    amount: Option<Amount>,
    ports: Option<BTreeMap<u16, Order>>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Metric {
    name: String,
    target: Target,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Target {
    average_utilization: Option<i32>,
}

#[derive(Debug, Deserialize, PartialEq)]
enum Order {
    Max,
    Min,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Load {
    Idle,
    Steady(u32),
    Ramp { from: u32, to: u32 },
}

/// Accepts numbers and texts, as a quantity does.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(try_from = "serde_json::Value")]
struct Amount(String);

impl TryFrom<serde_json::Value> for Amount {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        match value {
            serde_json::Value::Number(number) => Ok(Self(number.to_string())),
            serde_json::Value::String(text) if text.ends_with('m') => Ok(Self(text)),
            other => Err(format!("quantities look like 100m, not {other}")),
        }
    }
}

fn shown<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> Vec<String> {
    let problems = document(text).decode::<T>().expect_err(text);
    problems.iter().map(|problem| problem.render(false)).collect()
}

/// The complaint about one line of a spec that is otherwise good.
fn spec(line: &str) -> String {
    let shown = shown::<DecodedAutoscaler>(&format!("kind: A\nspec:\n  maxReplicas: 3\n  {line}\n"));
    assert_eq!(shown.len(), 1, "{shown:?}");
    shown[0].clone()
}

#[test]
fn a_good_document_is_read() {
    let text = "
kind: A
metadata:
  labels:
spec:
  minReplicas:
  maxReplicas: 10.0
  ratio: 2
  order: Min
  load: {ramp: {from: 1, to: 2}}
  pair: [1, 2]
  amount: 5
  ports: {80: Max}
  extra: {a: [1, null]}
  metrics:
  - name: cpu
    target: {averageUtilization: 60}
";
    let read: DecodedAutoscaler = document(text).decode().unwrap();
    assert_eq!((read.spec.min_replicas, read.spec.max_replicas, read.spec.ratio), (None, 10, Some(2.0)));
    assert_eq!(read.spec.order, Some(Order::Min));
    assert_eq!(read.spec.load, Some(Load::Ramp { from: 1, to: 2 }));
    assert_eq!(read.spec.amount, Some(Amount("5".into())));
    assert_eq!(read.spec.ports, Some(BTreeMap::from([(80, Order::Max)])));
    assert_eq!(read.spec.extra, Some(serde_json::json!({"a": [1, null]})));
    assert_eq!(read.spec.metrics[0].target.average_utilization, Some(60));
    assert_eq!(document("idle").decode::<Load>().unwrap(), Load::Idle);
    assert_eq!(document("steady: 5").decode::<Load>().unwrap(), Load::Steady(5));
}

#[test]
fn every_unknown_field_is_reported() {
    let text = "
kind: A
metdata: {}
spec:
  maxReplicas: 3
  metrics:
  - name: cpu
    target:
      averageUtilisation: 60
      completelyDifferent: 1
";
    let shown = shown::<DecodedAutoscaler>(text);
    assert_eq!(shown.len(), 3);
    assert_shown(
        &shown[0],
        "
        error: shop.yaml:3:1: unknown field `metdata`
          |
        3 | metdata: {}
          | ^^^^^^^ did you mean `metadata`?",
    );
    assert_shown(
        &shown[1],
        "
        error: shop.yaml:9:7: unknown field `averageUtilisation` in spec.metrics[0].target
          |
        9 |       averageUtilisation: 60
          |       ^^^^^^^^^^^^^^^^^^ did you mean `averageUtilization`?",
    );
    assert_shown(
        &shown[2],
        "
        error: shop.yaml:10:7: unknown field `completelyDifferent` in spec.metrics[0].target
           |
        10 |       completelyDifferent: 1
           |       ^^^^^^^^^^^^^^^^^^^",
    );
    assert!(document(text).decode_lenient::<DecodedAutoscaler>().is_ok());
}

#[test]
fn decoding_continues_after_an_error() {
    let text = "
kind: [A]
metadata:
  labels: {a: 1, b: c, d: yes}
spec:
  maxReplicas: x
  minReplica: 1
  pair: [1, no]
  metrics:
  - {name: cpu, target: {}, tarjet: 1}
  - {name: cpu, target: none}
  - {target: {averageUtilization: 5.5}}
  order: Mix
  ports: {x: Max, 1: Mid}
  load: {idle: 1}
  amount: x
";
    let problems = document(text).decode::<DecodedAutoscaler>().unwrap_err();
    let messages: Vec<_> =
        problems.iter().map(|problem| problem.to_string().replace("shop.yaml:", "")).collect();
    let expected = [
        "2:1: expected a string, found a list in kind",
        "4:15: expected a string, found the integer 1 in metadata.labels.a",
        "4:27: expected a string, found `yes`, which means true in metadata.labels.d",
        "6:16: expected an integer, found the string \"x\" in spec.maxReplicas",
        "7:3: unknown field `minReplica` in spec",
        "8:13: expected an integer, found `no`, which means false in spec.pair[1]",
        "10:29: unknown field `tarjet` in spec.metrics[0]",
        "11:25: expected a map, found the string \"none\" in spec.metrics[1].target",
        "12:6: missing field `name` in spec.metrics[2]",
        "12:35: expected an integer, found the number 5.5 in spec.metrics[2].target.averageUtilization",
        "13:10: unknown value `Mix` in spec.order",
        "14:11: expected an integer, found the string \"x\" in spec.ports",
        "14:22: unknown value `Mid` in spec.ports.1",
        "15:16: expected no value, found the integer 1 in spec.load.idle",
        "16:11: quantities look like 100m, not \"x\" in spec.amount",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn a_misspelt_field_is_not_also_missing() {
    let text = "kind: A\nspec: {maxReplica: 3}\n";
    assert_shown(
        &shown::<DecodedAutoscaler>(text).join("\n"),
        "
        error: shop.yaml:2:8: unknown field `maxReplica` in spec
          |
        2 | spec: {maxReplica: 3}
          |        ^^^^^^^^^^ did you mean `maxReplicas`?",
    );
}

#[test]
fn missing_fields_point_at_the_map() {
    assert_shown(
        &spec("metrics: [{target: {}}]"),
        "
        error: shop.yaml:4:14: missing field `name` in spec.metrics[0]
          |
        4 |   metrics: [{target: {}}]
          |              ^^^^^^",
    );
    assert_shown(
        &shown::<DecodedAutoscaler>("kind: A\nspec:\n  maxReplicas:\n")[0],
        "
        error: shop.yaml:3:3: field `maxReplicas` has no value in spec
          |
        3 |   maxReplicas:
          |   ^^^^^^^^^^^",
    );
    assert!(
        shown::<DecodedAutoscaler>("kind: A")[0].starts_with("error: shop.yaml:1:1: missing field `spec`\n")
    );
}

#[test]
fn wrong_types_name_the_expected_type() {
    let table = [
        ("minReplicas: ten", "4:16: expected an integer, found the string \"ten\" in spec.minReplicas", ""),
        (
            "minReplicas: '10'",
            "4:16: expected an integer, found the string \"10\" in spec.minReplicas",
            "remove the quotes",
        ),
        ("minReplicas: 1.5", "4:16: expected an integer, found the number 1.5 in spec.minReplicas", ""),
        ("minReplicas: [1]", "4:3: expected an integer, found a list in spec.minReplicas", ""),
        (
            "minReplicas: 3000000000",
            "4:16: the integer 3000000000 is out of range: expected -2147483648 to 2147483647 in spec.minReplicas",
            "",
        ),
        ("pair: [1, -1]", "4:13: the integer -1 is out of range: expected 0 to 255 in spec.pair[1]", ""),
        ("pair: [1, 2, 3]", "4:3: expected a list of 2, found a list of 3 in spec.pair", ""),
        ("pair: [1]", "4:3: expected a list of 2, found a list of 1 in spec.pair", ""),
        (
            "paused: 'true'",
            "4:11: expected true or false, found the string \"true\" in spec.paused",
            "remove the quotes",
        ),
        ("ratio: much", "4:10: expected a number, found the string \"much\" in spec.ratio", ""),
        ("metrics: {a: b}", "4:3: expected a list, found a map in spec.metrics", ""),
        ("metrics: [cpu]", "4:13: expected a map, found the string \"cpu\" in spec.metrics[0]", ""),
        ("metrics: [[a, b]]", "4:14: expected a map, found a list in spec.metrics[0]", ""),
        (
            "metrics: [{name: 5, target: {}}]",
            "4:20: expected a string, found the integer 5 in spec.metrics[0].name",
            "quote it: \"5\"",
        ),
        ("order: Mx", "4:10: unknown value `Mx` in spec.order", "did you mean `Max`?"),
        ("order: Median", "4:10: unknown value `Median` in spec.order", "expected one of `Max`, `Min`"),
        ("order: 1", "4:10: expected one of `Max`, `Min`, found the integer 1 in spec.order", ""),
        (
            "load: {ramp: {from: 1, to: x}}",
            "4:30: expected an integer, found the string \"x\" in spec.load.ramp.to",
            "",
        ),
        (
            "load: {ramp: {from: 1, to: 2, too: 3}}",
            "4:33: unknown field `too` in spec.load.ramp",
            "did you mean `to`?",
        ),
        ("load: {rampe: 1}", "4:10: unknown value `rampe` in spec.load", "did you mean `ramp`?"),
        ("load: {a: 1, b: 2}", "4:3: expected one of `idle`, `steady`, `ramp`, found a map in spec.load", ""),
        ("load: steady", "4:9: expected a map, found the string \"steady\" in spec.load", ""),
        ("load: {idle: 1}", "4:16: expected no value, found the integer 1 in spec.load.idle", ""),
        ("amount: 5x", "4:11: quantities look like 100m, not \"5x\" in spec.amount", ""),
        ("ports: {http: Max}", "4:11: expected an integer, found the string \"http\" in spec.ports", ""),
        (
            "ports: {70000: Max}",
            "4:11: the integer 70000 is out of range: expected 0 to 65535 in spec.ports",
            "",
        ),
        ("ports: {80: Mux}", "4:15: unknown value `Mux` in spec.ports.80", "did you mean `Max`?"),
    ];
    for (line, message, hint) in table {
        let shown = spec(line);
        assert_eq!(shown.lines().next(), Some(&*format!("error: shop.yaml:{message}")), "{line}");
        let last = shown.lines().last().unwrap_or_default();
        assert_eq!(last.trim_start_matches([' ', '|', '^']), hint, "{shown}");
    }
}

#[test]
fn labels_that_are_not_strings_must_be_quoted() {
    let text = "kind: A\nmetadata:\n  labels:\n    app.kubernetes.io/version: 1.0\nspec: {maxReplicas: 1}\n";
    assert_shown(
        &shown::<DecodedAutoscaler>(text)[0],
        r#"
        error: shop.yaml:4:32: expected a string, found the number 1.0 in metadata.labels[app.kubernetes.io/version]
          |
        4 |     app.kubernetes.io/version: 1.0
          |                                ^^^ quote it: "1.0""#,
    );
    assert_shown(
        &shown::<BTreeMap<String, String>>("a: yes")[0],
        r#"
        error: shop.yaml:1:4: expected a string, found `yes`, which means true in a
          |
        1 | a: yes
          |    ^^^ quote it: "yes""#,
    );
}

#[test]
fn a_struct_is_not_decoded_from_a_list() {
    for text in ["- A\n- {}\n", "5", "text"] {
        assert!(shown::<DecodedAutoscaler>(text)[0].contains("expected a map, found"), "{text}");
    }
}

#[test]
fn errors_inside_aliases_point_at_the_anchor() {
    let text = "a: &m {avg: 1}\nb: *m\n";
    let shown = shown::<BTreeMap<String, Target>>(text);
    assert_eq!(shown.len(), 2);
    assert!(shown.iter().all(|shown| shown.starts_with("error: shop.yaml:1:8: unknown field `avg` in ")));
}

#[test]
fn paths_are_located_or_their_nearest_parent() {
    let document =
        document("kind: A\nmetadata:\n  labels: {foo: bar, a.b/c: d}\nspec:\n  metrics:\n  - name: cpu\n");
    let table = [
        ("", 1, 1),
        ("kind", 1, 7),
        ("metadata.labels[foo]", 3, 17),
        ("metadata.labels[a.b/c]", 3, 29),
        ("metadata.labels", 3, 3),
        ("metadata.annotations", 2, 1),
        ("spec.metrics[0].name", 6, 11),
        ("spec.metrics[0].resource.name", 6, 5),
        ("spec.metrics[7].name", 5, 3),
        ("spec.metrics[x", 5, 3),
        ("status..[]", 1, 1),
    ];
    for (path, line, column) in table {
        let span = document.locate(path);
        assert_eq!((span.line, span.column), (line, column), "{path}");
    }
    let problem = document.problem("spec.metrics[0].name", "spec.metrics[0].name: Invalid value");
    assert_eq!(problem.to_string(), "shop.yaml:6:11: spec.metrics[0].name: Invalid value");
    assert_eq!(document.root.get("spec.metrics[0].name").and_then(Node::as_str), Some("cpu"));
    assert_eq!(document.root.get("spec.metrics[1]"), None);
}

#[test]
fn lists_are_split_into_documents() {
    let items = document("kind: List\nitems:\n- kind: A\n- kind: B\n").into_items();
    let kinds: Vec<_> = items.iter().filter_map(|item| item.root.get("kind")?.as_str()).collect();
    assert_eq!(kinds, ["A", "B"]);
    assert_eq!(document("kind: A").into_items().len(), 1);
}
