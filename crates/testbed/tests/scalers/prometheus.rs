//! The scaler `prometheus` against a real server.

use std::sync::Arc;
use std::time::Duration;

use api::provider::Compat;
use scalers::backends::Backends;
use scalers::web::HttpSettings;
use scalers::{Trigger, table};
use testbed::prometheus::Server;

use super::{assert_error_contains, read, scaler, spec, until};

#[tokio::test]
async fn queries_yield_numbers_or_errors() {
    let mut server = Server::start(Duration::from_mins(1)).await.unwrap();
    let url = server.url();
    let scaler_with = |query: &str, more: super::ParameterPairs<'_>| {
        let place = [("serverAddress", &*url), ("query", query), ("threshold", "2.5")];
        scaler("prometheus", &[&place[..], more].concat(), &[])
    };
    let four = scaler_with("vector(4)", &[]);
    assert_eq!(spec(&four).await, ("s0-prometheus".to_owned(), "2.500".to_owned()));
    assert_eq!(read(&four).await, Ok(("4".into(), true)));
    assert_eq!(
        read(&scaler_with("vector(4)", &[("activationThreshold", "4")])).await,
        Ok(("4".into(), false))
    );
    assert_eq!(read(&scaler_with("vector(1) / 3", &[])).await, Ok(("333m".into(), true)));
    assert_eq!(read(&scaler_with("vector(-4)", &[])).await, Ok(("0".into(), false)));
    // Queries with quotes, braces, signs and other alphabets are sent correctly.
    let odd = "label_replace(vector(5), \"a\", \"ä&+%=# \", \"\", \"\") + 0";
    assert_eq!(read(&scaler_with(odd, &[])).await, Ok(("5".into(), true)));

    // An empty result and a result that is no number are zero or an error, as `ignoreNullValues` says.
    let strict = [("ignoreNullValues", "false")];
    assert_eq!(read(&scaler_with("absent_metric", &[])).await, Ok(("0".into(), false)));
    assert_error_contains(
        &read(&scaler_with("absent_metric", &strict)).await.unwrap_err(),
        &["the result is empty"],
    );
    assert_eq!(read(&scaler_with("vector(1) / 0", &[])).await, Ok(("0".into(), false)));
    assert_error_contains(
        &read(&scaler_with("vector(1) / 0", &strict)).await.unwrap_err(),
        &["prometheus query returns +Inf"],
    );

    let two = "label_replace(vector(1), \"a\", \"b\", \"\", \"\") or vector(2)";
    assert_error_contains(&read(&scaler_with(two, &[])).await.unwrap_err(), &["returned multiple elements"]);
    assert_error_contains(
        &read(&scaler_with("sum(", &[])).await.unwrap_err(),
        &["api returned error. status: 400 response: ", "parse error"],
    );
    assert_error_contains(
        &read(&scaler_with("scalar(vector(1))", &[])).await.unwrap_err(),
        &["returned no vector"],
    );

    // The server is killed and started again.
    server.stop();
    assert_error_contains(&read(&four).await.unwrap_err(), &["connection refused"]);
    server.resume().await.unwrap();
    until(&four, "4", true).await;
}

#[tokio::test]
async fn thousand_objects_with_one_query_send_it_once() {
    let server = Server::start(Duration::from_mins(1)).await.unwrap();
    let settings = HttpSettings { fresh: Duration::from_mins(1), ..HttpSettings::allowing_loopback() };
    let backends = Backends::without_cluster(settings, Compat::Better);
    let before = server.query_count().await.unwrap();
    let all: Vec<_> = (0..1000)
        .map(|number| {
            let mut trigger = Trigger { type_: "prometheus".to_owned(), ..Trigger::default() };
            trigger.owner.name = format!("so-{number}");
            trigger.http_timeout = Duration::from_secs(30);
            for (key, value) in
                [("serverAddress", &*server.url()), ("query", "vector(7)"), ("threshold", "1")]
            {
                trigger.metadata.insert(key.to_owned(), value.to_owned());
            }
            let scaler = table::build(&trigger, &backends).unwrap();
            tokio::spawn(async move { read(&Arc::clone(&scaler)).await })
        })
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap(), Ok(("7".into(), true)));
    }
    assert_eq!(server.query_count().await.unwrap() - before, 1);
}
