//! Hostile answers, many at once on one thread: each ends with a number or a typed error, and a good server is read meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::test_support::{FakeCluster, backends, texts, trigger};
use crate::{Reading, ScalerError, Trigger, off_thread, table};

/// Size of a large body; the limit of one answer is 8 MiB.
const LARGE_BODY_BYTES: usize = 3 << 20;
/// Upper limit of the whole test.
const TEST_TIMEOUT: Duration = Duration::from_mins(5);

/// An answer of a hostile server.
struct HostileAnswer {
    name: &'static str,
    format: &'static str,
    location: String,
    headers: &'static str,
    body: Vec<u8>,
    /// Part of the error; none if a number is expected.
    error: Option<&'static str>,
}

fn hostile(
    name: &'static str,
    format: &'static str,
    location: &str,
    body: impl Into<Vec<u8>>,
) -> HostileAnswer {
    HostileAnswer { name, format, location: location.to_owned(), headers: "", body: body.into(), error: None }
}

impl HostileAnswer {
    fn fails(self, error: &'static str) -> Self {
        Self { error: Some(error), ..self }
    }
}

fn repeated(text: &str) -> String {
    text.repeat(LARGE_BODY_BYTES / text.len())
}

fn answers() -> Vec<HostileAnswer> {
    let many = format!("{{\"a\":[{}1],\"b\":7}}", repeated("1,"));
    let long = "a".repeat(512 << 10);
    let stars = format!("*{}b", "a".repeat(4_000));
    let gzip = [vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3], vec![0; 64 << 10]].concat();
    vec![
        hostile("many values, none of them needed", "json", "b", many.clone()),
        hostile("many values, counted", "json", "a.#", many.clone()),
        hostile("many values in one item", "json", "#(b==7).b", format!("[{many}]")).fails("too many values"),
        hostile("a pattern that backtracks", "json", &stars, format!("{{\"{long}\":1}}"))
            .fails("takes too long"),
        hostile("a pattern in a query", "json", &format!("#(%\"{stars}\")#.#"), format!("[\"{long}\"]"))
            .fails("takes too long"),
        hostile("a long path", "json", &"a.".repeat(20_000), "{}").fails("more than"),
        hostile("deep lists", "json", "0.0", repeated("[")).fails("not JSON"),
        hostile("deep objects", "json", "a.a", repeated("{\"a\":")).fails("not JSON"),
        hostile("an endless string", "json", "a", format!("{{\"a\":\"{}", repeated("x"))).fails("not JSON"),
        hostile("no UTF-8", "json", "a", vec![0xff; LARGE_BODY_BYTES]).fails("not text"),
        HostileAnswer { headers: "content-encoding: gzip\r\n", ..hostile("compressed", "json", "a", gzip) }
            .fails("not text"),
        hostile("ampersands", "xml", "a", format!("<a>7{}</a>", repeated("&"))).fails("got String"),
        hostile("distant semicolons", "xml", "a", format!("<a>{};</a>", repeated("&#1"))).fails("got String"),
        hostile("many elements", "xml", "a.b", format!("<a>{}</a>", repeated("<b/>")))
            .fails("too many values"),
        hostile("many attributes", "xml", "a", format!("<a {}/>", repeated("b='' ")))
            .fails("too many values"),
        hostile("deep elements", "xml", "a", repeated("<a>")).fails("too deeply"),
        hostile("open tag", "xml", "a", format!("<a {}", repeated("\""))).fails("not XML"),
        hostile(
            "many samples",
            "prometheus",
            "q{a=\"1\"}",
            format!("{}q{{a=\"1\"}} 7\n", repeated("q{a=\"2\"} 1\n")),
        ),
        hostile(
            "many labels",
            "prometheus",
            "q{z=\"1\"}",
            format!("q{{{}z=\"1\"}} 7\n", repeated("a=\"\",")),
        ),
        hostile("a line without end", "prometheus", "q", format!("q{{{}", repeated("a=\"\",")))
            .fails("no sample"),
        hostile("many nodes", "yaml", "0", repeated("- 1\n")).fails("not YAML"),
        hostile("deep YAML", "yaml", "0", repeated("[")).fails("not YAML"),
        hostile("aliases", "yaml", "z", laughs()).fails("not YAML"),
        hostile("YAML of one long line", "yaml", "a", format!("a: {}", repeated("x "))).fails("got String"),
    ]
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

/// Serves one answer to every request; returns the address.
async fn serve(headers: &'static str, body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let head =
        format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let body: Arc<[u8]> = body.into();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (head, body) = (head.clone(), Arc::clone(&body));
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&body).await;
            });
        }
    });
    format!("http://{address}/")
}

async fn read(trigger: Trigger) -> Result<Reading, ScalerError> {
    let scaler = table::build(&trigger, &backends(FakeCluster::default()))?;
    off_thread::run(async move { scaler.read("m").await }).await
}

fn reading(url: &str, format: &str, location: &str) -> Trigger {
    let mut trigger = trigger("metrics-api", &[("url", url), ("targetValue", "5")]);
    trigger.metadata.extend(texts(&[("format", format), ("valueLocation", location), ("timeout", "4m")]));
    trigger
}

/// On one thread, as in the operator.
#[tokio::test]
async fn hostile_answers_end_and_others_are_served() {
    let good = serve("", b"{\"a\":7}".to_vec()).await;
    let mut reads = JoinSet::new();
    for answer in answers() {
        let url = serve(answer.headers, answer.body).await;
        let trigger = reading(&url, answer.format, &answer.location);
        reads.spawn(async move { (answer.name, answer.error, read(trigger).await) });
    }
    let count = reads.len();
    let served = AtomicUsize::new(0);
    let others = async {
        while read(reading(&good, "json", "a")).await.is_ok() {
            served.fetch_add(1, Ordering::Relaxed);
        }
    };
    let judge = async {
        let mut wrong = Vec::new();
        while let Some(done) = reads.join_next().await {
            match done.unwrap() {
                (_, None, Ok(reading)) if reading.values.len() == 1 => {}
                (_, Some(part), Err(error))
                    if error.message.contains(part) && error.message.len() < 2_000 => {}
                (name, expected, found) => wrong.push(format!("{name}: {found:?} instead of {expected:?}")),
            }
        }
        wrong
    };
    let judged = async {
        tokio::select! {
            wrong = judge => wrong,
            () = others => vec!["the good server could not be read".to_owned()],
        }
    };
    let wrong = tokio::time::timeout(TEST_TIMEOUT, judged).await.unwrap();
    assert_eq!(wrong, [] as [String; 0]);
    assert!(served.load(Ordering::Relaxed) > 0, "{count} hostile answers, and no other was served");
}
