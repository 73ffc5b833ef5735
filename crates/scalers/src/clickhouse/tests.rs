use super::query::{ClickHouseServer, value};
use crate::parameters::{KedaProfile, Secret};
use crate::test_support::{ServerAction, build, read, server, texts, trigger};

fn answer(rows: &str) -> String {
    format!(r#"{{"meta":[{{"name":"x","type":"UInt64"}}],"data":{rows},"rows":1,"statistics":{{}}}}"#)
}

#[test]
fn connection_strings() {
    let text =
        "clickhouse://a%40b:p%3Aw+d@one:9000,two:9440,[::1]:9001,three/my%20db?secure=true&skip_verify=true";
    let urls = ["https://one:8123", "https://two:8443", "https://[::1]:9001", "https://three:8443"];
    let expected = ClickHouseServer {
        urls: urls.map(str::to_owned).to_vec(),
        user: "a@b".into(),
        password: Secret::new("p:w+d"),
        database: "my db".into(),
        insecure: true,
    };
    assert_eq!(ClickHouseServer::parse(text), Ok(expected));
    let plain = ClickHouseServer::parse("http://h:9000").unwrap();
    assert_eq!(plain.urls, ["http://h:9000"]);
    assert_eq!((&*plain.user, &*plain.database), ("default", "default"));
    let options = ClickHouseServer::parse("clickhouse://h?username=u&password=p&database=d").unwrap();
    assert_eq!(options.urls, ["http://h:8123"]);
    assert_eq!((&*options.user, options.password.reveal(), &*options.database), ("u", "p", "d"));
    for bad in
        ["", "h:9000", "mysql://u:secret@h", "clickhouse://u:secret@", "http://u:se/cret@h", "http://u:%zz@h"]
    {
        let error = ClickHouseServer::parse(bad).unwrap_err();
        assert!(!format!("{error:?}").contains("cret"), "{bad}: {error:?}");
    }
}

#[test]
fn hosts_and_ports() {
    let url = |host, port, tls| ClickHouseServer::new(host, port, tls).map(|server| server.urls.concat());
    assert_eq!(url("h", "9000", false), Ok("http://h:8123".to_owned()));
    assert_eq!(url("h", "9440", true), Ok("https://h:8443".to_owned()));
    assert_eq!(url("::1", "18123", false), Ok("http://[::1]:18123".to_owned()));
    assert!(url("h", "http", false).is_err());
}

#[test]
fn query_urls() {
    let server =
        ClickHouseServer { database: "a b".into(), ..ClickHouseServer::new("h", "1", false).unwrap() };
    assert_eq!(
        server.query_url("http://h:1", "SELECT 1+1 & 2"),
        "http://h:1/?database=a%20b&default_format=JSONCompact&query=SELECT%201%2B1%20%26%202"
    );
}

#[test]
fn responses_are_decoded_or_refused() {
    for (rows, expected) in [
        (r#"[["12","x"],["13"]]"#, 12.0),
        ("[[2.5]]", 2.5),
        ("[[-3]]", -3.0),
        // KEDA takes a query without rows for 0.
        ("[]", 0.0),
    ] {
        assert_eq!(value(200, answer(rows).as_bytes()), Ok(expected), "{rows}");
    }
    for (status, bad, why) in [
        (200, answer("[[null]]"), "null instead of a number"),
        (200, answer("[[]]"), "nothing instead of a number"),
        (200, answer(r#"[["x"]]"#), "a string instead of a number"),
        (200, answer(r#"[["nan"]]"#), "a string instead of a number"),
        (200, answer("null"), "null at data"),
        (200, r#"{"data":[]}"#.to_owned(), "nothing at meta"),
        (200, answer("[[1]]").replace(r#""rows":1"#, r#""exception":"Code: 241""#), "in the middle"),
        (200, "1\n".to_owned(), "instead of lists"),
        (200, String::new(), "not JSON"),
        (200, answer("[[1]]").replace("}}", "}}Code: 241. DB::Exception"), "not JSON"),
        (
            404,
            "Code: 60. DB::Exception: Table t of secret".to_owned(),
            "404 with exception 60 (unknown table)",
        ),
        (500, "Code: 9999. DB::Exception".to_owned(), "500 with exception 9999"),
        (403, "Code: 516. DB::Exception: u".to_owned(), "wrong user or password"),
        (502, "<html>secret".to_owned(), "502: (12 bytes, not shown)"),
        (
            400,
            "Port 9000 is for clickhouse-client program\r\nYou must use port 8123 for HTTP.".to_owned(),
            "give the port of the HTTP interface",
        ),
    ] {
        let error = value(status, bad.as_bytes()).unwrap_err().message;
        assert!(error.contains(why) && !error.contains("secret"), "{bad}: {error}");
    }
}

#[tokio::test]
async fn reads_host_and_port() {
    let url = server(|head| {
        let path = "GET /?database=d&default_format=JSONCompact&query=SELECT%20count%28%29%20FROM%20t ";
        assert!(head.starts_with(path), "{head}");
        assert!(head.contains("authorization: Basic dTpw\r\n"), "{head}");
        ServerAction::Answer(200, answer(r#"[["7"]]"#))
    })
    .await;
    let port = url.rsplit(':').next().unwrap();
    let mut trigger = trigger(
        "clickhouse",
        &[
            ("host", "127.0.0.1"),
            ("port", port),
            ("username", "u"),
            ("database", "d"),
            ("query", "SELECT count() FROM t"),
            ("targetQueryValue", "5"),
            ("activationTargetQueryValue", "7"),
        ],
    );
    trigger.profile = KedaProfile::V2_21;
    trigger.auth = texts(&[("password", "p")]);
    let reading = read(&trigger).await.unwrap();
    assert_eq!(reading.values.first().unwrap().value.canonical(), "7");
    assert!(!reading.active);
}

#[tokio::test]
async fn uses_first_reachable_host_of_a_connection_string() {
    let url = server(|head| {
        assert!(head.contains("authorization: Basic dTpw\r\n"), "{head}");
        ServerAction::Answer(403, "Code: 516. DB::Exception: u: Authentication failed".to_owned())
    })
    .await;
    let host = url.strip_prefix("http://").unwrap();
    let mut trigger = trigger("clickhouse", &[("query", "SELECT 1"), ("targetQueryValue", "5")]);
    trigger.profile = KedaProfile::V2_21;
    trigger.auth = texts(&[("connectionString", &format!("clickhouse://u:p@127.0.0.1:1,{host}/d"))]);
    let error = read(&trigger).await.unwrap_err().message;
    assert_eq!(
        error,
        "error inspecting ClickHouse: could not query ClickHouse database: ClickHouse returned 403 with exception \
         516 (wrong user or password)"
    );
    trigger.auth = texts(&[("connectionString", "ftp://h:9000")]);
    let error = read(&trigger).await.unwrap_err().message;
    assert!(error.contains("must begin with clickhouse://"), "{error}");
}

#[test]
fn connection_string_without_host_is_refused() {
    let mut trigger = trigger("clickhouse", &[("query", "SELECT 1"), ("targetQueryValue", "5")]);
    trigger.profile = KedaProfile::V2_21;
    for bad in ["h:9000", "a/b.c:d", "with space", "日本", "clickhouse:///db", "clickhouse://u:p@"] {
        trigger.auth = texts(&[("connectionString", bad)]);
        let error = build(&trigger).err().map(|error| error.message);
        let why = "error establishing clickhouse connection: failed to parse connection string: parse dsn address failed";
        assert_eq!(error.as_deref(), Some(why), "{bad}");
    }
}
