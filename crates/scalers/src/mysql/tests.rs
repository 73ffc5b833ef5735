mod fake;

use fake::{Plugin, fake_mysql};

use super::dsn::{MysqlDsn, TlsMode, host_and_port};
use super::query::{self, FirstField};
use super::wire;
use crate::Trigger;
use crate::test_support::fake_server::FakeServer;
use crate::test_support::{build, read, texts, trigger, value};
use crate::tls::CertificateCheck;

async fn name(metadata: &[(&str, &str)], auth: &[(&str, &str)]) -> String {
    let mut given = trigger("mysql", metadata);
    given.auth = texts(auth);
    let specs = build(&given).unwrap().specs().await.unwrap();
    specs[0].external.as_ref().unwrap().metric.name.clone()
}

#[tokio::test]
async fn metric_has_the_name_of_the_database() {
    let query = [("query", "SELECT 1"), ("queryValue", "4.4")];
    assert_eq!(name(&[query[0], query[1], ("dbName", "db.x")], &[]).await, "s0-mysql-db-x");
    let connection = [("connectionString", "u:p@tcp(h:3306)/stats?tls=true")];
    assert_eq!(name(&query, &connection).await, "s0-mysql-stats?tls=true");
    assert_eq!(name(&query, &[("connectionString", "nodb")]).await, "s0-mysql-nodb");
}

fn query_trigger(fake: &FakeServer, query: &str, password: &str) -> Trigger {
    let port = fake.port.to_string();
    let mut given = trigger(
        "mysql",
        &[
            ("query", query),
            ("queryValue", "5"),
            ("host", "127.0.0.1"),
            ("port", &port),
            ("username", "u"),
            ("dbName", "d"),
        ],
    );
    given.auth = texts(&[("password", password)]);
    given
}

#[tokio::test]
async fn logins_of_all_plugins() {
    for plugin in [Plugin::Native, Plugin::CachingFast, Plugin::CachingFull, Plugin::SwitchToNative] {
        let fake = fake_mysql(plugin).await;
        let given = query_trigger(&fake, "SELECT 7", "hunter2");
        assert_eq!(value(read(&given).await), "7", "{plugin:?}");
        let refused = read(&query_trigger(&fake, "SELECT 7", "hunter3")).await;
        assert_eq!(refused.as_ref().unwrap_err().cause(), Some(&crate::SourceRefusal::Credentials));
        let wrong = value(refused);
        assert!(wrong.contains("Access denied for user 'u' (error 1045)"), "{plugin:?}: {wrong}");
        assert!(!wrong.contains("hunter"), "{wrong}");
    }
}

#[tokio::test]
async fn first_field_of_the_first_row_is_the_value() {
    let fake = fake_mysql(Plugin::Native).await;
    let value_of = async |query: &str| value(read(&query_trigger(&fake, query, "hunter2")).await);
    let prefix = "error inspecting MySQL: could not query MySQL: ";
    assert_eq!(value_of("SELECT 4.25").await, "4250m");
    assert_eq!(value_of("many rows").await, "1");
    assert_eq!(value_of("no rows").await, format!("{prefix}sql: no rows in result set"));
    assert_eq!(value_of("null").await, format!("{prefix}the first field of the first row is NULL"));
    assert_eq!(
        value_of("SELECT abc").await,
        format!("{prefix}the first field of the first row is no number")
    );
    assert_eq!(value_of("an update").await, format!("{prefix}sql: no rows in result set"));
    let error = value_of("broken").await;
    assert!(error.ends_with("Error 1146 (42S02): Table 'd.x' doesn't exist"), "{error}");
    assert!(value_of("a file").await.ends_with("the server asks for a file of this machine"));
}

#[tokio::test]
async fn a_connection_serves_many_reads_and_is_made_again() {
    let fake = fake_mysql(Plugin::Native).await;
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
async fn tls_is_refused_by_a_server_without_it() {
    let fake = fake_mysql(Plugin::Native).await;
    let mut given = trigger("mysql", &[("query", "SELECT 7"), ("queryValue", "5")]);
    let dsn = format!("u:hunter2@tcp(127.0.0.1:{})/d?tls=true", fake.port);
    given.auth = texts(&[("connectionString", &dsn)]);
    assert!(value(read(&given).await).contains("the server does not offer TLS"));
}

#[test]
fn connection_strings() {
    let dsn = MysqlDsn::parse("me:p@ss:w@tcp(db.example:3307)/shop?charset=utf8&tls=skip-verify").unwrap();
    assert_eq!(
        (&*dsn.host, dsn.port, &*dsn.user, dsn.password.reveal()),
        ("db.example", 3307, "me", "p@ss:w")
    );
    assert_eq!((&*dsn.database, dsn.tls), ("shop", TlsMode::Required(CertificateCheck::Anything)));
    let dsn = MysqlDsn::parse("/").unwrap();
    assert_eq!((&*dsn.host, dsn.port, &*dsn.user, &*dsn.database), ("127.0.0.1", 3306, "", ""));
    assert_eq!(host_and_port("[::1]:1").unwrap(), ("::1".to_owned(), 1));
    for wrong in
        ["hunter2", "u:hunter2@unix(/tmp/s)/d", "u:hunter2@tcp(h:x)/d", "u:hunter2@tcp(h/d", "/d?tls=hunter2"]
    {
        let error = MysqlDsn::parse(wrong).err().unwrap().to_string();
        assert!(!error.contains("hunter2"), "{wrong}: {error}");
    }
}

#[test]
fn texts_are_numbers_or_refused() {
    assert_eq!(query::number(FirstField::Text(" 3 ".into())), Ok(3.0));
    assert!(query::number(FirstField::Text("NaN".into())).is_err());
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_packet_or_refused(bytes: Vec<u8>) {
        let _ = wire::greeting(&bytes);
        let _ = wire::reply(&bytes);
        let _ = wire::first_field(&bytes);
        let _ = wire::encrypted("password", &bytes, &bytes);
    }
}
