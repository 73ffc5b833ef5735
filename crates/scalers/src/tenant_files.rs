//! Files that tenants name in triggers: read only from the folder that the administrator has configured.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::ScalerError;

/// Maximum size of a file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Which files may be named in triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum TenantFiles {
    /// None.
    #[default]
    Nothing,
    /// Those in this folder and below. Relative paths start here.
    Folder(Arc<Path>),
    /// All that the process can read: for commands that run as the user who wrote the trigger.
    Anywhere,
}

/// Why a file was not read. It does not say whether a file outside of the folder exists.
#[derive(Debug, thiserror::Error)]
pub enum TenantFileError {
    /// No folder is configured.
    #[error("no file is read because --tenant-files-dir is not set: ask the administrator to set it")]
    NoFolder,
    /// The path leads out of the folder.
    #[error("{0} is not in the folder of --tenant-files-dir")]
    Outside(String),
    /// The path is a folder, a device, a socket or a pipe.
    #[error("{0} is no regular file (--tenant-files-dir)")]
    NotRegular(String),
    /// The file is too large.
    #[error("{0} is larger than {MAX_FILE_BYTES} bytes (--tenant-files-dir)")]
    TooLarge(String),
    /// The file is not text.
    #[error("{0} is not text in UTF-8 (--tenant-files-dir)")]
    NotText(String),
    /// The file cannot be read.
    #[error("failed to read {path} (--tenant-files-dir): {source}")]
    Read {
        /// The path.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The process is about to end.
    #[error("shutting down")]
    ShuttingDown,
}

impl TenantFiles {
    /// Files of a folder; none without one.
    pub fn of(folder: Option<PathBuf>) -> Self {
        folder.map_or(Self::Nothing, |folder| Self::Folder(folder.into()))
    }

    /// Reads the file that a parameter names; empty without a name.
    ///
    /// # Errors
    /// The file is not allowed, is not a small regular file of text, or cannot be read.
    pub async fn text(&self, parameter: &str, path: &str) -> Result<String, ScalerError> {
        if path.is_empty() {
            return Ok(String::new());
        }
        let (files, named) = (self.clone(), path.to_owned());
        let read = tokio::task::spawn_blocking(move || files.read(&named)).await;
        read.unwrap_or(Err(TenantFileError::ShuttingDown))
            .map_err(|error| ScalerError::caused_by(format!("{parameter}: {error}"), error))
    }

    fn read(&self, named: &str) -> Result<String, TenantFileError> {
        let failed = |source| TenantFileError::Read { path: named.to_owned(), source };
        let path = self.locate(named)?;
        // A pipe blocks when it is opened, so the type is checked before, too.
        let is_regular = std::fs::metadata(&path).map_err(failed)?.is_file();
        if !is_regular {
            return Err(TenantFileError::NotRegular(named.to_owned()));
        }
        let file = File::open(&path).map_err(failed)?;
        let opened = file.metadata().map_err(failed)?;
        if !opened.is_file() {
            return Err(TenantFileError::NotRegular(named.to_owned()));
        }
        let mut bytes = Vec::new();
        // A file may grow while it is read.
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(TenantFileError::TooLarge(named.to_owned()));
        }
        String::from_utf8(bytes).map_err(|_| TenantFileError::NotText(named.to_owned()))
    }

    /// The path without links, inside of the folder.
    fn locate(&self, named: &str) -> Result<PathBuf, TenantFileError> {
        let failed = |source| TenantFileError::Read { path: named.to_owned(), source };
        let outside = || TenantFileError::Outside(named.to_owned());
        let folder = match self {
            Self::Nothing => return Err(TenantFileError::NoFolder),
            Self::Anywhere => return Ok(PathBuf::from(named)),
            Self::Folder(folder) => folder,
        };
        let path = folder.join(named);
        // Decided on the text alone, so that the error reveals nothing about files elsewhere.
        let climbs = Path::new(named).components().any(|part| part == Component::ParentDir);
        if climbs || !path.starts_with(folder) {
            return Err(outside());
        }
        let path = path.canonicalize().map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        if path.starts_with(folder) { Ok(path) } else { Err(outside()) }
    }
}
