//! Files of the operator.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// No file is larger.
const LARGEST: u64 = 1 << 20;

/// The parameters in a file below a folder.
pub(super) async fn parameters(root: Option<&Path>, file: &str) -> Result<BTreeMap<String, String>, String> {
    let root = root.ok_or("filepath-auth-root-path not configured")?;
    if Path::new(file).is_absolute() || file.contains("..") {
        return Err("filePath must be relative and not contain '..'".to_owned());
    }
    let path = root.join(file);
    let text = read(path.clone()).await?;
    // What serde says of a file may quote it.
    serde_json::from_str(&text).map_err(|_| format!("{} is not a JSON object of texts", path.display()))
}

/// The token in a file, if it is one of a service account: nothing else is sent to anybody.
pub(super) async fn token(path: &str) -> Result<String, String> {
    let text = read(PathBuf::from(path)).await?;
    let token = text.trim();
    let is_account = subject(token).is_some_and(|subject| subject.starts_with("system:serviceaccount:"));
    if !is_account {
        return Err(format!("{path} is not the token of a service account"));
    }
    Ok(token.to_owned())
}

/// Whom a token speaks for; its signature is for others to check.
fn subject(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, claims) = (parts.next()?, parts.next()?);
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    Some(claims.get("sub")?.as_str()?.to_owned())
}

/// A file, which may be on a disk that does not answer.
async fn read(path: PathBuf) -> Result<String, String> {
    let reading = tokio::task::spawn_blocking(move || read_now(&path));
    reading.await.map_err(|error| error.to_string())?
}

fn read_now(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("failed to read {}: {error}", path.display());
    // Opening what is no file might wait for ever.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(format!("{} is not a regular file", path.display()));
    }
    let mut text = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    let length = file.take(LARGEST + 1).read_to_string(&mut text).map_err(failed)?;
    if length as u64 > LARGEST {
        return Err(format!("{} is larger than 1 MiB", path.display()));
    }
    Ok(text)
}
