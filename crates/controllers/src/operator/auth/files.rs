//! Files of the operator: credentials and service account tokens.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::FileError;
use crate::operator::operator_identity::audiences::TokenClaimsError;

/// Maximum size of a file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The parameters in a file below the root folder.
pub(super) async fn parameters(
    root: Option<&Path>,
    file: &str,
) -> Result<BTreeMap<String, String>, FileError> {
    let root = root.ok_or(FileError::NoRoot)?;
    if Path::new(file).is_absolute() || file.contains("..") {
        return Err(FileError::OutsideRoot);
    }
    let path = root.join(file);
    let text = read(path.clone()).await?;
    // The error of serde may quote the file.
    serde_json::from_str(&text).map_err(|_| FileError::NotParameters(path))
}

/// The token in a file, if `check` accepts it. The path is the operator's own, never one that an object chose.
pub(super) async fn token(
    path: PathBuf,
    check: impl FnOnce(&str) -> Result<(), TokenClaimsError>,
) -> Result<String, FileError> {
    let text = read(path.clone()).await?;
    let token = text.trim();
    check(token).map_err(|source| FileError::Token { path, source })?;
    Ok(token.to_owned())
}

/// Reads a file on a blocking thread, since the disk may hang.
async fn read(path: PathBuf) -> Result<String, FileError> {
    let reading = tokio::task::spawn_blocking(move || read_now(&path));
    reading.await?
}

fn read_now(path: &Path) -> Result<String, FileError> {
    let failed = |source| FileError::Read { path: path.to_owned(), source };
    // Opening a pipe or a device could block forever.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(FileError::NotRegular(path.to_owned()));
    }
    let mut text = String::new();
    let file = fs::File::open(path).map_err(failed)?;
    let length = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if length as u64 > MAX_FILE_BYTES {
        return Err(FileError::TooLarge(path.to_owned()));
    }
    Ok(text)
}
