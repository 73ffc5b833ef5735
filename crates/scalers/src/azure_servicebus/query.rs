//! The management API of Service Bus: connection strings, signatures, and Atom feeds.

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ScalerError;
use crate::azure_clouds::of_cloud;
use crate::parameters::Secret;
use crate::responses::{excerpt, hidden};
use crate::web::{escaped, path_escaped};
use crate::xml;

/// Number of entities per page.
pub(super) const PAGE_SIZE: usize = 100;
const API_VERSION_PARAMETER: &str = "api-version=2021-05";

/// A connection string.
#[derive(Clone, Debug)]
pub(super) struct ServiceBusConnection {
    /// `https://host`.
    pub(super) server: String,
    pub(super) access: ServiceBusCredentials,
}

/// Credentials of the client.
#[derive(Clone, Debug)]
pub(super) enum ServiceBusCredentials {
    /// An account key, which signs requests.
    Key { name: String, key: Secret },
    /// A shared access signature.
    Signature(Secret),
}

/// A queue or subscription and its active messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entity {
    pub(super) name: String,
    pub(super) active: u64,
}

/// Parses a connection string. Errors do not quote it, because it contains a key.
pub(super) fn connection(text: &str) -> Result<ServiceBusConnection, ScalerError> {
    let (mut endpoint, mut name, mut key, mut signature) = (None, None, None, None);
    for part in text.split(';') {
        let Some((field, value)) = part.split_once('=') else { continue };
        let slot = match &*field.trim().to_ascii_lowercase() {
            "endpoint" => &mut endpoint,
            "sharedaccesskeyname" => &mut name,
            "sharedaccesskey" => &mut key,
            "sharedaccesssignature" => &mut signature,
            _ => continue,
        };
        *slot = Some(value.trim());
    }
    let bad = |what: &str| scaler_error!("the connection string of Service Bus has no {what}");
    let endpoint = endpoint.ok_or_else(|| bad("Endpoint"))?;
    // Only the emulator is reached without TLS.
    let local = text.to_ascii_lowercase().contains("usedevelopmentemulator=true");
    let scheme = if local { "http" } else { "https" };
    let host = endpoint.split_once("://").map_or(endpoint, |(_, host)| host).trim_end_matches('/');
    if host.is_empty() || host.contains('/') {
        return Err(bad("Endpoint such as sb://NAMESPACE.servicebus.windows.net/"));
    }
    let access = match (signature, name, key) {
        (Some(signature), _, _) => ServiceBusCredentials::Signature(Secret::new(signature)),
        (None, Some(name), Some(key)) => {
            ServiceBusCredentials::Key { name: name.to_owned(), key: Secret::new(key) }
        }
        _ => return Err(bad("SharedAccessKeyName and SharedAccessKey")),
    };
    Ok(ServiceBusConnection { server: format!("{scheme}://{host}"), access })
}

/// Scope of tokens of a pod identity.
pub(super) const SCOPE: &str = "https://servicebus.azure.net/.default";

/// The host of a namespace in one of Azure's clouds. Other hosts do not get a token of the operator.
pub(super) fn workload_host(namespace: &str, cloud: &str) -> Result<String, ScalerError> {
    let suffixes = ["servicebus.windows.net", "servicebus.usgovcloudapi.net", "servicebus.chinacloudapi.cn"];
    let Some(suffix) = of_cloud(cloud, suffixes) else {
        bail!("azure-workload can be used in Azure's own clouds only: give a connection in cloud {cloud}");
    };
    let namespace = namespace.strip_suffix(&format!(".{suffix}")).unwrap_or(namespace);
    if namespace.is_empty() || !namespace.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        bail!("{namespace:?} is not a namespace of Service Bus");
    }
    Ok(format!("{namespace}.{suffix}"))
}

/// A connection with a token.
pub(super) fn bearer(host: &str, token: &Secret) -> ServiceBusConnection {
    let access = ServiceBusCredentials::Signature(Secret::new(format!("Bearer {}", token.reveal())));
    ServiceBusConnection { server: format!("https://{host}"), access }
}

