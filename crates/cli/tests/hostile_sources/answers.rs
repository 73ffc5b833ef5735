//! The responses of hostile servers.

use std::time::SystemTime;

use super::servers::{Answer, Flow, Start, http, http_head};

/// Size of a large body; the limit of one response is 8 MiB.
const LARGE_BYTES: usize = 3 << 20;

/// Rules of a prometheus-adapter, whose series are listed at a hostile Prometheus.
pub(crate) const RULES: &str = "externalRules:
- seriesQuery: 'queue_depth{queue!=\"\"}'
  resources: {namespaced: false}
  metricsQuery: 'max(<<.Series>>{<<.LabelMatchers>>}) by (queue)'
";

fn repeated(text: &str) -> String {
    text.repeat(LARGE_BYTES / text.len())
}

/// Aliases of aliases.
fn laughs() -> String {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let before = level - 1;
        text += &format!("a{level}: &a{level} [{}*a{before}]\n", format!("*a{before},").repeat(8));
    }
    text
}

/// HTTP responses: name, format of metrics-api, response.
pub(crate) fn bodies() -> Vec<(&'static str, &'static str, Answer)> {
    let body = |text: String| http("application/octet-stream", text.into_bytes());
    let flows = |start: &str, piece: &str, flow| {
        Answer::new(http_head("application/octet-stream", "") + start, piece.repeat(4_000), flow)
    };
    let gzip = [vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3], vec![0; LARGE_BYTES]].concat();
    let compressed = http_head("application/json", "content-encoding: gzip\r\n");
    vec![
        ("json-huge", "json", body(format!("{{\"b\":[{}1]}}", repeated("1,")))),
        ("json-deep", "json", body(repeated("["))),
        ("json-slow", "json", flows("{\"a\":[", "1,", Flow::Drip)),
        ("json-endless", "json", flows("{\"b\":[", "1,", Flow::Endless)),
        ("json-compressed", "json", Answer::new(compressed, gzip, Flow::Once)),
        ("json-malformed", "json", body(format!("{{\"a\":\"{}", repeated("\\u12")))),
        ("json-silent", "json", Answer::new("", "", Flow::Hold)),
        (
            "json-endless-head",
            "json",
            Answer::new("HTTP/1.1 200 OK\r\n", "x-more: x\r\n".repeat(3_000), Flow::Endless),
        ),
        ("xml-huge", "xml", body(format!("<a>{}</a>", repeated("<b/>")))),
        ("xml-deep", "xml", body(repeated("<a>"))),
        ("xml-endless", "xml", flows("<a>", "<b c='d'/>", Flow::Endless)),
        ("xml-malformed", "xml", body(format!("<a {}", repeated("&#1\"")))),
        ("yaml-huge", "yaml", body(repeated("- 1\n"))),
        ("yaml-deep", "yaml", body(repeated("["))),
        ("yaml-aliases", "yaml", body(laughs())),
        ("yaml-endless", "yaml", flows("", "- {a: b}\n", Flow::Endless)),
        ("text-huge", "prometheus", body(repeated("q{a=\"2\"} 1\n"))),
        ("text-line", "prometheus", body(format!("q{{{}", repeated("a=\"\",")))),
        ("text-endless", "prometheus", flows("", "q{a=\"2\"} 1\n", Flow::Endless)),
        ("text-slow", "prometheus", flows("", "q{a=\"2\"} 1\n", Flow::Drip)),
    ]
}

/// A response of Prometheus to a query, without end.
pub(crate) fn endless_vector() -> Answer {
    let head = http_head("application/json", "")
        + "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[";
    Answer::new(head, "{\"metric\":{\"a\":\"b\"},\"value\":[1,\"1\"]},".repeat(1_000), Flow::Endless)
}

/// A list of series, without end.
pub(crate) fn endless_series() -> Answer {
    let head = http_head("application/json", "") + "{\"status\":\"success\",\"data\":[";
    Answer::new(head, "{\"__name__\":\"queue_depth\",\"queue\":\"a\"},".repeat(1_000), Flow::Endless)
}

/// A gRPC response on the first stream of a connection: a message with this announced length and these bytes.
pub(crate) fn grpc(length: u32, message: &[u8]) -> Answer {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    // `:status 200` and the content type, as HPACK encodes them.
    let headers = [&[0x88_u8, 0x5f, 16][..], b"application/grpc"].concat();
    let body = [&[0_u8][..], &length.to_be_bytes(), message].concat();
    // The settings of the server and its acknowledgement of those of the client come first.
    let settings = [frame(4, 0, 0, &[]), frame(4, 1, 0, &[])].concat();
    let mut bytes = frame(1, 4, 1, &headers);
    for piece in body.chunks(16_384) {
        bytes.extend(frame(0, 0, 1, piece));
    }
    Answer::new(settings, bytes, Flow::Hold).starting(Start::AskedOverHttp2)
}

