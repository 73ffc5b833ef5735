//! Addresses of Jolokia as ActiveMQ Classic serves it.

use crate::Error;
use crate::urls::{host, is_request_uri, path, shown};

/// What a template of the address says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) endpoint: String,
    pub(super) broker: String,
    pub(super) destination: String,
}

/// The address of a queue's size.
pub(super) fn url(endpoint: &str, broker: &str, destination: &str) -> String {
    format!(
        "http://{endpoint}/api/jolokia/read/org.apache.activemq:type=Broker,brokerName={broker},\
         destinationType=Queue,destinationName={destination}/QueueSize"
    )
}

/// Reads the names out of a template.
pub(super) fn template(url: &str) -> Result<Template, Error> {
    let written = shown(url);
    if !is_request_uri(url) {
        let text = format!("unable to parse ActiveMQ restAPITemplate: {written:?} is not an address");
        return Err(Error::new(text));
    }
    let unusable =
        |why: &str| Error::new(format!("unable to parse ActiveMQ restAPITemplate: {why}: {written}"));
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
        return Err(Error::new(format!("no brokerName given: {written}")));
    }
    let destination = named("destinationName").ok_or_else(|| unusable("destinationName is missing"))?;
    if destination.is_empty() {
        return Err(Error::new("no destinationName is given"));
    }
    Ok(Template {
        endpoint: host(url).to_owned(),
        broker: broker.to_owned(),
        destination: destination.to_owned(),
    })
}
