mod fake;

use fake::{fake_cassandra, rows, text};

use super::wire::{CqlField, CqlResponse};
use super::*;
use crate::test_support::fake_server::FakeServer;
use crate::test_support::{build, read, texts, trigger, value};

fn query_trigger(fake: &FakeServer, query: &str, password: &str) -> Trigger {
    let port = fake.port.to_string();
    let mut given = trigger(
        "cassandra",
        &[
            ("clusterIPAddress", "127.0.0.1"),
            ("port", &port),
            ("username", "u"),
            ("keyspace", "k"),
            ("query", query),
            ("targetQueryValue", "5"),
        ],
    );
    given.auth = texts(&[("password", password)]);
    given
}

#[tokio::test]
async fn first_field_of_the_first_row_is_the_value() {
    let fake = fake_cassandra("org.apache.cassandra.auth.PasswordAuthenticator").await;
    let value_of = async |query: &str| value(read(&query_trigger(&fake, query, "hunter2")).await);
    let prefix = "error inspecting cassandra: ";
    assert_eq!(value_of("SELECT 7").await, "7");
    // KEDA serves no negative values.
    assert_eq!(value_of("SELECT -7").await, "0");
    assert_eq!(value_of("warned").await, "9");
    // KEDA takes a result without rows for 0.
    assert_eq!(value_of("no rows").await, "0");
    assert_eq!(value_of("null").await, format!("{prefix}the first field of the first row is null"));
    assert_eq!(
        value_of("words").await,
        format!("{prefix}the first field of the first row is no whole number")
    );
    assert!(value_of("broken").await.ends_with("unconfigured table t (error 0x2200)"));
}

#[tokio::test]
async fn logins_use_passwords_and_others_are_refused() {
    let open = fake_cassandra("").await;
    assert_eq!(value(read(&query_trigger(&open, "SELECT 7", "any")).await), "7");
    let fake = fake_cassandra("org.apache.cassandra.auth.PasswordAuthenticator").await;
    let refused = read(&query_trigger(&fake, "SELECT 7", "hunter3")).await;
    assert_eq!(refused.as_ref().unwrap_err().cause(), Some(&crate::SourceRefusal::Credentials));
    let wrong = value(refused);
    assert!(wrong.contains("password are incorrect (error 0x0100)"), "{wrong}");
    assert!(!wrong.contains("hunter"), "{wrong}");
    let other = fake_cassandra("org.example.Kerberos").await;
    let wrong = value(read(&query_trigger(&other, "SELECT 7", "hunter2")).await);
    assert!(wrong.contains("authentication by org.example.Kerberos, which is not supported"), "{wrong}");
}

#[tokio::test]
async fn a_connection_serves_many_reads_and_is_made_again() {
    let fake = fake_cassandra("").await;
    let scaler = build(&query_trigger(&fake, "SELECT 7", "hunter2")).unwrap();
    for _ in 0..3 {
        assert_eq!(value(scaler.read("m").await), "7");
    }
    assert_eq!(fake.connections(), 1);
    fake.drop_connections();
    assert_eq!(value(scaler.read("m").await), "7");
    assert_eq!(fake.connections(), 2);
}

#[tokio::test]
async fn parameters_that_cannot_be_used_are_named() {
    let fake = fake_cassandra("").await;
    for (key, wrong, reported) in [
        ("protocolVersion", "5", "protocolVersion must be 3 or 4"),
        ("consistency", "most", "consistency must be the name of a level"),
        ("port", "70000", "port must be a number from 1 to 65535"),
    ] {
        let mut given = query_trigger(&fake, "SELECT 7", "hunter2");
        given.metadata.insert(key.to_owned(), wrong.to_owned());
        let error = value(read(&given).await);
        assert!(error.contains(reported), "{error}");
    }
    assert_eq!(fake.connections(), 0);
    let mut given = query_trigger(&fake, "SELECT 7", "hunter2");
    given.metadata.remove("port");
    given.metadata.insert("clusterIPAddress".to_owned(), format!("127.0.0.1:{}", fake.port));
    assert_eq!(value(read(&given).await), "7");
}

#[test]
fn addresses_of_nodes() {
    let of = |host, port| node_address(host, port).ok();
    let node = |host: &str, port| Some((host.to_owned(), port));
    assert_eq!(of("db.example", 9043), node("db.example", 9043));
    assert_eq!(of("db.example:9044", 9043), node("db.example", 9044));
    assert_eq!(of("fd00::1", 9043), node("fd00::1", 9043));
    assert_eq!(of("[fd00::1]:9044", 0), node("fd00::1", 9044));
    for (host, port) in [("db.example", 70_000), ("db.example:70000", 0), ("db.example:0", 9043)] {
        assert_eq!(of(host, port), None, "{host}");
    }
}

#[test]
fn numbers_of_all_types() {
    let first = |type_: &[u8], value: &[u8]| {
        let header = [0x84, 0, 0, 0, 8, 0, 0, 0, 0];
        match wire::response(header, &rows(type_, &[Some(value)])).unwrap() {
            CqlResponse::Result(field) => field,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(first(&[0, 9], &[0xff, 0xff, 0xff, 0xfe]), CqlField::Number(-2));
    assert_eq!(first(&[0, 0x13], &[1, 0]), CqlField::Number(256));
    assert_eq!(first(&[0, 0x14], &[0x80]), CqlField::Number(-128));
    assert_eq!(first(&[0, 0x0e], &[1, 0, 0]), CqlField::Number(65_536));
    assert_eq!(first(&[0, 5], &[0, 0, 0, 0, 0, 0, 0, 3]), CqlField::Number(3));
    assert_eq!(first(&[0, 9], &[1]), CqlField::Other);
    assert_eq!(first(&[0, 2], &[]), CqlField::Null);
    // A list of maps from text to a custom type.
    let nested = [vec![0, 0x20, 0, 0x21, 0, 0x0d, 0, 0], text("org.example.X")].concat();
    assert_eq!(first(&nested, &[0]), CqlField::Other);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_response_or_refused(bytes: Vec<u8>, flags in 0_u8..16, kind in 0_u8..17) {
        let _ = wire::response([0x84, flags, 0, 0, kind, 0, 0, 0, 0], &bytes);
        let _ = wire::response([0x84, 0, 0, 0, 8, 0, 0, 0, 0], &[&rows(&[0, 2], &[None]), &*bytes].concat());
    }
}
