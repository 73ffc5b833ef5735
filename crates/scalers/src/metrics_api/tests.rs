//! Numbers in responses of all formats.
use std::sync::{Arc, Mutex};
use std::thread::current;

use proptest::prelude::*;

use super::query::{self, Format, Service};
use crate::test_support::{
    FakeCluster, ServerAction, backends, read as read_trigger, server, texts, trigger, value,
};
use crate::{Trigger, off_thread, table};

fn json(body: &str, location: &str) -> Result<f64, String> {
    query::read(Format::Json, body.as_bytes(), location).map_err(|error| error.message)
}

#[test]
fn paths_through_json() {
    let body = r#"{"a":{"b":[1,{"c.d":"1500m"}],"name":"x"},"list":[{"n":1,"k":"x"},{"n":5,"k":"y"},{"n":7,"k":"y"}],"t":true}"#;
    for (path, number) in [
        ("a.b.0", 1.0),
        (r"a.b.1.c\.d", 1.5),
        ("list.#", 3.0),
        ("list.2.n", 7.0),
        ("li*.1.n", 5.0),
        ("l?st.1.n", 5.0),
        (r#"list.#(k=="y").n"#, 5.0),
        ("list.#(n>5).n", 7.0),
        (r#"list.#(k="y")#.#"#, 2.0),
        (r#"list.#(k%"?").n"#, 1.0),
        (r#"list.#(k!="x").n"#, 5.0),
        ("list.#.n|2", 7.0),
        (r#"list.#(k="y")#|#"#, 2.0),
        ("list|@reverse|0.n", 7.0),
        ("[a.b,list].@flatten.#", 5.0),
    ] {
        assert_eq!(json(body, path), Ok(number), "{path}");
    }
    for (path, kind) in [
        ("t", "True"),
        ("a", "JSON"),
        ("nope", "Null"),
        ("a.b.9", "Null"),
        ("a.name", "String"),
        ("list.#.n", "JSON"),
        ("", "Null"),
    ] {
        let wanted = format!(
            "valueLocation {path:?} must point to a numeric value or a string parseable as a Quantity, got {kind}"
        );
        assert_eq!(json(body, path), Err(wanted));
    }
    for bad in ["@this", "list.#(", "[a,b]", "{a,b}", "list.#(n>1)x"] {
        assert!(json(body, bad).unwrap_err().starts_with("valueLocation"), "{bad}");
    }
    assert!(json("<html>", "a").unwrap_err().starts_with("the answer is not JSON"));
    assert!(json("1e999", "a").is_err());
    assert!(json(&"[".repeat(100_000), "0").is_err());
}

#[test]
fn paths_through_yaml() {
    let yaml = |body: &str, path: &str| {
        query::read(Format::Yaml, body.as_bytes(), path).map_err(|error| error.message)
    };
    let body = "a:\n  b:\n  - 1\n  - c: 2.5\n  q: 100m\n";
    assert_eq!(yaml(body, "a.b.1.c"), Ok(2.5));
    assert_eq!(yaml(body, "a.q"), Ok(0.1));
    // Keys that mean something else as values.
    assert_eq!(yaml("at: {x: 1, y: 2}\nyes: 3\n", "at.y"), Ok(2.0));
    assert!(yaml(body, "a.x").unwrap_err().ends_with("got Null"));
    assert!(yaml("a: [", "a").unwrap_err().starts_with("the answer is not YAML"));
    assert!(yaml("", "a").is_err());
}

#[test]
fn paths_through_xml() {
    let xml = |body: &str, path: &str| {
        query::read(Format::Xml, body.as_bytes(), path).map_err(|error| error.message)
    };
    let body = r#"<?xml version="1.0"?><!DOCTYPE x><!-- no --><r a="7"><q>1</q><q n='3>2'>2<i/></q>
        <s><![CDATA[4]]></s><t>1&#48;&amp;</t></r>"#;
    assert_eq!(xml(body, "r.q.0"), Ok(1.0));
    assert_eq!(xml(body, "r.q.1.#text"), Ok(2.0));
    assert_eq!(xml(body, "r.-a"), Ok(7.0));
    assert_eq!(xml(body, "r.s"), Ok(4.0));
    assert!(xml(body, "r.t").unwrap_err().ends_with("got String"));
    assert!(xml(body, "r").unwrap_err().ends_with("got JSON"));
    for bad in ["", "x", "<a>", "<a></b>", "</a>", "<a b></a>", "<a b=c/>", "<a", "<!--", "<a>1</a>text<b/>"]
    {
        assert!(xml(bad, "a").unwrap_err().starts_with("the answer is not XML"), "{bad}");
    }
    assert!(xml(&"<a>".repeat(100_000), "a").unwrap_err().contains("too deeply"));
}

#[test]
fn samples_of_prometheus() {
    let read = |path: &str| {
        let body = "# HELP q Waiting.\n# TYPE q gauge\nq{a=\"1\",b=\"x, \\\"y\\\"\"} 3 1700000000\nq{a=\"2\"} 4.5\n\
                    plain 7\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh 2\nnan NaN\n";
        query::read(Format::Prometheus, body.as_bytes(), path).map_err(|error| error.message)
    };
    assert_eq!(read("q"), Ok(3.0));
    assert_eq!(read("q{a='2'}"), Ok(4.5));
    assert_eq!(read(r#"q{ b = "x, \"y\"" , a="1" }"#), Ok(3.0));
    assert_eq!(read("plain{}"), Ok(7.0));
    assert_eq!(read("q{a=\"3\"}").unwrap_err(), "value q{a=\"3\"} not found");
    assert_eq!(read("h").unwrap_err(), "value h not found");
    assert_eq!(read("none").unwrap_err(), "metric 'none' not found");
    assert!(read("nan").is_err());
    for bad in ["", "{}", "q{", "q{a}", "q{a=1}", "q{a=\"1\"} x", "a b"] {
        assert!(read(bad).unwrap_err().starts_with("valueLocation"), "{bad}");
    }
}

#[test]
fn services_and_their_endpoints() {
    let service = Service::of("https://u:p@web.shop.svc:8443/metrics?x=1").unwrap();
    assert_eq!((&*service.name, &*service.namespace), ("web", "shop"));
    let addresses = vec![
        ("10.0.0.2".into(), None),
        ("10.0.0.1".into(), Some(80)),
        ("10.0.0.2".into(), None),
        ("fd::1".into(), Some(1)),
    ];
    assert_eq!(
        query::endpoints(&service, addresses),
        ["https://10.0.0.1:80/metrics", "https://10.0.0.2/metrics", "https://[fd::1]:1/metrics"]
    );
    for bad in ["http://web/", "web.shop", "http://.shop/", ""] {
        assert!(Service::of(bad).is_err(), "{bad}");
    }
}

#[test]
fn failed_endpoints_are_left_out_of_aggregates() {
    let of = |how: &str, all: &[Option<f64>]| {
        let all = all.iter().map(|one| one.ok_or_else(|| scaler_error!("broken"))).collect();
        query::aggregated(how, all).map_err(|error| error.message)
    };
    let some = [Some(1.0), None, Some(5.0)];
    assert_eq!(of("average", &some), Ok(3.0));
    assert_eq!(of("sum", &some), Ok(6.0));
    assert_eq!(of("max", &some), Ok(5.0));
    assert_eq!(of("min", &some), Ok(1.0));
    for how in ["average", "sum", "max", "min"] {
        assert_eq!(of(how, &[None, None]), Err("broken".into()));
        assert!(of(how, &[]).is_err());
    }
}

fn given(url: &str, more: &[(&str, &str)]) -> Trigger {
    let mut trigger = trigger("metrics-api", &[("url", url), ("valueLocation", "a"), ("targetValue", "5")]);
    trigger.metadata.extend(texts(more));
    trigger
}

#[tokio::test]
async fn api_keys_are_sent_as_configured() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&heads);
    let url = server(move |head| {
        reported.lock().unwrap().push(head.to_lowercase());
        ServerAction::Answer(200, r#"{"a":6}"#.into())
    })
    .await;
    let mut cases = Vec::new();
    for (more, wanted) in [
        (vec![("authMode", "apiKey")], "\r\nx-api-key: hush\r\n"),
        (vec![("authMode", "apiKey"), ("keyParamName", "X-Mine")], "\r\nx-mine: hush\r\n"),
        (vec![("authMode", "apiKey"), ("method", "query")], "get /x?y=1&api_key=hush http"),
        (vec![("authMode", "bearer")], "\r\nauthorization: bearer token\r\n"),
        (vec![("authMode", "basic")], "\r\nauthorization: basic bwu6\r\n"),
    ] {
        let mut given = given(&format!("{url}/x?y=1"), &more);
        given.auth = texts(&[("apiKey", "hush"), ("token", "token"), ("username", "me")]);
        let read = read_trigger(&given).await.unwrap();
        assert_eq!((read.values.first().unwrap().value.to_string(), read.active), ("6".to_owned(), true));
        cases.push(wanted);
    }
    let heads = heads.lock().unwrap();
    for (head, wanted) in heads.iter().zip(cases) {
        assert!(head.contains(wanted), "{wanted:?} in {head}");
    }
}

#[tokio::test]
async fn broken_servers_are_errors() {
    let url = server(|_| ServerAction::Answer(404, String::new())).await;
    let error = read_trigger(&given(&format!("{url}/x/y?secret=hunter"), &[])).await.unwrap_err().message;
    assert_eq!(error, "error requesting metrics endpoint: /x/y: api returned 404");
    let url = server(|_| ServerAction::Hang).await;
    let error = read_trigger(&given(&url, &[("timeout", "100ms")])).await.unwrap_err().message;
    assert!(
        error.starts_with("error requesting metrics endpoint: ") && error.contains("timed out"),
        "{error}"
    );
    assert!(read_trigger(&given("nowhere", &[])).await.is_err());
}

#[tokio::test]
async fn yaml_with_aliases_is_decoded_on_a_worker() {
    let own = current().id();
    for (body, is_small) in [("{a: 6}", true), ("{b: &b 6, a: *b}", false)] {
        let url = server(|_| ServerAction::Answer(200, body.into())).await;
        let given = given(&url, &[("format", "yaml")]);
        let (read, thread) =
            off_thread::run(async move { (value(read_trigger(&given).await), current().id()) }).await;
        assert_eq!((&*read, thread == own), ("6", is_small), "{body}");
    }
}

#[tokio::test]
async fn all_endpoints_of_a_service_are_read() {
    let url = server(|_| ServerAction::Answer(200, r#"{"a":4}"#.into())).await;
    let port = url.rsplit_once(':').unwrap().1.parse().ok();
    let endpoints = vec![("127.0.0.1".to_owned(), port), ("127.0.0.1".to_owned(), Some(1))];
    let given = given("http://web.shop/metrics", &[("aggregateFromKubeServiceEndpoints", "true")]);
    let read = |cluster: FakeCluster| {
        let scaler = table::build(&given, &backends(cluster)).unwrap();
        async move { scaler.read("m").await }
    };
    let found = read(FakeCluster { endpoints, ..FakeCluster::default() }).await.unwrap();
    assert_eq!(found.values.first().unwrap().value.to_string(), "4");
    assert!(read(FakeCluster::default()).await.unwrap_err().message.contains("has no endpoints"));
    let dead = vec![("127.0.0.1".to_owned(), Some(1))];
    assert!(read(FakeCluster { endpoints: dead, ..FakeCluster::default() }).await.is_err());
}

#[tokio::test]
async fn errors_name_no_addresses_of_other_namespaces() {
    let aggregated = [("aggregateFromKubeServiceEndpoints", "true")];
    for (address, port) in [("127.0.0.1", Some(1)), ("169.254.7.7", None)] {
        let message = async |url: &str| {
            let endpoints = vec![(address.to_owned(), port)];
            let cluster = FakeCluster { endpoints, ..FakeCluster::default() };
            let scaler = table::build(&given(url, &aggregated), &backends(cluster)).unwrap();
            scaler.read("m").await.unwrap_err().message
        };
        let own = message("http://web.ns/metrics").await;
        assert!(own.contains(address), "{own}");
        let of_others = message("http://web.shop/metrics").await;
        assert!(of_others.contains("service shop/web") && !of_others.contains(address), "{of_others}");
    }
}

proptest! {
    #[test]
    fn arbitrary_input_does_not_panic(body in ".{0,200}", path in ".{0,40}") {
        for format in [Format::Json, Format::Yaml, Format::Xml, Format::Prometheus] {
            let _ = query::read(format, body.as_bytes(), &path);
        }
    }

    #[test]
    fn arbitrary_stages_do_not_panic(
        path in "((a|0|#|@(this|reverse|flatten|keys|values|join|group|tostr|fromstr)|\\[a,#\\]|\\{a,\"x\":0\\})[.|]?){0,9}",
    ) {
        let _ = json(r#"{"a":[{"a":1},{"a":"x"},[2]]}"#, &path);
    }

    #[test]
    fn arbitrary_paths_do_not_panic(path in "[a#().*?\\\\|\"=<>%!0-9]{0,30}") {
        let _ = json(r#"{"a":[{"a":1},{"a":"x"}]}"#, &path);
    }
}
