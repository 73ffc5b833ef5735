mod fake;

use fake::{FakeMode, column, done, fake_mssql};

use super::dsn::{MssqlDsn, MssqlEncryption};
use super::tokens::{self, MssqlField};
use super::wire::{self, LoginAs};
use super::*;
use crate::test_support::{build, read, read_answered, texts, trigger, value};

fn query_trigger(port: u16, query: &str, password: &str) -> Trigger {
    let port = port.to_string();
    let mut given = trigger(
        "mssql",
        &[
            ("query", query),
            ("targetValue", "5"),
            ("host", "127.0.0.1"),
            ("port", &port),
            ("username", "u"),
            ("database", "d"),
        ],
    );
    given.auth = texts(&[("password", password)]);
    given
}

fn with_connection(connection: &str) -> Trigger {
    let mut given = trigger("mssql", &[("query", "SELECT 7"), ("targetValue", "5")]);
    given.auth = texts(&[("connectionString", connection)]);
    given
}

#[tokio::test]
async fn results() {
    let fake = fake_mssql(FakeMode::Plain).await;
    let value_of = async |query: &str| value(read(&query_trigger(fake.port, query, "hunter2")).await);
    let prefix = "error inspecting mssql: ";
    assert_eq!(value_of("SELECT 7").await, "7");
    // KEDA serves no negative values.
    assert_eq!(value_of("SELECT -3").await, "0");
    assert_eq!(value_of("many rows").await, "1");
    assert_eq!(value_of("text").await, "4500m");
    // KEDA takes a result without rows for 0.
    assert_eq!(value_of("no rows").await, "0");
    assert_eq!(value_of("an update").await, "0");
    assert_eq!(value_of("null").await, format!("{prefix}the first field of the first row is NULL"));
    assert_eq!(value_of("words").await, format!("{prefix}the first field of the first row is no number"));
    assert!(value_of("broken").await.ends_with("Invalid object name 'x'. (error 208)"));
    assert!(value_of("a number and an error").await.ends_with("Divide by zero. (error 8134)"));
    assert!(value_of("xml").await.contains("a column of type 0xf1, which is not supported"));
}

#[tokio::test]
async fn wrong_password_is_named_and_not_shown() {
    let fake = fake_mssql(FakeMode::Plain).await;
    let refused = read(&query_trigger(fake.port, "SELECT 7", "hunter3")).await;
    assert_eq!(refused.as_ref().unwrap_err().cause(), Some(&crate::SourceRefusal::Credentials));
    let wrong = value(refused);
    assert!(wrong.contains("Login failed for user 'u'. (error 18456)"), "{wrong}");
    assert!(!wrong.contains("hunter"), "{wrong}");
}

#[tokio::test]
async fn a_connection_serves_many_reads_and_is_made_again() {
    let fake = fake_mssql(FakeMode::Tls).await;
    let scaler = build(&query_trigger(fake.port, "SELECT 7", "hunter2")).unwrap();
    for _ in 0..3 {
        assert_eq!(value(scaler.read("m").await), "7");
    }
    assert_eq!(fake.connections(), 1);
    fake.drop_connections();
    assert_eq!(value(scaler.read("m").await), "7");
    assert_eq!(fake.connections(), 2);
}

#[tokio::test]
async fn certificates_are_checked_if_encryption_is_configured() {
    let fake = fake_mssql(FakeMode::Tls).await;
    let server = format!("server=127.0.0.1,{};user id=u;password=hunter2;database=d", fake.port);
    assert_eq!(value(read(&with_connection(&server)).await), "7");
    let trusting = format!("{server};encrypt=true;TrustServerCertificate=true");
    assert_eq!(value(read(&with_connection(&trusting)).await), "7");
    let checked = format!("{server};encrypt=true;hostNameInCertificate=localhost");
    let error = value(read(&with_connection(&checked)).await);
    assert!(error.contains("certificate"), "{error}");
    let plain = fake_mssql(FakeMode::Plain).await;
    let url = format!("sqlserver://u:hunter2@127.0.0.1:{}?database=d&encrypt=true", plain.port);
    assert!(value(read(&with_connection(&url)).await).contains("the server does not support TLS"));
}

#[tokio::test]
async fn login_is_sent_on_to_another_server() {
    let last = fake_mssql(FakeMode::Plain).await;
    let first = fake_mssql(FakeMode::Routes(last.port)).await;
    assert_eq!(value(read(&query_trigger(first.port, "SELECT 7", "hunter2")).await), "7");
    assert_eq!((first.connections(), last.connections()), (1, 1));
    let wrong = query_trigger(first.port, "SELECT 7", "hunter3");
    assert!(value(read(&wrong).await).contains("Login failed"));
}

