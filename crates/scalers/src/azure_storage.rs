//! Connections to Azure Storage, without IO: connection strings, signatures and tokens.

use std::time::Duration;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ScalerError;
use crate::azure_clouds::of_cloud;
use crate::parameters::Secret;
use crate::responses::{excerpt, hidden};
use crate::urls;
use crate::web::{HttpCall, escaped};
use crate::xml;

/// Scope of tokens of a pod identity.
pub(crate) const STORAGE_SCOPE: &str = "https://storage.azure.com/.default";
/// Version of the storage API.
const API_VERSION: &str = "2021-12-02";

/// A service of a storage account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageService {
    Blob,
    Queue,
}

impl StorageService {
    /// The part of host names.
    fn host(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
        }
    }

    /// The field of connection strings with the URL.
    fn endpoint(self) -> &'static str {
        match self {
            Self::Blob => "BlobEndpoint",
            Self::Queue => "QueueEndpoint",
        }
    }
}

/// A service of an account, and credentials.
#[derive(Clone, Debug)]
pub(crate) struct StorageConnection {
    /// Base URL without a trailing slash.
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
    /// A token of Microsoft Entra ID.
    Token(Secret),
}

/// URL and `Authorization` header of a request.
pub(crate) struct StorageRequest {
    pub(crate) url: String,
    pub(crate) authorization: Option<String>,
    /// Key, signature or token.
    credentials: Secret,
}

impl StorageRequest {
    /// The request, to be sent at this date.
    pub(crate) fn call(self, date: &str, within: Duration) -> Result<HttpCall, ScalerError> {
        let call =
            HttpCall::get(self.url, within).header("x-ms-date", date)?.header("x-ms-version", API_VERSION)?;
        let call = call.signed_by(&[self.credentials.reveal()]);
        match self.authorization {
            Some(authorization) => call.header("authorization", &authorization),
            None => Ok(call),
        }
    }
}

/// The date of a request at this time.
pub(crate) fn storage_date(now: jiff::Timestamp) -> String {
    now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

impl StorageConnection {
    /// Parses a connection string. Errors do not quote it, because it contains a key.
    pub(crate) fn parse(text: &str, service: StorageService) -> Result<Self, ScalerError> {
        let field = |wanted: &str| {
            let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
            pairs
                .filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.trim())
                .next_back()
        };
        if text.trim_end_matches(';').split(';').any(|pair| !pair.contains('=')) {
            bail!(
                "connection string is either blank or malformed. The expected connection string should contain key value \
                 pairs separated by semicolons. For example 'DefaultEndpointsProtocol=https;AccountName=<accountName>;\
                 AccountKey=<accountKey>;EndpointSuffix=core.windows.net'"
            );
        }
        let account = field("AccountName").unwrap_or_default().to_owned();
        let endpoint = match field(service.endpoint()) {
            Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
            None if account.is_empty() => {
                bail!("connection string needs either AccountName or {}", service.endpoint());
            }
            None => {
                let scheme = field("DefaultEndpointsProtocol").unwrap_or("https");
                let suffix = field("EndpointSuffix").unwrap_or("core.windows.net");
                format!("{scheme}://{account}.{}.{suffix}", service.host())
            }
        };
        let access = match (field("AccountKey"), field("SharedAccessSignature")) {
            (Some(key), _) if !account.is_empty() => StorageCredentials::Key(Secret::new(key)),
            (_, Some(signature)) => {
                StorageCredentials::Signature(Secret::new(signature.trim_start_matches('?')))
            }
            _ => bail!("connection string needs either AccountKey or SharedAccessSignature"),
        };
        Ok(Self { endpoint, account, access })
    }

    /// The base URL of an account in one of Azure's clouds. Other hosts do not get a token of the operator.
    pub(crate) fn workload_url(
        account: &str,
        cloud: &str,
        service: StorageService,
    ) -> Result<String, ScalerError> {
        let suffixes = ["core.windows.net", "core.usgovcloudapi.net", "core.chinacloudapi.cn"];
        let Some(suffix) = of_cloud(cloud, suffixes) else {
            bail!(
                "azure-workload can be used in Azure's own clouds only: give a connection in cloud {cloud}"
            );
        };
        if account.is_empty() || !account.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            bail!("accountName {account:?} is not the name of a storage account");
        }
        Ok(format!("https://{account}.{}.{suffix}", service.host()))
    }

    /// A connection with a token, to a URL of [`Self::workload_url`].
    pub(crate) fn bearer(url: String, token: &Secret) -> Self {
        Self { endpoint: url, account: String::new(), access: StorageCredentials::Token(token.clone()) }
    }

    /// A `GET` request. The parameters of the query must be sorted by name.
    pub(crate) fn request(
        &self,
        path: &str,
        query: &[(&str, &str)],
        date: &str,
    ) -> Result<StorageRequest, ScalerError> {
        // A space is `%20`: a plus sign may be taken for itself.
        let value = |text: &str| escaped(text).replace('+', "%20");
        let pairs: Vec<String> = query.iter().map(|(name, text)| format!("{name}={}", value(text))).collect();
        let with_query = |pairs: &[String]| match pairs {
            [] => format!("{}{path}", self.endpoint),
            pairs => format!("{}{path}?{}", self.endpoint, pairs.join("&")),
        };
        let url = with_query(&pairs);
        match &self.access {
            StorageCredentials::Signature(signature) => {
                let pairs = [&*pairs, &[signature.reveal().to_owned()]].concat();
                let credentials = signature.clone();
                Ok(StorageRequest { url: with_query(&pairs), authorization: None, credentials })
            }
            StorageCredentials::Token(token) => {
                let authorization = Some(format!("Bearer {}", token.reveal()));
                Ok(StorageRequest { url, authorization, credentials: token.clone() })
            }
            StorageCredentials::Key(encoded) => {
                let key = STANDARD
                    .decode(encoded.reveal())
                    .map_err(|_| scaler_error!("AccountKey is not base64"))?;
                let account = &self.account;
                let mut text =
                    format!("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{API_VERSION}\n");
                text.push_str(&format!("/{account}{}{path}", urls::path(&self.endpoint)));
                for (name, value) in query {
                    text.push_str(&format!("\n{name}:{value}"));
                }
                let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, &key), text.as_bytes());
                let signature = STANDARD.encode(tag.as_ref());
                let authorization = Some(format!("SharedKey {account}:{signature}"));
                Ok(StorageRequest { url, authorization, credentials: encoded.clone() })
            }
        }
    }
}

