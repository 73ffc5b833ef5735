//! Watches the configuration file.
//!
//! The file is polled, because ConfigMap volumes are updated by symlinks, which file notifications miss.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::{fs, io};

use api::yaml::SourceFile;

use super::config::{AdapterConfig, ConfigError};

/// Size limit of the file in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The configuration file and its last content.
#[derive(Clone, Debug)]
pub struct WatchedConfigFile {
    path: PathBuf,
    seen: Option<Vec<u8>>,
    /// Error of the last read.
    last_error: Option<String>,
}

/// Result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The content changed and is valid.
    Changed(Box<AdapterConfig>),
    /// No change.
    Unchanged,
    /// The content changed and is not valid.
    Refused(ConfigFileError),
}

/// Result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The configuration is in use.
    Reloaded,
    /// The configuration is unchanged.
    Unchanged,
    /// The configuration is not valid; the old one stays.
    Refused(String),
}

/// Why a configuration file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFileError {
    /// The file cannot be read.
    #[error("failed to read {path}: {reason}")]
    File {
        /// Path.
        path: String,
        /// Reason.
        reason: String,
    },
    /// The content is not valid.
    #[error("{path}: {error}")]
    Config {
        /// Path.
        path: String,
        /// Reason.
        error: ConfigError,
    },
}

impl WatchedConfigFile {
    /// A file that has not been read yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), seen: None, last_error: None }
    }

    /// Path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the next poll return the content again, because it may be usable then.
    pub fn forget(&mut self) {
        self.seen = None;
    }

    /// Reads the file if it changed, or if it could not be read before. An error is returned once.
    pub fn poll(&mut self) -> FileChange {
        let name = self.path.display().to_string();
        let content = match read(&self.path).map_err(|error| error.to_string()) {
            Ok(content) => content,
            Err(reason) if self.last_error.as_ref() == Some(&reason) => return FileChange::Unchanged,
            Err(reason) => {
                self.last_error = Some(reason.clone());
                return FileChange::Refused(ConfigFileError::File { path: name, reason });
            }
        };
        // After an error the content is reported even if it is that of before, so that the error ends.
        let was_readable = self.last_error.take().is_none();
        if was_readable && self.seen.as_ref() == Some(&content) {
            return FileChange::Unchanged;
        }
        let answer = match std::str::from_utf8(&content) {
            Err(_) => FileChange::Refused(ConfigFileError::File {
                path: name,
                reason: "it is not UTF-8".to_owned(),
            }),
            Ok(text) => match AdapterConfig::read(&SourceFile::new(&*name, text)) {
                Ok(config) => FileChange::Changed(Box::new(config)),
                Err(error) => FileChange::Refused(ConfigFileError::Config { path: name, error }),
            },
        };
        self.seen = Some(content);
        answer
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > MAX_FILE_BYTES {
        let message = format!("it is larger than {MAX_FILE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read(path)
}
