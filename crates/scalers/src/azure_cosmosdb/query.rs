//! Requests to Cosmos DB, leases and lags, without IO.

use std::time::Duration;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Value, json};

use crate::ScalerError;
use crate::parameters::Secret;
use crate::responses::{error_field, json as decoded, kind};
use crate::urls;
use crate::web::{HttpCall, escaped, path_escaped};

/// Version of the REST API.
const API_VERSION: &str = "2018-12-31";
/// The substatus of a partition that was split.
const SPLIT_SUBSTATUS: &str = "1002";
/// Suffixes of the hosts of accounts in Azure's clouds.
const AZURE_SUFFIXES: [&str; 3] = [".documents.azure.com", ".documents.azure.us", ".documents.azure.cn"];

/// A container of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CosmosContainer {
    /// URL of the account without a trailing slash.
    pub(super) endpoint: String,
    pub(super) database: String,
    pub(super) container: String,
}

/// How a request is authorized.
#[derive(Clone, Debug)]
pub(super) enum CosmosAccess {
    /// The key of the account.
    Key(Secret),
    /// A token of Microsoft Entra ID.
    Token(Secret),
}

impl CosmosAccess {
    /// The header `authorization` of a request for the documents of a container.
    pub(super) fn authorization(&self, verb: &str, link: &str, date: &str) -> Result<String, ScalerError> {
        Ok(match self {
            Self::Token(token) => escaped(&format!("type=aad&ver=1.0&sig={}", token.reveal())),
            Self::Key(key) => {
                let key = STANDARD
                    .decode(key.reveal().trim())
                    .map_err(|_| scaler_error!("the key of the Cosmos DB account is not base64"))?;
                let text =
                    format!("{}\ndocs\n{link}\n{}\n\n", verb.to_ascii_lowercase(), date.to_ascii_lowercase());
                let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, &key), text.as_bytes());
                escaped(&format!("type=master&ver=1.0&sig={}", STANDARD.encode(tag.as_ref())))
            }
        })
    }
}

/// An endpoint and a key in a connection string.
pub(super) fn account(connection: &str) -> Option<(String, Secret)> {
    let field = |wanted: &str| {
        let mut pairs = connection.split(';').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| key.trim() == wanted).map(|(_, value)| value.trim())
    };
    Some((field("AccountEndpoint")?.to_owned(), Secret::new(field("AccountKey")?)))
}

/// The scope of tokens for an account. A token of the operator is sent to Azure's hosts only.
pub(super) fn token_scope(endpoint: &str, is_operators: bool, resource: &str) -> Result<String, ScalerError> {
    // Nothing but a host, so that no other reading of the URL leads elsewhere.
    let host = endpoint.strip_prefix("https://").map(|rest| rest.strip_suffix(":443").unwrap_or(rest));
    let is_azure = host.is_some_and(|host| {
        host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
            && AZURE_SUFFIXES.iter().any(|suffix| host.to_ascii_lowercase().ends_with(suffix))
    });
    let host = host.unwrap_or_else(|| urls::host(endpoint));
    if is_operators && !is_azure {
        bail!(
            "azure-workload can be used with accounts in Azure's own clouds only (https://ACCOUNT.documents.azure.com)"
        );
    }
    let own = Some(resource.trim_end_matches('/')).filter(|resource| !is_azure && !resource.is_empty());
    Ok(own.map_or_else(|| format!("https://{host}/.default"), |resource| format!("{resource}/.default")))
}

/// The beginning of the ids of the leases of a processor.
pub(super) fn lease_prefix(processor: &str, endpoint: &str) -> String {
    let account = urls::host(endpoint).split('.').next().unwrap_or_default();
    format!("{processor}{account}.")
}

impl CosmosContainer {
    fn link(&self) -> String {
        format!("dbs/{}/colls/{}", self.database, self.container)
    }

    fn prepared(
        &self,
        call: HttpCall,
        verb: &str,
        access: &CosmosAccess,
        date: &str,
    ) -> Result<HttpCall, ScalerError> {
        let (CosmosAccess::Key(credentials) | CosmosAccess::Token(credentials)) = access;
        call.signed_by(&[credentials.reveal()])
            .header("authorization", &access.authorization(verb, &self.link(), date)?)?
            .header("x-ms-date", date)?
            .header("x-ms-version", API_VERSION)
    }

    fn url(&self) -> String {
        let (database, container) = (path_escaped(&self.database), path_escaped(&self.container));
        format!("{}/dbs/{database}/colls/{container}/docs", self.endpoint)
    }

    /// The request for a page of the leases whose ids begin so.
    pub(super) fn leases(
        &self,
        prefix: &str,
        page: &str,
        access: &CosmosAccess,
        date: &str,
        within: Duration,
    ) -> Result<HttpCall, ScalerError> {
        let body = json!({
            "query": "SELECT * FROM c WHERE STARTSWITH(c.id, @prefix)",
            "parameters": [{"name": "@prefix", "value": prefix}],
        });
        let call = HttpCall::post(self.url(), body.to_string(), within)
            .header("content-type", "application/query+json")?
            .header("x-ms-documentdb-isquery", "True")?
            .header("x-ms-documentdb-query-enablecrosspartition", "True")?;
        let call = if page.is_empty() { call } else { call.header("x-ms-continuation", page)? };
        self.prepared(call, "POST", access, date)
    }

