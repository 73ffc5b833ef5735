//! The scaler `postgresql` against a real server.

use testbed::backends::Postgresql;

use super::{assert_error_contains, certificates, read, scaler, spec, until};

#[tokio::test]
async fn queries_yield_numbers_or_errors() {
    let (authority, identity) = certificates();
    let mut server = Postgresql::start("hunter2", Some(&identity)).await.unwrap();
    let port = server.port().to_string();
    server
        .sql("CREATE TABLE jobs (done boolean); INSERT INTO jobs VALUES (true), (false), (false)")
        .await
        .unwrap();
    let place = [
        ("host", "127.0.0.1"),
        ("port", &*port),
        ("userName", "plimsoll"),
        ("dbName", "plimsoll"),
        ("targetQueryValue", "2.5"),
    ];
    let password = [("password", "hunter2")];
    let scaler_with = |query: &str, mode: &str, more: super::ParameterPairs<'_>| {
        let metadata = [&place[..], &[("query", query), ("sslmode", mode)], more].concat();
        scaler("postgresql", &metadata, &password)
    };
    let query = "SELECT count(*) FROM jobs WHERE NOT done";
    let jobs = scaler_with(query, "disable", &[]);
    assert_eq!(spec(&jobs).await, ("s0-postgresql".to_owned(), "2.500".to_owned()));
    assert_eq!(read(&jobs).await, Ok(("2".into(), true)));
    assert_eq!(
        read(&scaler_with(query, "disable", &[("activationTargetQueryValue", "2")])).await,
        Ok(("2".into(), false))
    );
    assert_eq!(read(&scaler_with("SELECT 1.25, 'x'", "disable", &[])).await, Ok(("1.250".into(), true)));
    assert_eq!(
        read(&scaler_with("SELECT generate_series(1, 100000)", "disable", &[])).await,
        Ok(("1".into(), true))
    );
    assert_eq!(read(&scaler_with("SELECT -3", "disable", &[])).await, Ok(("0".into(), false)));

    let words = |text| ["error inspecting postgreSQL: could not query postgreSQL", text];
    for (query, response) in [
        ("SELECT 1 WHERE false", "no rows in result set"),
        ("SELECT NULL::int", "NULL"),
        ("SELECT 'many'", "is no number"),
        ("SELECT 'NaN'::float8", "is no number"),
        ("SELECT count(*) FROM none", "\"none\" does not exist"),
        ("SELEC 1", "syntax error"),
    ] {
        assert_error_contains(
            &read(&scaler_with(query, "disable", &[])).await.unwrap_err(),
            &words(response),
        );
    }
    // The connection still works after these errors.
    assert_eq!(read(&jobs).await, Ok(("2".into(), true)));

    // All TLS modes, with a known and an unknown authority.
    for mode in ["allow", "prefer", "require"] {
        assert_eq!(read(&scaler_with(query, mode, &[])).await, Ok(("2".into(), true)), "{mode}");
    }
    for mode in ["verify-ca", "verify-full"] {
        assert_error_contains(
            &read(&scaler_with(query, mode, &[])).await.unwrap_err(),
            &["unknown authority"],
        );
        let file = std::env::temp_dir().join(format!("plimsoll-scalers-{}-{mode}.pem", std::process::id()));
        std::fs::write(&file, authority.certificate()).unwrap();
        let connection = format!(
            "postgresql://plimsoll:hunter2@127.0.0.1:{port}/plimsoll?sslmode={mode}&sslrootcert={}",
            file.display()
        );
        let whole = [
            ("query", "SELECT ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid()"),
            ("targetQueryValue", "1"),
        ];
        let scaler = scaler("postgresql", &whole, &[("connection", &connection)]);
        assert_eq!(read(&scaler).await, Ok(("1".into(), true)), "{mode}");
        std::fs::remove_file(file).unwrap();
    }
    assert_error_contains(&read(&scaler_with(query, "maybe", &[])).await.unwrap_err(), &["sslmode"]);

    // Wrong credentials, and a database that does not exist.
    let metadata = [&place[..], &[("query", query), ("sslmode", "disable")]].concat();
    let wrong = scaler("postgresql", &metadata, &[("password", "wrong")]);
    assert_error_contains(&read(&wrong).await.unwrap_err(), &["password authentication failed"]);
    let without_password = scaler("postgresql", &metadata, &[]);
    assert_error_contains(&read(&without_password).await.unwrap_err(), &["password"]);
    let connection = format!("host=127.0.0.1 port={port} user=plimsoll password='hunter2' dbname=none");
    let nowhere =
        scaler("postgresql", &[("query", query), ("targetQueryValue", "1")], &[("connection", &connection)]);
    assert_error_contains(&read(&nowhere).await.unwrap_err(), &["database \"none\" does not exist"]);

    // The server is killed and started again.
    server.stop();
    for _ in 0..3 {
        assert_error_contains(&read(&jobs).await.unwrap_err(), &["connection refused"]);
    }
    server.resume().await.unwrap();
    server.sql("DELETE FROM jobs WHERE NOT done").await.unwrap();
    until(&jobs, "0", false).await;

    // A query that takes too long is ended by the server or by our timeout, which includes the connection and so may expire first on a busy machine.
    let slow = scaler_with("SELECT pg_sleep(60), 1", "disable", &[]);
    let error = read(&slow).await.unwrap_err();
    assert!(error.contains("took longer than 14s") || error.contains("no answer within 15s"), "{error}");
    let active =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'";
    let begun = std::time::Instant::now();
    while server.sql(active).await.unwrap() != "0" {
        assert!(begun.elapsed() < super::WAIT_TIMEOUT, "the server still runs the query");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn notifications_wake() {
    let server = Postgresql::start("hunter2", None).await.unwrap();
    let port = server.port().to_string();
    let metadata = [
        ("host", "127.0.0.1"),
        ("port", &*port),
        ("userName", "plimsoll"),
        ("dbName", "plimsoll"),
        ("sslmode", "disable"),
        ("query", "SELECT 1"),
        ("targetQueryValue", "1"),
        ("wakeChannel", "Jobs"),
    ];
    let (sender, mut heard) = tokio::sync::mpsc::channel(1);
    let waking =
        tokio::spawn(scaler("postgresql", &metadata, &[("password", "hunter2")]).wake(sender).unwrap());
    // The stream wakes once when it listens, and once per notification.
    assert_eq!(tokio::time::timeout(super::WAIT_TIMEOUT, heard.recv()).await.unwrap(), Some(()));
    for _ in 0..3 {
        server.sql("SELECT pg_notify('Jobs', 'one more')").await.unwrap();
        assert_eq!(tokio::time::timeout(super::WAIT_TIMEOUT, heard.recv()).await.unwrap(), Some(()));
    }
    waking.abort();
}
