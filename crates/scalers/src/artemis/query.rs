//! Jolokia URLs of ActiveMQ Artemis.

use crate::ScalerError;
use crate::urls::{host, is_request_uri, path, shown};

/// The names in a URL template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArtemisTemplate {
    pub(super) endpoint: String,
    pub(super) broker: String,
    pub(super) address: String,
    /// The queue including its quotes, which are part of the metric's name.
    pub(super) queue: String,
}

/// The URL of a queue's message count.
pub(super) fn url(endpoint: &str, broker: &str, address: &str, queue: &str) -> String {
    format!(
        "http://{endpoint}/console/jolokia/read/org.apache.activemq.artemis:broker=\"{broker}\",component=addresses,\
         address=\"{address}\",subcomponent=queues,routing-type=\"anycast\",queue=\"{queue}\"/MessageCount"
    )
}

/// Reads the names from a URL template.
pub(super) fn template(url: &str) -> Result<ArtemisTemplate, ScalerError> {
    let written = shown(url);
    let unusable = |why: &str| {
        scaler_error!(
            "can't parse restApiTemplate : unable to parse the artemis restAPITemplate: {why}: {written} "
        )
    };
    if !is_request_uri(url) {
        return Err(unusable("it is not an address"));
    }
    let (_, names) = path(url).split_once(':').ok_or_else(|| unusable("it names no MBean"))?;
    let names = names.rsplit_once('/').map_or(names, |(names, _)| names);
    let named = |key: &str| {
        let found = names.split(',').find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key));
        found.map(|(_, value)| value.to_owned()).filter(|value| !value.trim_matches('"').is_empty())
    };
    let need = |key: &str| named(key).ok_or_else(|| unusable(&format!("{key} is missing")));
    Ok(ArtemisTemplate {
        endpoint: host(url).to_owned(),
        broker: need("broker")?,
        address: need("address")?,
        queue: need("queue")?,
    })
}
