//! Scalers against real servers: values and activity, servers that are killed and restarted, wrong passwords, missing queues and keys, TLS.

#![allow(clippy::disallowed_methods, reason = "tests and benches measure with the clock of the machine")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod check;
mod external;
mod metrics_api;
mod postgresql;
#[path = "../shared/program.rs"]
#[allow(dead_code, reason = "shared with other test programs, which use more of it")]
mod program;
mod prometheus;
mod rabbitmq;
mod redis;
mod same_server;
mod trust;
mod vault;

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::provider::Compat;
use scalers::backends::Backends;
use scalers::tenant_files::TenantFiles;
use scalers::web::HttpSettings;
use scalers::{Owner, Reading, Scaler, Trigger, table};
use testbed::pki::{Authority, Identity};

/// The timeout of a wait, which is far longer than any wait here takes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
/// The maximum time of a query to a server that does not run.
const DEAD_SERVER_TIMEOUT: Duration = Duration::from_secs(16);

type ParameterPairs<'a> = &'a [(&'a str, &'a str)];

/// Builds the scaler of a trigger.
fn scaler(type_: &str, metadata: ParameterPairs<'_>, auth: ParameterPairs<'_>) -> Arc<dyn Scaler> {
    scaler_trusting("", type_, metadata, auth)
}

/// Builds the scaler of a trigger in a process that trusts further authorities (PEM).
fn scaler_trusting(
    authorities: &str,
    type_: &str,
    metadata: ParameterPairs<'_>,
    auth: ParameterPairs<'_>,
) -> Arc<dyn Scaler> {
    let owner = Owner { kind: "ScaledObject".into(), namespace: "ns".into(), name: "so".into() };
    let http_timeout = Duration::from_secs(3);
    let mut trigger = Trigger { owner, type_: type_.to_owned(), http_timeout, ..Trigger::default() };
    trigger.metadata.extend(metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    trigger.auth.extend(auth.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    // Responses are not cached.
    let authorities = authorities.as_bytes().to_vec();
    let settings = HttpSettings { fresh: Duration::ZERO, authorities, ..HttpSettings::allowing_loopback() };
    let files = TenantFiles::of(Some(std::env::temp_dir()));
    table::build(&trigger, &Backends::without_cluster(settings, Compat::Better).with_files(files)).unwrap()
}

/// The name and target of the only metric.
async fn spec(scaler: &Arc<dyn Scaler>) -> (String, String) {
    let specs = scaler.specs().await.unwrap();
    let external = specs[0].external.as_ref().unwrap();
    (external.metric.name.clone(), external.target.average_value.as_ref().unwrap().to_string())
}

/// Reads the value, and whether the scaler is active.
async fn read(scaler: &Arc<dyn Scaler>) -> Result<(String, bool), String> {
    let begun = Instant::now();
    let response = scaler.read("s0-asked").await;
    assert!(begun.elapsed() < DEAD_SERVER_TIMEOUT, "{:?}", begun.elapsed());
    let Reading { values, active } = response.map_err(|error| error.to_string())?;
    assert!(values.iter().all(|value| value.name == "s0-asked"));
    Ok((values[0].value.to_string(), active))
}

/// Waits until the scaler returns this value.
async fn until(scaler: &Arc<dyn Scaler>, value: &str, active: bool) {
    let begun = Instant::now();
    loop {
        let response = read(scaler).await;
        if response == Ok((value.to_owned(), active)) {
            return;
        }
        assert!(begun.elapsed() < WAIT_TIMEOUT, "{response:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An authority, and a server certificate that it signed.
fn certificates() -> (Authority, Identity) {
    let authority = Authority::new("scalers").unwrap();
    let server = authority.server(&["127.0.0.1", "localhost"]).unwrap();
    (authority, server)
}

/// Asserts that an error contains these words and does not contain the password.
fn assert_error_contains(error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "{error} has no {word}");
    }
    assert!(!error.contains("hunter2") && !error.contains("guest:guest"), "{error}");
}