/// An error unless the response is one of success.
pub(crate) fn check_storage_answer(what: &str, status: u16, body: &[u8]) -> Result<(), ScalerError> {
    if status == 200 {
        return Ok(());
    }
    let detail = xml::element(&String::from_utf8_lossy(body), "Code");
    let detail = detail.map_or_else(|| hidden(body), |code| excerpt(&code));
    Err(scaler_error!("the {what} returned {status}: {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_services() {
        let url = |text: &str, service| {
            StorageConnection::parse(text, service)
                .unwrap()
                .request("/x", &[("comp", "list")], "")
                .unwrap()
                .url
        };
        let account = "AccountName=acc;AccountKey=a2V5";
        assert_eq!(url(account, StorageService::Blob), "https://acc.blob.core.windows.net/x?comp=list");
        assert_eq!(url(account, StorageService::Queue), "https://acc.queue.core.windows.net/x?comp=list");
        let both = "BlobEndpoint=https://b/;QueueEndpoint=https://q/;SharedAccessSignature=?sig=s";
        assert_eq!(url(both, StorageService::Blob), "https://b/x?comp=list&sig=s");
        assert_eq!(url(both, StorageService::Queue), "https://q/x?comp=list&sig=s");
        let queue = "QueueEndpoint=https://q/;SharedAccessSignature=sig=s";
        assert!(StorageConnection::parse(queue, StorageService::Blob).is_err());
    }

    #[test]
    fn values_of_the_query_are_escaped_in_the_url_only() {
        let connection =
            StorageConnection::parse("AccountName=a;AccountKey=a2V5", StorageService::Blob).unwrap();
        let signed = |prefix| connection.request("/c", &[("prefix", prefix)], "").unwrap();
        assert!(signed("a b&c=+/").url.ends_with("/c?prefix=a%20b%26c%3D%2B%2F"));
        assert_ne!(signed("a").authorization, signed("b").authorization);
    }

    /// A token of the operator is sent to Azure's hosts only.
    #[test]
    fn hosts_of_accounts() {
        let url = |account, cloud| {
            StorageConnection::workload_url(account, cloud, StorageService::Blob)
                .map_err(|error| error.message)
        };
        assert_eq!(url("shop", ""), Ok("https://shop.blob.core.windows.net".to_owned()));
        assert_eq!(url("shop", "AzureChinaCloud"), Ok("https://shop.blob.core.chinacloudapi.cn".to_owned()));
        assert!(url("shop", "Private").unwrap_err().contains("in Azure's own clouds only"));
        for bad in ["", "evil.example/#", "a.b", "a@b"] {
            assert!(url(bad, "").unwrap_err().contains("is not the name of a storage account"), "{bad}");
        }
        let connection = StorageConnection::bearer("https://h".to_owned(), &Secret::new("t"));
        let request = connection.request("/c", &[("comp", "list")], "").unwrap();
        assert_eq!((&*request.url, &*request.authorization.unwrap()), ("https://h/c?comp=list", "Bearer t"));
    }
}