    /// The request for the first change that a processor has not read.
    pub(super) fn changes(
        &self,
        lease: &Lease,
        access: &CosmosAccess,
        date: &str,
        within: Duration,
    ) -> Result<HttpCall, ScalerError> {
        let call = HttpCall::get(self.url(), within)
            .header("a-im", "Incremental feed")?
            .header("x-ms-max-item-count", "1")?
            .header("x-ms-documentdb-partitionkeyrangeid", &lease.range)?;
        let call = match &*lease.continuation {
            "" => call,
            continuation => call.header("if-none-match", continuation)?,
        };
        // The headers of a response are needed, which shared ones do not have.
        Ok(self.prepared(call, "GET", access, date)?.alone())
    }
}

/// A lease: a range of the monitored container, and how far it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) range: String,
    /// Empty if nothing is read yet.
    pub(super) continuation: String,
}

/// The leases in a page. Other documents of the processor are skipped.
pub(super) fn leases(status: u16, body: &[u8]) -> Result<Vec<Lease>, ScalerError> {
    check(status, body)?;
    let answer = decoded(body)?;
    let documents = answer.get("Documents");
    let Some(documents) = documents.and_then(Value::as_array) else {
        bail!("the answer of Cosmos DB has {} at Documents instead of a list", kind(documents));
    };
    let text = |document: &Value, name: &str| {
        document.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let all = documents.iter().map(|document| Lease {
        range: text(document, "LeaseToken"),
        continuation: text(document, "ContinuationToken"),
    });
    Ok(all.filter(|lease| !lease.range.is_empty()).collect())
}

/// How far the processor is behind in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeLag {
    /// This number of changes is not read yet.
    Behind(i64),
    /// The range was split; its lease is outdated.
    Split,
}

/// The lag of a range.
pub(super) fn lag(status: u16, headers: &HeaderMap, body: &[u8]) -> Result<RangeLag, ScalerError> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match status {
        304 => return Ok(RangeLag::Behind(0)),
        410 if header("x-ms-substatus") == SPLIT_SUBSTATUS => return Ok(RangeLag::Split),
        _ => check(status, body)?,
    }
    let answer = decoded(body)?;
    let documents = answer.get("Documents");
    let Some(documents) = documents.and_then(Value::as_array) else {
        bail!("the answer of Cosmos DB has {} at Documents instead of a list", kind(documents));
    };
    let Some(first) = documents.first() else { return Ok(RangeLag::Behind(0)) };
    let session = session_number(header("x-ms-session-token"))
        .ok_or_else(|| scaler_error!("the answer of Cosmos DB has no valid session token"))?;
    let number = first.get("_lsn").and_then(Value::as_i64);
    let Some(number) = number else {
        bail!("the change has {} at _lsn instead of a number", kind(first.get("_lsn")));
    };
    match session.checked_sub(number).and_then(|lag| lag.checked_add(1)) {
        Some(lag @ 0..) => Ok(RangeLag::Behind(lag)),
        _ => Err(scaler_error!("the first change ({number}) is newer than the session ({session})")),
    }
}

/// The number of the last change in a session token: `RANGE:NUMBER` or `RANGE:VERSION#NUMBER#…`.
fn session_number(token: &str) -> Option<i64> {
    let (_, numbers) = token.split_once(':')?;
    let mut fields = numbers.split('#');
    let first = fields.next()?;
    fields.next().unwrap_or(first).parse().ok()
}

fn check(status: u16, body: &[u8]) -> Result<(), ScalerError> {
    if status == 200 {
        return Ok(());
    }
    Err(scaler_error!("Cosmos DB returned {status}: {}", error_field(body, "/message")))
}

/// The lag of all ranges, and the number of replicas that have something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FeedLag {
    pub(super) total: i64,
    pub(super) ranges: i64,
}

impl FeedLag {
    /// Adds up ranges. Those that were never read count together as one, because one processor reads them first.
    pub(super) fn sum(lags: &[(Lease, RangeLag)], activation: i64) -> Self {
        let (mut total, mut ranges, mut is_new, mut is_split) = (0_i64, 0, false, false);
        for (lease, lag) in lags {
            match lag {
                RangeLag::Split => is_split = true,
                RangeLag::Behind(0) => {}
                RangeLag::Behind(lag) => {
                    total = total.saturating_add(*lag);
                    if lease.continuation.is_empty() {
                        is_new = true;
                    } else {
                        ranges += 1;
                    }
                }
            }
        }
        ranges += i64::from(is_new);
        if is_split {
            // The processor must run to replace the outdated lease.
            total = total.max(activation.saturating_add(1));
            ranges = ranges.max(1);
        }
        Self { total, ranges }
    }

    /// The lag that is served: replicas beyond the number of ranges would have nothing to do.
    pub(super) fn served(self, threshold: i64) -> i64 {
        self.total.min(self.ranges.saturating_mul(threshold))
    }
}
