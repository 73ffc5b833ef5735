//! Jolokia URLs of ActiveMQ Classic.

use crate::ScalerError;
use crate::urls::{host, is_request_uri, path, shown};

/// The names in a URL template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ActivemqTemplate {
    pub(super) endpoint: String,
    pub(super) broker: String,
    pub(super) destination: String,
}

/// The URL of a queue's size.
pub(super) fn url(endpoint: &str, broker: &str, destination: &str) -> String {
    format!(
        "http://{endpoint}/api/jolokia/read/org.apache.activemq:type=Broker,brokerName={broker},\
         destinationType=Queue,destinationName={destination}/QueueSize"
    )
}

/// Reads the names from a URL template.
pub(super) fn template(url: &str) -> Result<ActivemqTemplate, ScalerError> {
    let written = shown(url);
    if !is_request_uri(url) {
        let text = format!("unable to parse ActiveMQ restAPITemplate: {written:?} is not an address");
        return Err(ScalerError::new(text));
    }
    let unusable = |why: &str| scaler_error!("unable to parse ActiveMQ restAPITemplate: {why}: {written}");
    let (_, names) = path(url).split_once(':').ok_or_else(|| unusable("it names no MBean"))?;
    let names = names.split_once('/').map_or(names, |(names, _)| names);
    let named = |key: &str| {
        names
            .split(',')
            .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key))
            .map(|(_, value)| value)
    };
    let broker = named("brokerName").ok_or_else(|| unusable("brokerName is missing"))?;
    if broker.is_empty() {
        bail!("no brokerName given: {written}");
    }
    let destination = named("destinationName").ok_or_else(|| unusable("destinationName is missing"))?;
    if destination.is_empty() {
        bail!("no destinationName is given");
    }
    Ok(ActivemqTemplate {
        endpoint: host(url).to_owned(),
        broker: broker.to_owned(),
        destination: destination.to_owned(),
    })
}
