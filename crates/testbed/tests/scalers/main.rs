//! Scalers against the servers they are made for: right values and activity, servers that die and come back, wrong passwords,
//! things that are not there, TLS.

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

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_mins(3);
/// What no question to a dead server may exceed.
const DEADLINE: Duration = Duration::from_secs(16);

type Pairs<'a> = &'a [(&'a str, &'a str)];

/// A trigger, ready to be asked.
fn scaler(type_: &str, metadata: Pairs<'_>, auth: Pairs<'_>) -> Arc<dyn Scaler> {
    scaler_trusting("", type_, metadata, auth)
}

/// The same in a process that trusts authorities (PEM) of its own.
fn scaler_trusting(authorities: &str, type_: &str, metadata: Pairs<'_>, auth: Pairs<'_>) -> Arc<dyn Scaler> {
    let owner = Owner { kind: "ScaledObject".into(), namespace: "ns".into(), name: "so".into() };
    let http_timeout = Duration::from_secs(3);
    let mut trigger = Trigger { owner, type_: type_.to_owned(), http_timeout, ..Trigger::default() };
    trigger.metadata.extend(metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    trigger.auth.extend(auth.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    // Each answer is asked for anew.
    let authorities = authorities.as_bytes().to_vec();
    let settings = HttpSettings { fresh: Duration::ZERO, authorities, ..HttpSettings::allowing_loopback() };
    let files = TenantFiles::of(Some(std::env::temp_dir()));
    table::build(&trigger, &Backends::without_cluster(settings, Compat::Better).with_files(files)).unwrap()
}

/// Name and target of its only metric.
async fn spec(scaler: &Arc<dyn Scaler>) -> (String, String) {
    let specs = scaler.specs().await.unwrap();
    let external = specs[0].external.as_ref().unwrap();
    (external.metric.name.clone(), external.target.average_value.as_ref().unwrap().to_string())
}

/// Its value, and whether it is active.
async fn read(scaler: &Arc<dyn Scaler>) -> Result<(String, bool), String> {
    let begun = Instant::now();
    let answer = scaler.read("s0-asked").await;
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    let Reading { values, active } = answer.map_err(|error| error.to_string())?;
    assert!(values.iter().all(|value| value.name == "s0-asked"));
    Ok((values[0].value.to_string(), active))
}

/// Waits until it has this value.
async fn until(scaler: &Arc<dyn Scaler>, value: &str, active: bool) {
    let begun = Instant::now();
    loop {
        let answer = read(scaler).await;
        if answer == Ok((value.to_owned(), active)) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An authority, and a server's certificate of it.
fn certificates() -> (Authority, Identity) {
    let authority = Authority::new("scalers").unwrap();
    let server = authority.server(&["127.0.0.1", "localhost"]).unwrap();
    (authority, server)
}

/// Two things for a text: that it has these words, and that it does not have the password.
fn assert_says(error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "{error} has no {word}");
    }
    assert!(!error.contains("hunter2") && !error.contains("guest:guest"), "{error}");
}
