use super::dsn::{Dsn, SslMode};
use super::query;
use super::*;
use crate::tls::CertificateCheck;

fn read(text: &str) -> Dsn {
    Dsn::parse(text).map_err(|error| format!("{text}: {error}")).unwrap()
}

#[test]
fn pairs_are_read_with_quotes_and_backslashes() {
    assert_eq!(read("host=db port = 5433 user = u").hosts, [("db".to_owned(), 5433)]);
    let dsn = read(r"host=db user=u password='it\'s \\ here' dbname=shop sslmode=require");
    assert_eq!(dsn.hosts, [("db".to_owned(), 5432)]);
    assert_eq!(dsn.password.reveal(), r"it's \ here");
    assert_eq!((&*dsn.database, dsn.ssl), ("shop", SslMode::Require(CertificateCheck::Anything)));
}

#[test]
fn urls_are_read_with_escapes_and_several_hosts() {
    let dsn = read(
        "postgresql://us%40er:p%3Aw%2F@h1:1,[::1]:2,h3/shop%20db?sslmode=verify-full&sslrootcert=/ca.pem",
    );
    assert_eq!(dsn.hosts, [("h1".to_owned(), 1), ("::1".to_owned(), 2), ("h3".to_owned(), 5432)]);
    assert_eq!((&*dsn.user, dsn.password.reveal(), &*dsn.database), ("us@er", "p:w/", "shop db"));
    assert_eq!((dsn.ssl, &*dsn.ssl_root_certificate), (SslMode::Require(CertificateCheck::Full), "/ca.pem"));
    assert_eq!(read("postgres://u@h").ssl, SslMode::Prefer);
    assert_eq!(read("postgres://u@h/d?search_path=shop").options, " -c search_path=shop");
    assert_eq!(dsn.name(), "h1:1,::1:2,h3:5432");
}

#[test]
fn parts_need_no_quotes() {
    let dsn = Dsn::of_parts("h", "1", "a b", &Secret::new(r"it's \"), "d'b", "disable").unwrap();
    assert_eq!((&*dsn.user, dsn.password.reveal(), &*dsn.database), ("a b", r"it's \", "d'b"));
    for port in ["abc", "0", "12345.6789", "0x10", "99999"] {
        assert_eq!(
            Dsn::of_parts("h", port, "u", &Secret::default(), "d", "disable").err().unwrap().to_string(),
            format!("{port:?} is no port")
        );
    }
    assert!(Dsn::of_parts("h", "1", "u", &Secret::default(), "d", "with space").is_err());
}

#[test]
fn errors_do_not_contain_the_password() {
    for bad in [
        "c",
        "password=hunter2 host",
        "password='hunter2",
        "password=hunter2\\",
        "postgres://u:hunter2@h:port/d",
        "postgres://u:hunter2%zz@h/d",
        "postgres://u:hunter2/word@h/d",
        "postgres://u:hunter2?word@h:1/d",
        "postgres://:hunter2@h/d",
        "user=u password=hunter2 port=x",
        "user=u password=hunter2 sslmode=maybe",
        "user=u password=hunter2 service=x",
        "user=u password=hunter2 host=a,b port=1,2,3",
    ] {
        let error = Dsn::parse(bad).err().unwrap().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn only_numbers_are_values() {
    assert_eq!(query::number(Some(" 12.5 ")), Ok(12.5));
    assert_eq!(query::number(Some("1e3")), Ok(1000.0));
    assert_eq!(query::number(Some("-1")), Ok(-1.0));
    assert_eq!(query::number(None).unwrap_err().to_string(), "the first field of the first row is NULL");
    assert_eq!(
        query::number(Some("many")).unwrap_err().to_string(),
        "the first field of the first row is no number"
    );
    assert!(query::number(Some("NaN")).is_err() && query::number(Some("Infinity")).is_err());
    assert!(query::number(Some("")).is_err() && query::number(Some("t")).is_err());
}

#[test]
fn long_passwords_are_refused() {
    let of = |bytes: usize| {
        let password = "x".repeat(bytes);
        [
            Dsn::parse(&format!("host=h user=u password={password}")),
            Dsn::parse(&format!("postgres://u:{password}@h/d")),
            Dsn::of_parts("h", "1", "u", &Secret::new(password), "d", "disable"),
        ]
    };
    assert!(of(4096).iter().all(Result::is_ok));
    for refused in of(4097) {
        assert_eq!(refused.err().unwrap().to_string(), "the password has more than 4096 bytes");
    }
}

/// The runtime starts a thread only for work that is not done on its own one.
#[cfg(feature = "postgresql")]
#[test]
fn logins_are_computed_on_a_worker() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let threads = Arc::new(AtomicUsize::new(0));
    let started = Arc::clone(&threads);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_start(move || {
            started.fetch_add(1, Ordering::SeqCst);
        })
        .build()
        .unwrap();
    let read = async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connection =
            format!("host=127.0.0.1 port={} user=u sslmode=disable", listener.local_addr().unwrap().port());
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        let metadata = [("query", "SELECT 1"), ("targetQueryValue", "1")];
        let mut trigger = crate::test_support::trigger("postgresql", &metadata);
        trigger.auth = crate::test_support::texts(&[("connection", &connection)]);
        crate::test_support::read(&trigger).await
    };
    assert!(runtime.block_on(read).is_err());
    assert!(threads.load(Ordering::SeqCst) > 0);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        let _ = Dsn::parse(&text);
        let _ = Dsn::parse(&format!("postgres://{text}"));
    }
}

/// Certificates that a connection string names are read only where the administrator allows it.
#[tokio::test]
async fn certificate_files_need_a_folder() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for parameter in ["sslrootcert", "sslcert", "sslkey"] {
        let connection = format!("host=127.0.0.1 port={port} user=u sslmode=require {parameter}=/dev/zero");
        let metadata = [("query", "SELECT 1"), ("targetQueryValue", "1")];
        let mut trigger = crate::test_support::trigger("postgresql", &metadata);
        trigger.auth = crate::test_support::texts(&[("connection", &connection)]);
        let error = crate::test_support::read(&trigger).await.unwrap_err().to_string();
        assert!(
            error.contains(&format!("{parameter}: no file is read because --tenant-files-dir")),
            "{error}"
        );
    }
}
