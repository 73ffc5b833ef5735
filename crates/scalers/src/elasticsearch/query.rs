//! URLs of Elastic Cloud deployments.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ScalerError;

/// The URL encoded in a cloud id: `name:base64(domain$elasticsearch$kibana)`.
pub(crate) fn cloud(id: &str) -> Result<String, ScalerError> {
    let bad = || {
        scaler_error!("cloudID cannot be read: it must be copied from the console of Elastic Cloud as it is")
    };
    let coded = id.rsplit_once(':').map_or(id, |(_, coded)| coded);
    let text = STANDARD.decode(coded.trim()).map_err(|_| bad())?;
    let text = String::from_utf8(text).map_err(|_| bad())?;
    let mut parts = text.split('$');
    match (parts.next(), parts.next()) {
        (Some(domain), Some(cluster)) if !domain.is_empty() && !cluster.is_empty() => {
            let cluster = cluster.split(':').next().unwrap_or_default();
            let (host, port) = domain.split_once(':').map_or((domain, ""), |(host, port)| (host, port));
            let port = if port.is_empty() { String::new() } else { format!(":{port}") };
            Ok(format!("https://{cluster}.{host}{port}"))
        }
        _ => Err(bad()),
    }
}
