//! AWS Signature Version 4.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use jiff::Timestamp;

use crate::parameters::Secret;

/// Static keys.
#[derive(Clone, Debug)]
pub(crate) struct AwsKeys {
    pub(crate) access: String,
    pub(crate) secret: Secret,
    pub(crate) session: Option<Secret>,
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
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", sha256(canonical.as_bytes()));
    let mut key = mac(format!("AWS4{}", keys.secret.reveal()).as_bytes(), &day);
    for part in [request.region, request.service, "aws4_request"] {
        key = mac(key.as_ref(), part);
    }
    let signature = hex(mac(key.as_ref(), &text).as_ref());
    let access = &keys.access;
    let authorization =
        format!("AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={names}, Signature={signature}");
    let mut out = vec![("authorization", authorization), ("x-amz-date", time.clone())];
    out.extend(session.map(|session| ("x-amz-security-token", session.to_owned())));
    out
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, key), text.as_bytes())
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |text, byte| text + &format!("{byte:02x}"))
}
