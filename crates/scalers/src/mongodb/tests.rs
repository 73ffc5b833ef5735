mod fake;

use fake::{Kind, fake_mongo};

use super::bson::{self, Bson};
use super::extended_json;
use super::uri::MongoUri;
use crate::Trigger;
use crate::test_support::fake_server::FakeServer;
use crate::test_support::{build, read, texts, trigger};

fn error(metadata: &[(&str, &str)], auth: &[(&str, &str)]) -> String {
    let mut given =
        trigger("mongodb", &[("dbName", "d"), ("collection", "c"), ("query", "{}"), ("queryValue", "1")]);
    given.metadata.extend(texts(metadata));
    given.auth = texts(auth);
    let prefix = "error parsing mongodb metadata: error parsing mongodb metadata: ";
    build(&given).err().map(|error| error.message.replace(prefix, "")).unwrap_or_default()
}

#[test]
fn connection_is_complete() {
    assert_eq!(error(&[], &[]), "no host given");
    assert_eq!(error(&[("host", "h")], &[]), "no port given");
    assert_eq!(error(&[("host", "h"), ("scheme", "mongodb+srv")], &[]), "no username given");
    assert_eq!(error(&[("host", "h"), ("port", "1"), ("username", "u")], &[]), "no password given");
    assert_eq!(error(&[], &[("connectionString", "mongodb://h")]), "");
}

#[test]
fn tls_needs_certificates() {
    let connection = ("connectionString", "mongodb://h");
    assert!(error(&[], &[connection, ("tls", "enable")]).starts_with("at least one of cert"));
    assert!(error(&[], &[connection, ("tls", "enable"), ("cert", "c")]).starts_with("both cert and key"));
    assert_eq!(error(&[], &[connection, ("tls", "enable"), ("ca", "c")]), "");
}

