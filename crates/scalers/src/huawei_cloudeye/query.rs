//! Requests of Cloud Eye, signed with an access key (SDK-HMAC-SHA256), and their responses.

use api::text::hex;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::ScalerError;
use crate::parameters::Secret;
use crate::responses::{error_field, json as read, kind};
use crate::web::path_escaped;

/// The signed headers, in their order.
const SIGNED_HEADERS: &str = "content-type;host;x-project-id;x-sdk-date";
/// Type of the request's body.
pub(super) const CONTENT_TYPE: &str = "application/json";

/// The metric of a request.
pub(super) struct CloudEyeMetric<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) dimension: (&'a str, &'a str),
    pub(super) period: &'a str,
    pub(super) filter: &'a str,
}

/// The host of Cloud Eye in a region. Region and cloud are parts of a host name, so that nothing else gets into the URL.
pub(super) fn host(region: &str, cloud: &str) -> Result<String, ScalerError> {
    for (name, text) in [("Region", region), ("Cloud", cloud)] {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        if text.is_empty() || !text.chars().all(fits) {
            bail!(
                "{name} must be given in the TriggerAuthentication, with letters, digits, dots and hyphens only"
            );
        }
    }
    Ok(format!("ces.{region}.{cloud}"))
}

/// The path of queries of a project.
pub(super) fn path(project: &str) -> String {
    format!("/V1.0/{}/batch-query-metric-data", path_escaped(project))
}

/// The request for the values of the last seconds before the current minute.
pub(super) fn request_body(metric: &CloudEyeMetric<'_>, seconds: i64, now: Timestamp) -> String {
    let CloudEyeMetric { namespace, name, dimension, period, filter } = metric;
    let minute = now.as_second() - now.as_second().rem_euclid(60);
    let from = minute.saturating_sub(seconds).saturating_mul(1000);
    let dimensions = [json!({"name": dimension.0, "value": dimension.1})];
    let metrics = [json!({"namespace": namespace, "metric_name": name, "dimensions": dimensions})];
    let to = minute.saturating_mul(1000);
    json!({"metrics": metrics, "from": from, "to": to, "period": period, "filter": filter}).to_string()
}

/// The time as it is signed and sent in `X-Sdk-Date`.
pub(super) fn date(now: Timestamp) -> String {
    now.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// The header `Authorization` of a request.
pub(super) fn authorization(
    (access, secret): (&Secret, &Secret),
    (host, project): (&str, &str),
    date: &str,
    body: &str,
) -> String {
    let headers =
        format!("content-type:{CONTENT_TYPE}\nhost:{host}\nx-project-id:{project}\nx-sdk-date:{date}\n");
    // The signed path ends with a slash, also if the one of the request does not.
    let canonical = format!(
        "POST\n{}/\n\n{headers}\n{SIGNED_HEADERS}\n{}",
        path(project),
        hex(digest(&SHA256, body.as_bytes()).as_ref())
    );
    let text = format!("SDK-HMAC-SHA256\n{date}\n{}", hex(digest(&SHA256, canonical.as_bytes()).as_ref()));
    let key = hmac::Key::new(HMAC_SHA256, secret.reveal().as_bytes());
    let signature = hex(hmac::sign(&key, text.as_bytes()).as_ref());
    let access = access.reveal();
    format!("SDK-HMAC-SHA256 Access={access}, SignedHeaders={SIGNED_HEADERS}, Signature={signature}")
}

/// The first value of the metric, as in KEDA.
pub(super) fn value(status: u16, body: &[u8], filter: &str) -> Result<f64, ScalerError> {
    match status {
        200 => {}
        401 | 403 => {
            bail!("Cloud Eye returned {status}: check AccessKey, SecretKey, ProjectID and their rights")
        }
        _ => bail!("Cloud Eye returned {status}: {}", error_field(body, "/message")),
    }
    let answer = read(body)?;
    let points = answer.pointer("/metrics/0/datapoints");
    let Some(points) = points.and_then(Value::as_array) else {
        bail!("the answer has {} at metrics.0.datapoints instead of a list", kind(points));
    };
    let Some(first) = points.first() else {
        bail!("metric Data not received");
    };
    let value = first.get(filter);
    value
        .and_then(Value::as_f64)
        .filter(|number| number.is_finite())
        .ok_or_else(|| scaler_error!("the first value has {} at {filter} instead of a number", kind(value)))
}