/// A token of the operator is sent to hosts of Azure only.
#[tokio::test]
async fn tokens_of_the_operator_stay_in_azure() {
    let mut given = query_trigger(1, "SELECT 7", "hunter2");
    given.identity.provider = "azure-workload".to_owned();
    let error_of = async |host: &str, resource: &str| {
        let mut given = given.clone();
        given.metadata.insert("host".to_owned(), host.to_owned());
        given.metadata.insert("workloadIdentityResource".to_owned(), resource.to_owned());
        let answer = read_answered(&given, |call| panic!("a request to {}", call.url));
        value(answer.await)
    };
    for host in ["127.0.0.1", "evil.example", "database.windows.net.evil.example", ".database.windows.net"] {
        let error = error_of(host, "").await;
        assert!(error.contains("hosts of Azure SQL"), "{host}: {error}");
    }
    let error = error_of("shop.database.windows.net", "https://vault.azure.net").await;
    assert!(error.contains("workloadIdentityResource must be one of"), "{error}");
}

#[test]
fn federated_logins_need_the_driver() {
    let connection =
        "server=h.database.windows.net;user id=c@t;password=hunter2;fedauth=ActiveDirectoryServicePrincipal";
    let mut given = with_connection(connection);
    given.profile = crate::parameters::KedaProfile::V2_21;
    let access = |given: &Trigger| Parameters::read(given).unwrap().access(given);
    assert!(access(&given).err().unwrap().to_string().contains("needs driverName azuresql"));
    given.metadata.insert("driverName".to_owned(), "azuresql".to_owned());
    let (_, identity) = access(&given).unwrap();
    let (AzureIdentity::ClientSecret { client, tenant, .. }, scope) = identity.unwrap() else { panic!() };
    assert_eq!((&*client, &*tenant, &*scope), ("c", "t", "https://database.windows.net/.default"));
    let government = connection.replace("database.windows.net", "database.usgovcloudapi.net");
    given.auth.insert("connectionString".to_owned(), government);
    let (_, identity) = access(&given).unwrap();
    let (AzureIdentity::ClientSecret { authority, .. }, scope) = identity.unwrap() else { panic!() };
    assert_eq!(
        (&*authority, &*scope),
        ("https://login.microsoftonline.us", "https://database.usgovcloudapi.net/.default")
    );
    given.auth.insert("connectionString".to_owned(), connection.replace("ServicePrincipal", "Default"));
    assert!(access(&given).err().unwrap().to_string().contains("only ActiveDirectoryServicePrincipal"));
}

#[test]
fn connection_strings() {
    let of = |text: &str| MssqlDsn::parse(text).map_err(|error| error.to_string());
    let dsn = of("sqlserver://me:p%40ss+w@db.example:1444?database=shop+1&encrypt=true").unwrap();
    assert_eq!(
        (&*dsn.host, dsn.port, &*dsn.user, dsn.password.reveal()),
        ("db.example", 1444, "me", "p@ss+w")
    );
    assert_eq!(
        (&*dsn.database, dsn.encryption),
        ("shop 1", MssqlEncryption::Required(CertificateCheck::Full))
    );
    let dsn = of("Server=tcp:db.example,1444;Initial Catalog=shop;User Id=me;Password=\"a;b\"\"c\";ApplicationIntent=ReadOnly")
        .unwrap();
    assert_eq!((&*dsn.host, dsn.port, dsn.password.reveal()), ("db.example", 1444, "a;b\"c"));
    assert!(dsn.read_only && dsn.encryption == MssqlEncryption::Preferred(CertificateCheck::Anything));
    let dsn = of("odbc:server={db.example};port=1;pwd={a}}b};encrypt=disable").unwrap();
    assert_eq!((&*dsn.host, dsn.port, dsn.password.reveal()), ("db.example", 1, "a}b"));
    assert_eq!(dsn.encryption, MssqlEncryption::Never);
    let password = |text: &str| of(text).unwrap().password.reveal().to_owned();
    assert_eq!(password("server=h;password={a}b'"), "{a}b'");
    assert_eq!(password("server=h;password='a"), "'a");
    assert_eq!(password("odbc:server=h;pwd=\"a\""), "\"a\"");
    assert_eq!(of("server=.").unwrap().host, "localhost");
    for (host, port, expected) in [
        ("db.example:1444", "", ("db.example", 1444)),
        ("tcp:db.example,1444", "", ("db.example", 1444)),
        ("db.example", "0", ("db.example", 1433)),
        ("::1", "1444", ("::1", 1444)),
        ("[::1]:1444", "", ("::1", 1444)),
    ] {
        let dsn = MssqlDsn::new(host, port).unwrap();
        assert_eq!((&*dsn.host, dsn.port), expected);
    }
    assert_eq!(of("sqlserver://[::1]:5").unwrap().host, "::1");
    // The driver ignores a part without an equals sign.
    let dsn = of("x;server=h;y; database=d;z").unwrap();
    assert_eq!((&*dsn.host, &*dsn.database), ("h", "d"));
    for wrong in [
        "hunter2",
        "password=hunter2",
        "sqlserver://u:hunter2@h:x",
        "sqlserver://u:hunter2@h/instance",
        "server=h;password=\"hunter2",
        "server=h;password=\"a\"hunter2",
        "odbc:server=h;password={hunter2",
        "server=h;encrypt=hunter2",
        "server=h;encrypt=strict",
    ] {
        let error = of(wrong).err().unwrap();
        assert!(!error.contains("hunter2"), "{wrong}: {error}");
    }
}

