//! A hostile tenant: every text field of every namespaced object of KEDA, and every parameter of every trigger, is set to a path, an
//! address of the tenant's own server, a reference to a variable, a name in another namespace (docs/security.md).
//!
//! No file of the operator is opened, no credential of the operator arrives at the tenant's server, and nothing of another namespace
//! is shown. Controls prove that each of the three would have been seen.

#![cfg(target_os = "linux")]

mod canaries;
mod cases;
mod env;
mod objects;
mod triggers;

use std::time::Duration;

use api::provider::Compat;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use scalers::backends::Backends;
use scalers::{Trigger, table};

use self::canaries::{OTHER_SECRET, OperatorFiles, RecordingServer, shown_canary};

/// Triggers that are queried concurrently.
const CONCURRENT_TRIGGERS: usize = 16;
/// Time limit of one trigger.
const TRIGGER_TIMEOUT: Duration = Duration::from_secs(3);

/// Builds and queries a trigger; returns everything that it shows.
async fn query(trigger: &Trigger, backends: &Backends) -> String {
    let work = async {
        let scaler = match table::build(trigger, backends) {
            Ok(scaler) => scaler,
            Err(error) => return error.to_string(),
        };
        let specs = match scaler.specs().await {
            Ok(specs) => specs,
            Err(error) => return error.to_string(),
        };
        let mut shown = format!("{specs:?}");
        for external in specs.iter().filter_map(|spec| spec.external.as_ref()) {
            match scaler.read(&external.metric.name).await {
                Ok(reading) => shown.push_str(&format!("{:?}", reading.values)),
                Err(error) => shown.push_str(&error.to_string()),
            }
        }
        shown
    };
    tokio::time::timeout(TRIGGER_TIMEOUT, work).await.unwrap_or_default()
}

#[tokio::test]
async fn no_parameter_of_any_trigger_reaches_files_variables_or_another_namespace() {
    let (_running, client) = env::cluster().await;
    let (server, files) = (RecordingServer::start().await, OperatorFiles::new("triggers"));
    let backends = Backends::new(env::reader(&client), env::web(), Compat::Better);
    let values = cases::values(&files, &server);
    let mut all = Vec::new();
    for (type_, sample) in triggers::samples() {
        let valid = triggers::valid(type_, sample, &server);
        for parameter in type_.parameters {
            for value in &values {
                let hostile = triggers::hostile(&valid, parameter, value).into_iter();
                all.extend(hostile.map(|(source, trigger)| {
                    (format!("{} {} {source:?} {}", type_.name, parameter.name(), value.kind), trigger)
                }));
            }
            let variable = triggers::from_operator_variable(&valid, parameter);
            all.push((format!("{} {} FromEnv", type_.name, parameter.name()), variable));
        }
    }
    assert!(all.len() > 3000, "only {} triggers", all.len());
    let shown = futures::stream::iter(&all)
        .map(|(name, trigger)| {
            let backends = &backends;
            async move { (name, query(trigger, backends).await) }
        })
        .buffer_unordered(CONCURRENT_TRIGGERS);
    let leaks: Vec<(&String, String)> = shown
        .filter(|(_, shown)| std::future::ready(shown_canary(shown.as_bytes()).is_some()))
        .collect()
        .await;
    assert!(leaks.is_empty(), "{leaks:#?}");
    assert_eq!(shown_canary(&server.received()), None, "what the tenant's server received");
    assert_eq!(files.opened(), Vec::<String>::new());

    // The server records, the files are watched, and names of the own namespace are found.
    let (type_, sample) =
        triggers::samples().into_iter().find(|(type_, _)| type_.name == "metrics-api").unwrap();
    let mut valid = triggers::valid(type_, sample, &server);
    valid.metadata.insert("url".to_owned(), format!("{}/control", server.url()));
    valid.metadata.insert("valueLocation".to_owned(), "value".to_owned());
    let shown = query(&valid, &backends).await;
    assert!(shown.contains("Quantity") || shown.contains('5'), "{shown}");
    assert!(server.has_received("/control"));
    std::fs::read(files.path("token")).unwrap();
    assert_eq!(files.opened().first().map(String::as_str), Some("token"));
    assert!(shown_canary(&std::fs::read(files.path("token")).unwrap()).is_some());
    for user in ["", "u:", "user:"] {
        let coded = STANDARD.encode(format!("{user}{OTHER_SECRET}"));
        assert!(shown_canary(coded.as_bytes()).is_some(), "{user}");
    }
    assert!(shown_canary(b"canary").is_none());
}