impl ServiceBusConnection {
    /// The `Authorization` header: a signature that expires at the given Unix time in seconds.
    pub(super) fn authorization(&self, until: i64) -> String {
        match &self.access {
            ServiceBusCredentials::Signature(signature) => signature.reveal().to_owned(),
            ServiceBusCredentials::Key { name, key } => {
                let resource = escaped(&format!("{}/", self.server)).to_lowercase();
                let key = hmac::Key::new(HMAC_SHA256, key.reveal().as_bytes());
                let tag = hmac::sign(&key, format!("{resource}\n{until}").as_bytes());
                let signature = escaped(&STANDARD.encode(tag.as_ref()));
                format!(
                    "SharedAccessSignature sr={resource}&sig={signature}&se={until}&skn={}",
                    escaped(name)
                )
            }
        }
    }

    /// The URL of a queue.
    pub(super) fn queue(&self, queue: &str) -> String {
        format!("{}/{}?{API_VERSION_PARAMETER}", self.server, path_of(queue))
    }

    /// The URL of a subscription.
    pub(super) fn subscription(&self, topic: &str, subscription: &str) -> String {
        format!(
            "{}/{}/subscriptions/{}?{API_VERSION_PARAMETER}",
            self.server,
            path_of(topic),
            path_escaped(subscription)
        )
    }

    /// The URL of a page of queues.
    pub(super) fn queues(&self, skip: usize) -> String {
        format!("{}/$Resources/queues?$skip={skip}&$top={PAGE_SIZE}&{API_VERSION_PARAMETER}", self.server)
    }

    /// The URL of a page of subscriptions.
    pub(super) fn subscriptions(&self, topic: &str, skip: usize) -> String {
        format!(
            "{}/{}/subscriptions?$skip={skip}&$top={PAGE_SIZE}&{API_VERSION_PARAMETER}",
            self.server,
            path_of(topic)
        )
    }
}

/// Escapes each segment of a name, because entities may be in folders.
fn path_of(name: &str) -> String {
    name.split('/').map(path_escaped).collect::<Vec<_>>().join("/")
}

/// The requested entity. Service Bus responds with an empty feed if it does not exist.
pub(super) fn entity(status: u16, body: &[u8]) -> Result<Entity, ScalerError> {
    match <[Entity; 1]>::try_from(entities(status, body)?) {
        Ok([entity]) => Ok(entity),
        Err(none) if none.is_empty() => Err(scaler_error!("there is no such queue or subscription")),
        Err(_) => Err(scaler_error!("Service Bus named several entities instead of one")),
    }
}

/// All entities in a response.
pub(super) fn entities(status: u16, body: &[u8]) -> Result<Vec<Entity>, ScalerError> {
    if status != 200 {
        let text = String::from_utf8_lossy(body);
        let message = element(&text, "Detail").map_or_else(|| hidden(body), excerpt);
        bail!("Service Bus returned {status}: {message}");
    }
    let text =
        std::str::from_utf8(body).map_err(|_| scaler_error!("the answer of Service Bus is not text"))?;
    if element(text, "feed").is_none() && element(text, "entry").is_none() {
        bail!("the answer of Service Bus is not a feed: {}", hidden(body));
    }
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((entry, after)) = next(rest, "entry") {
        rest = after;
        let name = element(entry, "title")
            .map(xml::unescaped)
            .ok_or_else(|| scaler_error!("an entity has no title"))?;
        let count = element(entry, "ActiveMessageCount").and_then(|count| count.trim().parse().ok());
        let missing = || scaler_error!("an entity has no ActiveMessageCount: {}", hidden(entry.as_bytes()));
        let active = count.ok_or_else(missing)?;
        found.push(Entity { name, active });
    }
    Ok(found)
}

/// The content of the first element with this local name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    next(xml, name).map(|(inside, _)| inside)
}

/// The content of the first element with this local name, and the text after it.
fn next<'a>(xml: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let mut rest = xml;
    loop {
        let (_, tag) = rest.split_once('<')?;
        let (head, after) = tag.split_once('>')?;
        rest = after;
        let full = head.split([' ', '\t', '\r', '\n', '/']).next().unwrap_or_default();
        if full.rsplit_once(':').map_or(full, |(_, local)| local) != name {
            continue;
        }
        if head.ends_with('/') {
            return Some(("", after));
        }
        // Elements with these names do not nest.
        let close = format!("</{full}>");
        return after.split_once(&*close);
    }
}
