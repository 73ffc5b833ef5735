//! The URL of a container of Swift, and its response, which has headers only.

use crate::ScalerError;
use crate::web::path_escaped;

/// The URL of a container.
pub(super) fn url(account: &str, container: &str) -> String {
    format!("{}/{}", account.trim_end_matches('/'), path_escaped(container))
}

/// The number of objects in the header `X-Container-Object-Count`.
pub(super) fn counted(status: u16, header: Option<&str>) -> Result<f64, ScalerError> {
    match status {
        200..=299 => {}
        401 | 403 => bail!("Swift returned {status}: the project of the token has no right to the container"),
        404 => bail!("Swift returned 404: the account or the container does not exist"),
        _ => bail!("Swift returned {status}"),
    }
    let Some(text) = header else {
        bail!("Swift answered without X-Container-Object-Count: swiftURL must be the URL of an account");
    };
    let count: u64 = text
        .trim()
        .parse()
        .map_err(|_| scaler_error!("Swift answered with X-Container-Object-Count that is no number"))?;
    Ok(count as f64)
}