fn query_trigger(fake: &FakeServer, collection: &str, password: &str) -> Trigger {
    let port = fake.port.to_string();
    let mut given = trigger(
        "mongodb",
        &[
            ("dbName", "d"),
            ("collection", collection),
            ("query", r#"{"a": 1}"#),
            ("queryValue", "5"),
            ("host", "127.0.0.1"),
            ("port", &port),
            ("username", "u"),
        ],
    );
    given.auth = texts(&[("password", password)]);
    given
}

async fn value(trigger: &Trigger) -> String {
    match read(trigger).await {
        Ok(reading) => reading.values[0].value.to_string(),
        Err(error) => error.message,
    }
}

#[tokio::test]
async fn counts_with_new_and_old_logins() {
    for old in [false, true] {
        let fake = fake_mongo(Kind { old, primary: None }).await;
        assert_eq!(value(&query_trigger(&fake, "c", "hunter2")).await, "3", "old: {old}");
        assert_eq!(value(&query_trigger(&fake, "empty", "hunter2")).await, "0");
        let broken = value(&query_trigger(&fake, "broken", "hunter2")).await;
        assert!(broken.ends_with("(BadValue) unknown operator: $nope"), "{broken}");
        let refused = read(&query_trigger(&fake, "c", "hunter3")).await.unwrap_err();
        assert_eq!(refused.cause(), Some(&crate::SourceRefusal::Credentials));
        let wrong = refused.message;
        assert!(wrong.ends_with("(AuthenticationFailed) Authentication failed."), "{wrong}");
        assert!(!wrong.contains("hunter"), "{wrong}");
    }
}

#[tokio::test]
async fn query_goes_to_the_primary() {
    let primary = fake_mongo(Kind::default()).await;
    let name = Some(format!("127.0.0.1:{}", primary.port));
    let secondary = fake_mongo(Kind { old: false, primary: name }).await;
    assert_eq!(value(&query_trigger(&secondary, "c", "hunter2")).await, "3");
    assert_eq!((secondary.connections(), primary.connections()), (1, 1));
    let alone = fake_mongo(Kind { old: false, primary: Some("127.0.0.1:1".into()) }).await;
    let error = value(&query_trigger(&alone, "c", "hunter2")).await;
    assert!(error.starts_with("failed to inspect mongoDB: 127.0.0.1:1: "), "{error}");
}

#[tokio::test]
async fn a_connection_serves_many_reads_and_is_made_again() {
    let fake = fake_mongo(Kind::default()).await;
    let scaler = build(&query_trigger(&fake, "c", "hunter2")).unwrap();
    for _ in 0..3 {
        scaler.read("m").await.unwrap();
    }
    assert_eq!(fake.connections(), 1);
    fake.drop_connections();
    scaler.read("m").await.unwrap();
    assert_eq!(fake.connections(), 2);
}

#[test]
fn connection_strings() {
    let text =
        "mongodb://me:p%40ss+%2F@a.example,b.example:27018/shop?authSource=admin&tls=true&tlsInsecure=true";
    let uri = MongoUri::parse(text).unwrap();
    assert_eq!(uri.hosts, [("a.example".to_owned(), 27017), ("b.example".to_owned(), 27018)]);
    assert_eq!((&*uri.user, uri.password.reveal(), &*uri.auth_source), ("me", "p@ss+/", "admin"));
    assert!(uri.tls && uri.insecure && !uri.direct);
    assert_eq!(MongoUri::parse("mongodb://h/shop").unwrap().auth_source, "shop");
    assert_eq!(MongoUri::parse("mongodb://h").unwrap().auth_source, "admin");
    for wrong in [
        "hunter2",
        "mongodb+srv://u:hunter2@h",
        "mongodb://u:hunter2%zz@h",
        "mongodb://u:hunter2@",
        "mongodb://h:x",
    ] {
        let error = MongoUri::parse(wrong).err().unwrap().to_string();
        assert!(!error.contains("hunter2"), "{wrong}: {error}");
    }
}

#[test]
fn filters_in_extended_json() {
    let text = r#"{"n": {"$gt": 5}, "l": 5000000000, "d": 1.5, "t": {"$date": "2020-01-01T00:00:00Z"},
        "u": {"$date": {"$numberLong": "7"}}, "o": {"$oid": "0102030405060708090a0b0c"}, "x": [null, true],
        "r": {"$regularExpression": {"pattern": "^a", "options": "i"}}, "i": {"$numberInt": "3"}}"#;
    let filter = extended_json::filter(text).unwrap();
    let names: Vec<&str> = filter.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["n", "l", "d", "t", "u", "o", "x", "r", "i"]);
    let at = |path| bson::field(&filter, path).cloned().unwrap();
    assert_eq!(at("n.$gt"), Bson::Int32(5));
    assert_eq!(at("l"), Bson::Int64(5_000_000_000));
    assert_eq!(at("d"), Bson::Double(1.5));
    assert_eq!(at("t"), Bson::DateTime(1_577_836_800_000));
    assert_eq!(at("u"), Bson::DateTime(7));
    assert_eq!(at("o"), Bson::ObjectId([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]));
    assert_eq!(at("x.1"), Bson::Bool(true));
    assert_eq!(at("r"), Bson::Regex("^a".into(), "i".into()));
    assert_eq!(at("i"), Bson::Int32(3));
    assert_eq!(bson::decode(&bson::encode(&filter)), Ok(filter));
    for wrong in ["", "{}", "[]", "7", r#"{"a": {"$oid": "x"}}"#, r#"{"a": {"$numberDecimal": "1"}}"#] {
        assert!(extended_json::filter(wrong).is_err(), "{wrong}");
    }
}

/// The example of bsonspec.org.
#[test]
fn bson_bytes() {
    let document = vec![("hello".to_owned(), Bson::String("world".into()))];
    assert_eq!(bson::encode(&document), b"\x16\0\0\0\x02hello\0\x06\0\0\0world\0\0");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_document_or_refused(bytes: Vec<u8>) {
        let _ = bson::decode(&bytes);
    }
}
