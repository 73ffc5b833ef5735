#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod reference;

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::kubelet::{MetricsPoint, MissingUsage};

const SENT_AT: Timestamp = Timestamp::constant(1_700_000_000, 123_456_789);
const EXAMPLE: &str = r#"# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="coredns",namespace="kube-system",pod="coredns-558bd4d5db-4dpjz"} 4.710169 1633253812125
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="coredns",namespace="kube-system",pod="coredns-558bd4d5db-4dpjz"} 1.253376e+07 1633253814125
container_start_time_seconds{container="coredns",namespace="kube-system",pod="coredns-558bd4d5db-4dpjz"} 1.633252712e+9
node_cpu_usage_seconds_total 357.35491 1633253809720
node_memory_working_set_bytes 1.616273408e+09 1633253809720
pod_cpu_usage_seconds_total{namespace="kube-system",pod="coredns-558bd4d5db-4dpjz"} 4.67812 1633253803935
resource_scrape_error 0
"#;

fn better(body: &str) -> Result<Scrape, ParseError> {
    parse(body.as_bytes(), SENT_AT, Compat::Better)
}

fn strict(body: &str) -> Result<Scrape, ParseError> {
    parse(body.as_bytes(), SENT_AT, Compat::Strict)
}

/// A container with both families.
fn container(namespace: &str, pod: &str, container: &str) -> String {
    let labels = format!(r#"{{container="{container}",namespace="{namespace}",pod="{pod}"}}"#);
    format!(
        "container_cpu_usage_seconds_total{labels} 5 1000\ncontainer_memory_working_set_bytes{labels} 7 1000\n"
    )
}

#[test]
fn kubelet_example_is_parsed() {
    let mut scrape = better(EXAMPLE).unwrap();
    let node = MetricsPoint {
        start: None,
        time: 1_633_253_809_720_000_000,
        cpu: 357_354_910_000,
        memory: 1_616_273_408,
    };
    assert_eq!(scrape.node, Some(node));
    let pod = &scrape.pods[0];
    assert_eq!((&*pod.namespace, &*pod.name), ("kube-system", "coredns-558bd4d5db-4dpjz"));
    let point = MetricsPoint {
        start: Some(1_633_252_712_000_000_000),
        time: 1_633_253_812_125_000_000,
        cpu: 4_710_169_000,
        memory: 12_533_760,
    };
    assert_eq!(pod.containers, [("coredns".into(), point)]);
    assert_eq!(scrape.incomplete, []);

    scrape.pods[0].containers[0].1.time = 1_633_253_814_125_000_000;
    assert_eq!(strict(EXAMPLE), Ok(scrape), "strictly, the time of the memory counts");
}

#[test]
fn lines_without_timestamp_get_the_request_time() {
    let scrape = better("node_cpu_usage_seconds_total 1\nnode_memory_working_set_bytes 1").unwrap();
    assert_eq!(scrape.node.unwrap().time, 1_700_000_000_123_000_000, "in whole milliseconds");
}

#[test]
fn error_names_the_line() {
    let body = format!("{EXAMPLE}\nwhat is <this>\n");
    assert_eq!(
        strict(&body).unwrap_err().to_string(),
        "failed parsing metrics: line 12: the value is not a number: \"what is <this>\""
    );
    let long = format!("{}\n", "é".repeat(10_000));
    let text = strict(&long).unwrap_err().to_string();
    assert!(text.len() < 250, "{text}");
    let text = strict("a\u{1b}[31m 1\n").unwrap_err().to_string();
    assert!(text.contains(r"\u{1b}"), "{text}");
}

#[test]
fn malformed_line_affects_only_its_container() {
    let good = [container("a", "1", "c"), container("a", "2", "c")].concat();
    for bad in ["<html>", "a 1 -5", "# TYPE a bogus", "container_cpu_usage_seconds_totals{", "\u{0}", "a 1\r"]
    {
        let body = format!("{good}{bad}\n");
        assert_eq!(better(&body), better(&good), "{bad}");
    }
    // Zero time of a broken runtime.
    let late =
        r#"container_cpu_usage_seconds_total{container="c",namespace="a",pod="2"} -6.79e+09 -62135596800000"#;
    let scrape = better(&format!("{good}{late}\n")).unwrap();
    assert_eq!(scrape.pods.len(), 1);
    let left = &scrape.incomplete[0];
    assert_eq!((&*left.name, &*left.container, left.lacks), ("2", "c", MissingUsage::Cpu));
    // Without readable labels the affected container is unknown.
    let unterminated = r#"container_cpu_usage_seconds_total{container="c",namespace="a",pod="#;
    assert!(better(&format!("{good}{unterminated}\n")).is_err());
}

#[test]
fn truncated_response_is_rejected() {
    let body = [container("a", "1", "c"), container("a", "2", "c")].concat();
    for cut in 0..body.len() {
        let (part, rest) = body.split_at(cut);
        let ends = part.ends_with('\n') || rest.starts_with('\n') || part.is_empty();
        let broken = matches!(better(part), Err(ParseError::Line { .. }));
        // A truncated number cannot be recognized.
        let number = part.ends_with(|last: char| last.is_ascii_digit() || last == ' ') && part.contains('}');
        assert!(broken || ends || number, "{part:?}");
    }
}

#[test]
fn invalid_numbers_are_missing() {
    for bad in ["NaN", "+Inf", "-Inf", "-5", "1e300", "0", "-0"] {
        let body = container("a", "1", "c").replace(" 5 ", &format!(" {bad} "));
        for compat in [Compat::Strict, Compat::Better] {
            let scrape = parse(body.as_bytes(), SENT_AT, compat).unwrap();
            assert!(scrape.pods.is_empty(), "{bad}");
            assert_eq!(scrape.incomplete[0].lacks, MissingUsage::Cpu, "{bad}");
        }
    }
    let scrape =
        better("container_start_time_seconds{container=\"c\",namespace=\"a\",pod=\"1\"} NaN\n").unwrap();
    assert_eq!(scrape.incomplete[0].lacks, MissingUsage::Both);
}

#[test]
fn crlf_lines_are_rejected() {
    let body = container("a", "1", "c").replace('\n', "\r\n");
    assert!(matches!(better(&body), Err(ParseError::Line { line: 1, flaw: LineError::End, .. })));
}

#[test]
fn response_without_metrics_is_an_error() {
    let not_measured = "resource_scrape_error 1\nscrape_error 1\n";
    assert_eq!(better(not_measured), Err(ParseError::NotMeasured));
    assert_eq!(better(""), Err(ParseError::Nothing));
    assert_eq!(better("go_goroutines 7\n"), Err(ParseError::Nothing));
    assert!(matches!(better("ok\n<html></html>\n"), Err(ParseError::Line { line: 1, .. })));
    for body in [not_measured, "", "go_goroutines 7\n"] {
        assert_eq!(strict(body), Ok(Scrape::default()));
    }
    let with_others = format!("{EXAMPLE}resource_scrape_error 1\n");
    assert_eq!(better(&with_others), better(EXAMPLE));
}

#[test]
fn labels_are_matched_by_name() {
    let odd = r#"{pod="p",init_container="x",container = "c", note="pod=\"q\"", "namespace"="n",}"#;
    let body = container("a", "1", "c").replace(r#"{container="c",namespace="a",pod="1"}"#, odd);
    let scrape = better(&body).unwrap();
    assert_eq!((&*scrape.pods[0].namespace, &*scrape.pods[0].name), ("n", "p"));
    assert_eq!(&*scrape.pods[0].containers[0].0, "c");
    // Pod totals are not about a container.
    let sum = container("a", "1", "c").replace(r#"container="c","#, "");
    assert_eq!(better(&sum), Err(ParseError::Nothing));
}

#[test]
fn metric_name_is_given_once() {
    for good in [r#"{"a"} 1"#, r#"{b="c","a"} 1"#, r#"a{"b"="c"} 1"#] {
        assert_eq!(strict(good), Ok(Scrape::default()), "{good}");
    }
    for bad in ["{} 1", r#"{"a","b"} 1"#, r#"{"a",b="c","a"} 1"#, r#"a{"b"} 1"#, r#"a{"b",c="d"} 1"#] {
        assert!(strict(bad).is_err(), "{bad}");
    }
}

#[test]
fn indented_samples_are_ignored_strictly() {
    let body = " node_cpu_usage_seconds_total 1\n\tnode_memory_working_set_bytes 1\n";
    assert_eq!(strict(body), Ok(Scrape::default()));
    assert!(better(body).unwrap().node.is_some());
    assert!(strict(" node_cpu_usage_seconds_total x\n").is_err(), "their grammar counts");
}

#[test]
fn line_order_does_not_matter() {
    let mut lines: Vec<String> = Vec::new();
    for (pod, name) in [("1", "a"), ("1", "b"), ("2", "a"), ("3", "c")] {
        lines.extend(container("n", pod, name).lines().map(|line| format!("{line}\n")));
    }
    let wanted = better(&lines.concat()).unwrap();
    assert_eq!(wanted.pods.len(), 3);
    for seed in 1..50_usize {
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by_key(|i| (i * 7919 + 13) * seed % 101);
        let body: String = order.iter().map(|i| lines[*i].as_str()).collect();
        assert_eq!(better(&body).unwrap(), wanted, "{body}");
    }
}

#[test]
fn huge_responses_take_linear_time() {
    const SIZE: usize = 10_000_000;
    let prefix = "container_cpu_usage_seconds_total{";
    let mut labels = prefix.to_owned();
    while labels.len() < SIZE {
        write!(labels, "l{}=\"\\\\\",", labels.len()).unwrap();
    }
    let shapes = [
        "\\".repeat(SIZE),
        "{".repeat(SIZE),
        " ".repeat(SIZE),
        "\n".repeat(SIZE),
        "1".repeat(SIZE),
        format!("node_cpu_usage_seconds_total {}", "9".repeat(SIZE)),
        format!("node_cpu_usage_seconds_total 1 {}", "9".repeat(SIZE)),
        format!("{prefix}{}", "\"\\\"".repeat(SIZE / 3)),
        container(&"n".repeat(SIZE / 2), "p", "c"),
        container("a", "p", "c").repeat(SIZE / 200),
        labels,
    ];
    for body in shapes {
        let _ = (strict(&body), better(&body));
    }
}

/// Fragments of lines.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "container_cpu_usage_seconds_total",
        "container_memory_working_set_bytes",
        "container_start_time_seconds",
        "node_cpu_usage_seconds_total",
        "node_memory_working_set_bytes",
        "resource_scrape_error",
        "a",
        "b:c",
        "_",
        "{",
        "}",
        "=",
        ",",
        "\"",
        "\\",
        " ",
        "\t",
        "\r",
        "\0",
        "#",
        "# HELP ",
        "# TYPE ",
        "counter",
        "gauge",
        "é",
        "1",
        "0",
        "-1",
        "1.5e3",
        "NaN",
        "+nan",
        "-Inf",
        "1e400",
        "9223372036854775807",
        "9300000000000",
        "0x1",
        "1_0",
        "container=\"c\"",
        "namespace=\"n\"",
        "pod=\"p\"",
        "\"pod\"=\"q\"",
        "pod = \"\\\"\"",
        "mypod=\"z\"",
    ]);
    prop_oneof![4 => fixed.prop_map(str::to_owned), 1 => "[ -~]{0,3}"]
}

