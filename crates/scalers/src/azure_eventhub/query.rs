//! Hubs, signatures and the events that are not processed yet, without IO.

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::amqp_value::AmqpValue;
use crate::ScalerError;
use crate::azure_clouds::of_cloud;
use crate::parameters::Secret;
use crate::web::escaped;

/// Scope of tokens of a pod identity.
pub(super) const EVENT_HUBS_SCOPE: &str = "https://eventhubs.azure.net/.default";
/// The type of shared access signatures.
pub(super) const SIGNATURE_TYPE: &str = "servicebus.windows.net:sastoken";
/// The port of AMQP with TLS, and that of the emulator without it.
const TLS_PORT: u16 = 5671;
const EMULATOR_PORT: u16 = 5672;
/// Maximum number of partitions of a hub.
const MAX_PARTITIONS: usize = 4096;

/// Where a hub is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HubAddress {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) uses_tls: bool,
    /// The namespace as it is written in the names of checkpoints.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl HubAddress {
    /// The scope of tokens for the hub (their audience).
    pub(super) fn token_scope(&self) -> String {
        format!("amqps://{}/{}", self.host, self.name)
    }
}

/// A connection string.
#[derive(Clone, Debug)]
pub(super) struct HubConnection {
    pub(super) hub: HubAddress,
    credentials: HubCredentials,
}

#[derive(Clone, Debug)]
enum HubCredentials {
    Key { name: String, key: Secret },
    Signature(Secret),
}

impl HubConnection {
    /// Parses a connection string; `hub` is used if it names none. Errors do not quote it, because it contains a key.
    pub(super) fn parse(text: &str, hub: &str) -> Result<Self, ScalerError> {
        let field = |wanted: &str| {
            let mut pairs = text.split(';').filter_map(|pair| pair.split_once('='));
            let found = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
        };
        let bad = |what: &str| scaler_error!("the connection string of the Event Hub has no {what}");
        let endpoint = field("Endpoint").ok_or_else(|| bad("Endpoint"))?;
        let namespace = endpoint.split_once("://").map_or(endpoint, |(_, host)| host).trim_end_matches('/');
        let is_emulator = field("UseDevelopmentEmulator").is_some_and(|yes| yes.eq_ignore_ascii_case("true"));
        let default = if is_emulator { EMULATOR_PORT } else { TLS_PORT };
        let (host, port) = match namespace.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| bad("Endpoint with a valid port"))?),
            None => (namespace, default),
        };
        if host.is_empty() || host.contains(['/', '@', '?', '#']) {
            return Err(bad("Endpoint such as sb://NAMESPACE.servicebus.windows.net/"));
        }
        let credentials =
            match (field("SharedAccessSignature"), field("SharedAccessKeyName"), field("SharedAccessKey")) {
                (Some(signature), _, _) => HubCredentials::Signature(Secret::new(signature)),
                (None, Some(name), Some(key)) => {
                    HubCredentials::Key { name: name.to_owned(), key: Secret::new(key) }
                }
                _ => return Err(bad("SharedAccessKeyName and SharedAccessKey")),
            };
        let name = field("EntityPath").unwrap_or(hub).to_owned();
        if name.is_empty() {
            return Err(bad("EntityPath, and there is no eventHubName"));
        }
        let (host, namespace) = (host.to_owned(), namespace.to_owned());
        let hub = HubAddress { host, port, uses_tls: !is_emulator, namespace, name };
        Ok(Self { hub, credentials })
    }

    /// A signature that is valid until the given Unix time in seconds.
    pub(super) fn token(&self, until: i64) -> Secret {
        match &self.credentials {
            HubCredentials::Signature(signature) => signature.clone(),
            HubCredentials::Key { name, key } => {
                let resource = escaped(&self.hub.token_scope()).to_lowercase();
                let key = hmac::Key::new(HMAC_SHA256, key.reveal().as_bytes());
                let tag = hmac::sign(&key, format!("{resource}\n{until}").as_bytes());
                let signature = escaped(&STANDARD.encode(tag.as_ref()));
                let name = escaped(name);
                Secret::new(format!(
                    "SharedAccessSignature sr={resource}&sig={signature}&se={until}&skn={name}"
                ))
            }
        }
    }
}

/// A hub in one of Azure's clouds. Other hosts do not get a token of the operator.
pub(super) fn workload_hub(namespace: &str, hub: &str, cloud: &str) -> Result<HubAddress, ScalerError> {
    let suffixes = ["servicebus.windows.net", "servicebus.usgovcloudapi.net", "servicebus.chinacloudapi.cn"];
    let Some(suffix) = of_cloud(cloud, suffixes) else {
        bail!("azure-workload can be used in Azure's own clouds only: give a connection in cloud {cloud}");
    };
    if namespace.is_empty() || !namespace.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        bail!("eventHubNamespace {namespace:?} is not the name of a namespace");
    }
    let host = format!("{namespace}.{suffix}");
    let (namespace, name) = (host.clone(), hub.to_owned());
    Ok(HubAddress { host, port: TLS_PORT, uses_tls: true, namespace, name })
}

/// The state of a partition, as a hub reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionInfo {
    pub(super) id: String,
    pub(super) first: i64,
    /// The number of the last event; -1 if there was none.
    pub(super) last: i64,
}

/// The ids of the partitions of a hub.
pub(super) fn partition_ids(answer: &AmqpValue) -> Result<Vec<String>, ScalerError> {
    let ids = answer.get("partition_ids").map(AmqpValue::items).unwrap_or_default();
    if ids.is_empty() || ids.len() > MAX_PARTITIONS {
        bail!("the answer of Event Hubs has {} partitions", ids.len());
    }
    let text = |id: &AmqpValue| id.as_text().map(str::to_owned);
    ids.iter()
        .map(text)
        .collect::<Option<_>>()
        .ok_or_else(|| scaler_error!("a partition of the hub has no id"))
}

/// The numbers of the events in a partition.
pub(super) fn partition(id: &str, answer: &AmqpValue) -> Result<PartitionInfo, ScalerError> {
    let number = |name: &str| {
        let found = answer.get(name).and_then(AmqpValue::as_number);
        found.ok_or_else(|| scaler_error!("the answer of Event Hubs for a partition has no {name}"))
    };
    Ok(PartitionInfo {
        id: id.to_owned(),
        first: number("begin_sequence_number")?,
        last: number("last_enqueued_sequence_number")?,
    })
}

/// How many events of a partition are not processed yet, as KEDA counts them.
pub(super) fn unprocessed(partition: &PartitionInfo, checkpoint: Option<i64>, stale_threshold: i64) -> i64 {
    let PartitionInfo { first, last, .. } = *partition;
    match checkpoint {
        _ if last == -1 => 0,
        // Without a checkpoint all events count. Equal numbers are those of an empty partition, except for the very first event.
        None if first == last && first != 0 => 0,
        None => last.saturating_sub(first).saturating_add(1),
        Some(checkpoint) => {
            let count = if last >= checkpoint {
                last.saturating_sub(checkpoint)
            } else {
                // Numbers start over after the greatest one.
                i64::MAX.saturating_sub(checkpoint).saturating_add(last)
            };
            // A checkpoint that is a little ahead of the reported number: that number was outdated.
            if count > i64::MAX.saturating_sub(stale_threshold) { 0 } else { count }
        }
    }
}

/// The events that are served: replicas beyond the number of partitions would have nothing to do.
pub(super) fn served(total: i64, partitions: usize, threshold: i64) -> i64 {
    let partitions = partitions as i64;
    if total / threshold.max(1) > partitions { partitions.saturating_mul(threshold) } else { total }
}
