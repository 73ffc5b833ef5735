//! AWS Signature Version 4.

use api::text::hex;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use jiff::Timestamp;

use sources::http::Secret;

use crate::web::escaped;

/// Access key, secret key, and session token of temporary keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AwsKeys {
    /// Access key.
    pub access: String,
    /// Secret key.
    pub secret: Secret,
    /// Session token.
    pub session: Option<Secret>,
}

/// The parts of a request that are signed.
pub(crate) struct RequestToSign<'a> {
    pub(crate) method: &'a str,
    /// `host[:port]`, as sent.
    pub(crate) host: &'a str,
    /// Path, escaped as sent.
    pub(crate) path: &'a str,
    /// Query, escaped and sorted.
    pub(crate) query: &'a str,
    /// Further headers that are sent, names in lower case.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
    pub(crate) region: &'a str,
    pub(crate) service: &'a str,
}

/// A signature in the query of a URL, with which others can send the request.
pub(crate) struct RequestToPresign<'a> {
    /// `host[:port]`.
    pub(crate) host: &'a str,
    /// The action, which is the only other parameter.
    pub(crate) action: &'a str,
    pub(crate) region: &'a str,
    pub(crate) service: &'a str,
    /// Validity in seconds.
    pub(crate) expires: u32,
}

/// Parameters of the URL `https://HOST/` in their order, unescaped; the last is the signature.
pub(crate) fn presign(
    request: &RequestToPresign<'_>,
    keys: &AwsKeys,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = now.strftime("%Y%m%d").to_string();
    let scope = format!("{day}/{}/{}/aws4_request", request.region, request.service);
    let mut query = vec![
        ("Action", request.action.to_owned()),
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256".to_owned()),
        ("X-Amz-Credential", format!("{}/{scope}", keys.access)),
        ("X-Amz-Date", time.clone()),
        ("X-Amz-Expires", request.expires.to_string()),
    ];
    query.extend(keys.session.as_ref().map(|token| ("X-Amz-Security-Token", token.reveal().to_owned())));
    query.push(("X-Amz-SignedHeaders", "host".to_owned()));
    let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    let canonical = format!("GET\n/\n{}\nhost:{}\n\nhost\n{}", pairs.join("&"), request.host, sha256(b""));
    query.push((
        "X-Amz-Signature",
        signature(keys, (&day, request.region, request.service), &time, &canonical),
    ));
    query
}

/// Headers to add to a request: time, session, signature.
pub(crate) fn sign(
    request: &RequestToSign<'_>,
    keys: &AwsKeys,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = now.strftime("%Y%m%d").to_string();
    let session = keys.session.as_ref().map(Secret::reveal);
    let mut headers: Vec<(&str, &str)> = request.headers.to_vec();
    headers.extend([("host", request.host), ("x-amz-date", &*time)]);
    headers.extend(session.map(|session| ("x-amz-security-token", session)));
    headers.sort_unstable();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let mut canonical = format!("{}\n{}\n{}\n", request.method, request.path, request.query);
    for (name, value) in &headers {
        canonical.push_str(&format!("{name}:{}\n", value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    canonical.push_str(&format!("\n{names}\n{}", sha256(request.body)));
    let scope = format!("{day}/{}/{}/aws4_request", request.region, request.service);
    let signature = signature(keys, (&day, request.region, request.service), &time, &canonical);
    let access = &keys.access;
    let authorization =
        format!("AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={names}, Signature={signature}");
    let mut out = vec![("authorization", authorization), ("x-amz-date", time.clone())];
    out.extend(session.map(|session| ("x-amz-security-token", session.to_owned())));
    out
}

/// The signature of a canonical request.
fn signature(
    keys: &AwsKeys,
    (day, region, service): (&str, &str, &str),
    time: &str,
    canonical: &str,
) -> String {
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", sha256(canonical.as_bytes()));
    let mut key = mac(format!("AWS4{}", keys.secret.reveal()).as_bytes(), day);
    for part in [region, service, "aws4_request"] {
        key = mac(key.as_ref(), part);
    }
    hex(mac(key.as_ref(), &text).as_ref())
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, key), text.as_bytes())
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}