/// Mostly valid lines.
fn useful() -> impl Strategy<Value = String> {
    let family = prop::sample::select(vec![
        "container_cpu_usage_seconds_total",
        "container_memory_working_set_bytes",
        "container_start_time_seconds",
    ]);
    let value = prop::sample::select(vec![
        "1",
        "2.5",
        "0",
        "-3",
        "NaN",
        "x",
        "1e30",
        "1 5",
        "3 7",
        "4 -1",
        "5 9300000000000",
    ]);
    let container = (family, "[ab]", "[ab]", "[ab]", value.clone()).prop_map(|(family, c, n, p, value)| {
        format!("{family}{{container=\"{c}\",namespace=\"{n}\",pod=\"{p}\"}} {value}")
    });
    let node = prop::sample::select(vec![
        "node_cpu_usage_seconds_total",
        "node_memory_working_set_bytes",
        "resource_scrape_error",
    ]);
    prop_oneof![3 => container, 1 => (node, value).prop_map(|(node, value)| format!("{node} {value}"))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn parser_agrees_with_reference(
        lines in prop::collection::vec(
            prop_oneof![useful(), prop::collection::vec(piece(), 0..9).prop_map(|pieces| pieces.concat())], 0..14),
        ended in any::<bool>(),
    ) {
        let mut body = lines.join("\n");
        if ended {
            body.push('\n');
        }
        for compat in [Compat::Strict, Compat::Better] {
            let quick = parse(body.as_bytes(), SENT_AT, compat).map_err(drop);
            prop_assert_eq!(quick, reference::parse(body.as_bytes(), SENT_AT, compat), "{:?}: {:?}", compat, body);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = (parse(&body, SENT_AT, Compat::Strict), parse(&body, SENT_AT, Compat::Better));
    }
}
