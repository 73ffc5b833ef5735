//! Azure storage queues: connection strings, signatures, and message counts.

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ScalerError;
use crate::parameters::Secret;
use crate::responses::{excerpt, hidden};
use crate::urls;
use crate::web::path_escaped;

/// Maximum number of messages that one request can peek at.
pub(super) const MAX_PEEKED_MESSAGES: usize = 32;
/// Version of the storage API.
pub(super) const API_VERSION: &str = "2021-12-02";

/// A connection string.
#[derive(Clone, Debug)]
pub(super) struct StorageConnection {
    /// Base URL of the queues, without a trailing slash.
    endpoint: String,
    account: String,
    access: StorageCredentials,
}

#[derive(Clone, Debug)]
enum StorageCredentials {
    /// An account key, which signs requests.
    Key(Secret),
    /// A shared access signature.
    Signature(Secret),
}

/// Parses a connection string. Errors do not quote it, because it contains a key.
pub(super) fn connection(text: &str) -> Result<StorageConnection, ScalerError> {
    let field = |wanted: &str| {
        let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        pairs
            .filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim())
            .next_back()
    };
    let bad = || {
        ScalerError::new(
            "connection string is either blank or malformed. The expected connection string should contain key value \
             pairs separated by semicolons. For example 'DefaultEndpointsProtocol=https;AccountName=<accountName>;\
             AccountKey=<accountKey>;EndpointSuffix=core.windows.net'",
        )
    };
    let account = field("AccountName").unwrap_or_default().to_owned();
    let access = match (field("AccountKey"), field("SharedAccessSignature")) {
        (Some(key), _) if !account.is_empty() => StorageCredentials::Key(Secret::new(key)),
        (_, Some(signature)) => StorageCredentials::Signature(Secret::new(signature.trim_start_matches('?'))),
        _ => return Err(bad()),
    };
    let endpoint = match field("QueueEndpoint") {
        Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
        None if account.is_empty() => return Err(bad()),
        None => {
            let scheme = field("DefaultEndpointsProtocol").unwrap_or("https");
            format!("{scheme}://{account}.queue.{}", field("EndpointSuffix").unwrap_or("core.windows.net"))
        }
    };
    Ok(StorageConnection { endpoint, account, access })
}

/// URL and `Authorization` header of a request.
pub(super) struct StorageRequest {
    pub(super) url: String,
    pub(super) authorization: Option<String>,
}

impl StorageConnection {
    /// The request for the approximate message count.
    pub(super) fn count(&self, queue: &str, date: &str) -> Result<StorageRequest, ScalerError> {
        self.request(&format!("/{}", path_escaped(queue)), &[("comp", "metadata")], date)
    }

    /// The request that peeks at messages without dequeuing them.
    pub(super) fn peek(&self, queue: &str, date: &str) -> Result<StorageRequest, ScalerError> {
        let path = format!("/{}/messages", path_escaped(queue));
        self.request(&path, &[("numofmessages", "32"), ("peekonly", "true")], date)
    }

    fn request(&self, path: &str, query: &[(&str, &str)], date: &str) -> Result<StorageRequest, ScalerError> {
        let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let url = format!("{}{path}?{}", self.endpoint, pairs.join("&"));
        match &self.access {
            StorageCredentials::Signature(signature) => {
                Ok(StorageRequest { url: format!("{url}&{}", signature.reveal()), authorization: None })
            }
            StorageCredentials::Key(key) => {
                let key =
                    STANDARD.decode(key.reveal()).map_err(|_| scaler_error!("AccountKey is not base64"))?;
                let account = &self.account;
                let mut text =
                    format!("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{API_VERSION}\n");
                text.push_str(&format!("/{account}{}{path}", urls::path(&self.endpoint)));
                for (name, value) in query {
                    text.push_str(&format!("\n{name}:{value}"));
                }
                let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, &key), text.as_bytes());
                let signature = STANDARD.encode(tag.as_ref());
                Ok(StorageRequest { url, authorization: Some(format!("SharedKey {account}:{signature}")) })
            }
        }
    }
}

/// The approximate count, which is in a header.
pub(super) fn counted(status: u16, header: Option<&str>, body: &[u8]) -> Result<f64, ScalerError> {
    checked(status, body)?;
    let count = header.and_then(|text| text.trim().parse::<u64>().ok());
    count
        .map(|count| count as f64)
        .ok_or_else(|| scaler_error!("the storage queue does not tell how many messages it has"))
}

/// The number of peeked messages.
pub(super) fn peeked(status: u16, body: &[u8]) -> Result<usize, ScalerError> {
    checked(status, body)?;
    let text = std::str::from_utf8(body)
        .map_err(|_| scaler_error!("the answer of the storage queue is not text"))?;
    if !text.contains("<QueueMessagesList") {
        bail!("the answer of the storage queue is not a list of messages: {}", hidden(body));
    }
    Ok(text.matches("<QueueMessage>").count())
}

fn checked(status: u16, body: &[u8]) -> Result<(), ScalerError> {
    if status == 200 {
        return Ok(());
    }
    let text = String::from_utf8_lossy(body);
    let code =
        text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map(|(code, _)| code);
    let said = code.map_or_else(|| hidden(body), excerpt);
    Err(scaler_error!("the storage queue returned {status}: {said}"))
}