#[test]
fn first_fields_of_all_types() {
    let first = |type_info: &[u8], row: &[u8]| {
        let message = [&column(type_info), row, &done()].concat();
        tokens::response(&message).unwrap().first
    };
    let number = MssqlField::Number;
    assert_eq!(first(&[0x30], &[0xd1, 200]), number(200.0));
    assert_eq!(first(&[0x34], &[0xd1, 0xff, 0xff]), number(-1.0));
    assert_eq!(first(&[0x7f], &[0xd1, 1, 0, 0, 0, 1, 0, 0, 0]), number(4_294_967_297.0));
    assert_eq!(first(&[0x6d, 8], &[&[0xd1, 8][..], &2.5_f64.to_le_bytes()].concat()), number(2.5));
    assert_eq!(first(&[0x3b], &[&[0xd1][..], &0.5_f32.to_le_bytes()].concat()), number(0.5));
    // 1.5 as money: 15000 ten-thousandths, the high half first.
    assert_eq!(first(&[0x6e, 8], &[0xd1, 8, 0, 0, 0, 0, 0x98, 0x3a, 0, 0]), number(1.5));
    assert_eq!(first(&[0x6e, 8], &[0xd1, 8, 0xff, 0xff, 0xff, 0xff, 0x68, 0xc5, 0xff, 0xff]), number(-1.5));
    let decimal = first(&[0x6c, 17, 18, 2], &[0xd1, 5, 0, 0xd2, 4, 0, 0]);
    assert_eq!(query::number(decimal), Ok(-12.34));
    let pieces =
        [&[0xd1][..], &3_u64.to_le_bytes(), &[2, 0, 0, 0, b'4', b'2', 1, 0, 0, 0, b'1', 0, 0, 0, 0]].concat();
    assert_eq!(first(&[0xa7, 0xff, 0xff, 0, 0, 0, 0, 0], &pieces), MssqlField::Text("421".to_owned()));
    assert_eq!(first(&[0x26, 4], &[0xd2, 1]), MssqlField::Null);
    assert_eq!(first(&[0x68, 1], &[0xd1, 1, 1]), MssqlField::Other);
    // Only the first result counts, even if it has no rows.
    let two = [column(&[0x30]), column(&[0x30]), vec![0xd1, 9], done().to_vec()].concat();
    assert_eq!(tokens::response(&two).unwrap().first, MssqlField::NoRow);
}

/// A row of columns that take no bytes is one byte long, and a message has millions of them.
#[test]
fn columns_that_take_no_bytes_are_refused() {
    let many = 4_096_u16;
    let one = [0_u8, 0, 0, 0, 0, 0, 0x1f, 0];
    let columns = [&[0x81][..], &many.to_le_bytes(), &one.repeat(usize::from(many))[..]].concat();
    let message = [columns, vec![0xd1; 1 << 20], done().to_vec()].concat();
    let error = tokens::response(&message).unwrap_err();
    assert_eq!(error, tokens::TdsTokenError::UnsupportedColumn(0x1f));
    assert!(error.to_string().contains("a column of type 0x1f, which is not supported"), "{error}");
}

#[tokio::test]
async fn large_answers_are_decoded_on_a_worker() {
    let fake = fake_mssql(FakeMode::Plain).await;
    let threads_of = async |query: &str| {
        let scaler = build(&query_trigger(fake.port, query, "hunter2")).unwrap();
        let read = crate::off_thread::run(async move {
            let mut threads = std::collections::HashSet::new();
            let mut reading = scaler.read("m");
            let reading = std::future::poll_fn(|context| {
                threads.insert(std::thread::current().id());
                reading.as_mut().poll(context)
            })
            .await;
            (value(reading), threads.len())
        });
        read.await
    };
    assert_eq!(threads_of("many rows").await, ("1".to_owned(), 1));
    assert_eq!(threads_of("a large answer").await, ("1".to_owned(), 2));
}

#[test]
fn logins_with_a_token_have_a_feature_extension() {
    let login = wire::login(LoginAs::Token { token: "t", echo: true }, "h", "d", true);
    assert_eq!(u32::from_le_bytes(login[..4].try_into().unwrap()) as usize, login.len());
    // Read-only intent, and an extension.
    assert_eq!(login[26..28], [0x20, 0x10]);
    let at = usize::from(u16::from_le_bytes([login[56], login[57]]));
    assert_eq!(login[58..60], [4, 0]);
    let begins = u32::from_le_bytes(login[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!(login[begins..], [2, 7, 0, 0, 0, 3, 2, 0, 0, 0, b't', 0, 0xff]);
    let prelogin = wire::prelogin(wire::ENCRYPT_ON, true);
    assert_eq!(wire::prelogin_answer(&prelogin), Ok(wire::PreloginAnswer { encryption: 1, federated: true }));
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_response_or_refused(bytes: Vec<u8>) {
        let _ = wire::prelogin_answer(&bytes);
        let _ = tokens::response(&bytes);
        let _ = tokens::response(&[&column(&[0x26, 4]), &*bytes].concat());
    }
}
