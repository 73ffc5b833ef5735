//! The management API of Service Bus: connection strings, signatures, and Atom feeds.

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::Error;
use crate::answers::excerpt;
use crate::parameters::Secret;
use crate::web::{escaped, path_escaped};

/// So many entities come at once.
pub(super) const PAGE: usize = 100;
const VERSION: &str = "api-version=2021-05";

/// A connection string.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// `https://host`.
    pub(super) server: String,
    pub(super) access: Access,
}

/// How we show who we are.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// A key, of which signatures are made.
    Key { name: String, key: Secret },
    /// A signature that somebody made.
    Signature(Secret),
}

/// Where messages wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entity {
    pub(super) name: String,
    pub(super) active: u64,
}

/// Takes a connection string apart. Errors do not repeat it: it has a key in it.
pub(super) fn connection(text: &str) -> Result<Connection, Error> {
    let (mut endpoint, mut name, mut key, mut signature) = (None, None, None, None);
    for part in text.split(';') {
        let Some((field, value)) = part.split_once('=') else { continue };
        let place = match &*field.trim().to_ascii_lowercase() {
            "endpoint" => &mut endpoint,
            "sharedaccesskeyname" => &mut name,
            "sharedaccesskey" => &mut key,
            "sharedaccesssignature" => &mut signature,
            _ => continue,
        };
        *place = Some(value.trim());
    }
    let bad = |what: &str| Error::new(format!("the connection string of Service Bus has no {what}"));
    let endpoint = endpoint.ok_or_else(|| bad("Endpoint"))?;
    // The emulator, and only it, is asked without TLS.
    let local = text.to_ascii_lowercase().contains("usedevelopmentemulator=true");
    let scheme = if local { "http" } else { "https" };
    let host = endpoint.split_once("://").map_or(endpoint, |(_, host)| host).trim_end_matches('/');
    if host.is_empty() || host.contains('/') {
        return Err(bad("Endpoint such as sb://NAMESPACE.servicebus.windows.net/"));
    }
    let access = match (signature, name, key) {
        (Some(signature), _, _) => Access::Signature(Secret::new(signature)),
        (None, Some(name), Some(key)) => Access::Key { name: name.to_owned(), key: Secret::new(key) },
        _ => return Err(bad("SharedAccessKeyName and SharedAccessKey")),
    };
    Ok(Connection { server: format!("{scheme}://{host}"), access })
}

impl Connection {
    /// The header of a request: a signature that is good until then, in seconds since 1970.
    pub(super) fn authorization(&self, until: i64) -> String {
        match &self.access {
            Access::Signature(signature) => signature.reveal().to_owned(),
            Access::Key { name, key } => {
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

    /// The address of a queue.
    pub(super) fn queue(&self, queue: &str) -> String {
        format!("{}/{}?{VERSION}", self.server, path_of(queue))
    }

    /// The address of a subscription.
    pub(super) fn subscription(&self, topic: &str, subscription: &str) -> String {
        format!("{}/{}/subscriptions/{}?{VERSION}", self.server, path_of(topic), path_escaped(subscription))
    }

    /// The address of a page of queues.
    pub(super) fn queues(&self, skip: usize) -> String {
        format!("{}/$Resources/queues?$skip={skip}&$top={PAGE}&{VERSION}", self.server)
    }

    /// The address of a page of subscriptions.
    pub(super) fn subscriptions(&self, topic: &str, skip: usize) -> String {
        format!("{}/{}/subscriptions?$skip={skip}&$top={PAGE}&{VERSION}", self.server, path_of(topic))
    }
}

/// Entities may be in folders.
fn path_of(name: &str) -> String {
    name.split('/').map(path_escaped).collect::<Vec<_>>().join("/")
}

/// The one entity that was asked for. Service Bus answers with an empty feed if there is none.
pub(super) fn entity(status: u16, body: &[u8]) -> Result<Entity, Error> {
    match <[Entity; 1]>::try_from(entities(status, body)?) {
        Ok([entity]) => Ok(entity),
        Err(none) if none.is_empty() => Err(Error::new("there is no such queue or subscription")),
        Err(_) => Err(Error::new("Service Bus named several entities instead of one")),
    }
}

/// All entities of an answer.
pub(super) fn entities(status: u16, body: &[u8]) -> Result<Vec<Entity>, Error> {
    if status != 200 {
        let text = String::from_utf8_lossy(body);
        let said =
            element(&text, "Detail").map_or_else(|| excerpt(body), |detail| excerpt(detail.as_bytes()));
        return Err(Error::new(format!("Service Bus returned {status}: {said}")));
    }
    let text = std::str::from_utf8(body).map_err(|_| Error::new("the answer of Service Bus is not text"))?;
    if element(text, "feed").is_none() && element(text, "entry").is_none() {
        return Err(Error::new(format!("the answer of Service Bus is not a feed: {}", excerpt(body))));
    }
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((entry, after)) = next(rest, "entry") {
        rest = after;
        let name = element(entry, "title").map(plain).ok_or_else(|| Error::new("an entity has no title"))?;
        let count = element(entry, "ActiveMessageCount").and_then(|count| count.trim().parse().ok());
        let active = count.ok_or_else(|| Error::new(format!("entity {name} has no ActiveMessageCount")))?;
        found.push(Entity { name, active });
    }
    Ok(found)
}

/// What is inside the first element of a name, whatever its prefix.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    next(xml, name).map(|(inside, _)| inside)
}

/// What is inside the first element of a name, and what follows it.
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
        // Elements of these names do not nest.
        let close = format!("</{full}>");
        return after.split_once(&*close);
    }
}

/// Text without entities.
fn plain(xml: &str) -> String {
    let text =
        xml.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    text.replace("&amp;", "&")
}