/// The number of demands of a trigger of azure-pipelines, which fit into the limit of the parameter.
pub(crate) const DEMANDS: usize = 2_500;

/// Jobs of Azure Pipelines, which are pools, too. Agents of the trigger can take each of them.
pub(crate) fn many_jobs() -> Answer {
    let job = format!("{{\"id\":7,\"demands\":[\"d0\",\"d1\",\"d{}\"]}}", DEMANDS - 1);
    let jobs = vec![job; 20_000].join(",");
    http("application/json", format!("{{\"count\":1,\"value\":[{jobs}]}}").into_bytes())
}

/// All responses of SQL Server without TLS: the login is accepted, and the result has millions of rows of columns that take no bytes.
/// The client reads them one after the other, whenever they are sent.
pub(crate) fn rows_of_no_bytes() -> Answer {
    const COLUMNS: u16 = 4_096;
    const DONE: [u8; 13] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let packets = |message: &[u8]| {
        let mut packets = Vec::new();
        let mut pieces = message.chunks(60_000).peekable();
        while let Some(piece) = pieces.next() {
            let [high, low] = u16::try_from(piece.len() + 8).unwrap().to_be_bytes();
            packets.extend([4, u8::from(pieces.peek().is_none()), high, low, 0, 0, 1, 0]);
            packets.extend_from_slice(piece);
        }
        packets
    };
    let prelogin = [0_u8, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 16, 0, 0, 0, 0, 0, 2];
    let accepted = [&[0xad_u8, 10, 0, 1, 0x74, 0, 0, 4, 0, 16, 0, 0, 0][..], &DONE].concat();
    let column = [0_u8, 0, 0, 0, 0, 0, 0x1f, 0];
    let columns = [&[0x81][..], &COLUMNS.to_le_bytes(), &column.repeat(usize::from(COLUMNS))[..]].concat();
    let result = [columns, vec![0xd1; 7 << 20], DONE.to_vec()].concat();
    Answer::new([packets(&prelogin), packets(&accepted)].concat(), packets(&result), Flow::Hold)
}

/// Hostile kubelets.
pub(crate) fn kubelets() -> Vec<(&'static str, Answer)> {
    let page = |text: String| http("text/plain; version=0.0.4", text.into_bytes());
    let line =
        "container_cpu_usage_seconds_total{container=\"a\",namespace=\"b\",pod=\"c\"} 1 1700000000000\n";
    let flows = |piece: &str, flow| {
        Answer::new(http_head("text/plain; version=0.0.4", ""), piece.repeat(1_000), flow)
    };
    let gzip = [vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3], vec![0; LARGE_BYTES]].concat();
    vec![
        ("page-huge", page(line.repeat(12 * (1 << 20) / line.len()))),
        ("page-line", page(repeated("container_cpu_usage_seconds_total{a=\"\","))),
        ("page-endless", flows(line, Flow::Endless)),
        ("page-slow", flows(line, Flow::Drip)),
        ("page-silent", Answer::new("", "", Flow::Hold)),
        ("page-malformed", page(repeated("<html>{{{\n"))),
        (
            "page-compressed",
            Answer::new(http_head("text/plain", "content-encoding: gzip\r\n"), gzip, Flow::Once),
        ),
        (
            "page-protobuf",
            http("application/vnd.google.protobuf; encoding=delimited", vec![0xff; LARGE_BYTES]),
        ),
        (
            "page-endless-head",
            Answer::new("HTTP/1.1 200 OK\r\n", "x-more: x\r\n".repeat(3_000), Flow::Endless),
        ),
        (
            "page-endless-chunk",
            Answer::new(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7fffffff\r\n",
                line.repeat(1_000),
                Flow::Endless,
            ),
        ),
    ]
}

/// The page of a kubelet that works: its node and the container of a pod use one core.
pub(crate) fn kubelet_page() -> Vec<u8> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let (seconds, millis) = (now.as_secs_f64() - 1.6e9, now.as_millis());
    let container = "{container=\"a\",namespace=\"default\",pod=\"healthy\"}";
    format!(
        "# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total {seconds} {millis}\n\
         # TYPE node_memory_working_set_bytes gauge\nnode_memory_working_set_bytes 1000000 {millis}\n\
         # TYPE container_cpu_usage_seconds_total counter\ncontainer_cpu_usage_seconds_total{container} {seconds} {millis}\n\
         # TYPE container_memory_working_set_bytes gauge\ncontainer_memory_working_set_bytes{container} 1000000 {millis}\n\
         # TYPE container_start_time_seconds gauge\ncontainer_start_time_seconds{container} 1600000000 {millis}\n\
         # TYPE scrape_error gauge\nscrape_error 0\n"
    )
    .into_bytes()
}
