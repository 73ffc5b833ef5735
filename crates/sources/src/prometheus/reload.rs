//! Watches the configuration file.
//!
//! The file is looked at every few seconds; ConfigMaps are exchanged by links, which notifications of the system miss.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use api::text::Source;

use super::config::{Config, ConfigError};

/// A larger file is refused.
const LARGEST: u64 = 4 << 20;

/// The configuration file, and what was last seen of it.
#[derive(Clone, Debug)]
pub struct Watched {
    path: PathBuf,
    seen: Option<Vec<u8>>,
    /// Why it could not be read last time.
    complaint: Option<String>,
}

/// What became of looking at the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    /// Its content is another, and can be read.
    Changed(Box<Config>),
    /// Nothing new.
    Unchanged,
    /// Its content is another, and cannot be used: this is why.
    Refused(ReadError),
}

/// What became of a configuration that may be new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// It is used now.
    Reloaded,
    /// It is the one that was used before.
    Unchanged,
    /// It cannot be used; the old one stays.
    Refused(String),
}

/// Why a configuration file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error("failed to read {path}: {reason}")]
    File {
        /// Where it should be.
        path: String,
        /// Why.
        reason: String,
    },
    /// It makes no sense.
    #[error("{path}: {error}")]
    Config {
        /// Where it is.
        path: String,
        /// Why.
        error: ConfigError,
    },
}

impl Watched {
    /// A file that was not looked at yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), seen: None, complaint: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file if it is another than last time. One that is gone for a moment is no change; one that is wrong is
    /// complained about once.
    pub fn look(&mut self) -> Looked {
        let name = self.path.display().to_string();
        let content = match read(&self.path) {
            Ok(content) => content,
            Err(reason) if self.complaint.as_ref() == Some(&reason) => return Looked::Unchanged,
            Err(reason) => {
                self.complaint = Some(reason.clone());
                return Looked::Refused(ReadError::File { path: name, reason });
            }
        };
        self.complaint = None;
        if self.seen.as_ref() == Some(&content) {
            return Looked::Unchanged;
        }
        let answer = match std::str::from_utf8(&content) {
            Err(_) => Looked::Refused(ReadError::File { path: name, reason: "it is not UTF-8".to_owned() }),
            Ok(text) => match Config::read(&Source::new(&*name, text)) {
                Ok(config) => Looked::Changed(Box::new(config)),
                Err(error) => Looked::Refused(ReadError::Config { path: name, error }),
            },
        };
        self.seen = Some(content);
        answer
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    fs::read(path).map_err(|error| error.to_string())
}
