//! Connection strings of databases and addresses of queues, which tenants write.

use std::collections::BTreeMap;
use std::time::Duration;

use api::provider::Compat;
use scalers::backends::Backends;
use scalers::table::sample::SamplePairs;
use scalers::web::HttpSettings;
use scalers::{Trigger, table};

/// Parameters that hold an address: scaler type, whether the parameter comes from the TriggerAuthentication, name, and the other parameters.
const PARAMETERS: [(&str, bool, &str, SamplePairs); 6] = [
    ("rabbitmq", true, "host", &[("queueName", "q"), ("mode", "QueueLength"), ("value", "5")]),
    ("azure-queue", true, "connection", &[("queueName", "q")]),
    ("azure-servicebus", true, "connection", &[("queueName", "q")]),
    ("redis", false, "address", &[("listName", "l")]),
    ("nats-jetstream", false, "natsServerMonitoringEndpoint", &[("stream", "s"), ("consumer", "c")]),
    ("metrics-api", false, "url", &[("valueLocation", "a"), ("targetValue", "5")]),
];

/// The input is a connection string.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for scheme in ["", "postgres://"] {
        let _ = scalers::postgresql::is_connection_string(&format!("{scheme}{text}"));
    }
    // Some scalers create timers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    let _guard = runtime.enter();
    let backends = Backends::without_cluster(HttpSettings::default(), Compat::Better);
    for (type_, in_auth, name, others) in PARAMETERS {
        let mut metadata: BTreeMap<String, String> =
            others.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut auth = BTreeMap::new();
        let parameters = if in_auth { &mut auth } else { &mut metadata };
        parameters.insert(name.to_owned(), text.clone().into_owned());
        let http_timeout = Duration::from_secs(1);
        let trigger = Trigger { type_: type_.to_owned(), metadata, auth, http_timeout, ..Trigger::default() };
        if let Err(error) = table::build(&trigger, &backends) {
            assert!(error.to_string().len() < 2_000);
        }
    }
}
