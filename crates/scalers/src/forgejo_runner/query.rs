//! The URL of waiting jobs, and their number.

use serde_json::Value;

use super::Parameters;
use crate::ScalerError;
use crate::responses::{error_field, json, kind};
use crate::web::{escaped, path_escaped};

/// The URL of the jobs that runners with these labels can run.
pub(super) fn url(of: &Parameters) -> String {
    let Parameters { address, labels, owner, org, repo, .. } = of;
    let scope = if !owner.is_empty() && !repo.is_empty() {
        format!("repos/{}/{}/actions", path_escaped(owner), path_escaped(repo))
    } else if !org.is_empty() {
        format!("orgs/{}/actions", path_escaped(org))
    } else if of.global {
        "admin".to_owned()
    } else {
        "user/actions".to_owned()
    };
    format!("{}/api/v1/{scope}/runners/jobs?labels={}", address.trim_end_matches('/'), escaped(labels))
}

/// The number of jobs. Forgejo encodes an empty list as null.
pub(super) fn jobs(status: u16, body: &[u8]) -> Result<f64, ScalerError> {
    if status != 200 {
        bail!("Forgejo returned {status}: {}", error_field(body, "/message"));
    }
    match json(body)? {
        Value::Null => Ok(0.0),
        Value::Array(jobs) => Ok(jobs.len() as f64),
        other => Err(scaler_error!("Forgejo answered {} instead of a list of jobs", kind(Some(&other)))),
    }
}
