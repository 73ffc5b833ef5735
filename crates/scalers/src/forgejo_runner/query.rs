//! The address of waiting jobs, and how many there are.

use serde_json::Value;

use super::Parameters;
use crate::Error;
use crate::answers::{excerpt, json, kind};
use crate::web::{escaped, path_escaped};

/// The address of the jobs that runners with these labels could do.
pub(super) fn url(of: &Parameters) -> String {
    let Parameters { address, labels, owner, org, repo, .. } = of;
    let place = if of.global {
        "admin".to_owned()
    } else if !owner.is_empty() && !repo.is_empty() {
        format!("repos/{}/{}/actions", path_escaped(owner), path_escaped(repo))
    } else if !org.is_empty() {
        format!("orgs/{}/actions", path_escaped(org))
    } else {
        "user/actions".to_owned()
    };
    format!("{}/api/v1/{place}/runners/jobs?labels={}", address.trim_end_matches('/'), escaped(labels))
}

/// How many jobs there are. Forgejo writes none as null.
pub(super) fn jobs(status: u16, body: &[u8]) -> Result<f64, Error> {
    if status != 200 {
        return Err(Error::new(format!("Forgejo returned {status}: {}", excerpt(body))));
    }
    match json(body)? {
        Value::Null => Ok(0.0),
        Value::Array(jobs) => Ok(jobs.len() as f64),
        other => {
            Err(Error::new(format!("Forgejo answered {} instead of a list of jobs", kind(Some(&other)))))
        }
    }
}
