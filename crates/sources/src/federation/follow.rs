//! Reloads the file behind `--upstreams` when it changes. An invalid file changes nothing.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use api::yaml::{Diagnostic, SourceFile};

use super::config::FederationConfig;
use super::router::Router;

/// Polling interval. The file is small, and replaced symlinks do not change its modification time.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Size limit of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Router {
    /// Polls the file and applies its changes; never returns. An error is logged once and returned by
    /// [`problem`](Self::problem).
    pub async fn follow(&self, path: &Path) {
        let mut last = None;
        loop {
            // The error is compared by its text, because IO errors have no equality.
            let content = read(path).map_err(|error| format!("{}: {error}", path.display()));
            if last.as_ref() != Some(&content) {
                let problem = match &content {
                    Ok(bytes) => self.apply_file(path, bytes).err().map(|error| error.to_string()),
                    Err(error) => Some(error.clone()),
                };
                if let Some(problem) = &problem {
                    tracing::error!(
                        "the upstreams file is not valid, the previous upstreams stay: {problem}"
                    );
                }
                self.set_problem(problem);
                last = Some(content);
            }
            tokio::time::sleep(FILE_CHECK_INTERVAL).await;
        }
    }

    fn apply_file(&self, path: &Path, bytes: &[u8]) -> Result<(), InvalidFile> {
        let name = path.display().to_string();
        let source = SourceFile::from_bytes(name, bytes).map_err(|problem| InvalidFile(vec![problem]))?;
        let config = FederationConfig::read(&source, self.own()).map_err(InvalidFile)?;
        if config != self.config() {
            self.configure(config);
            tracing::info!(file = %path.display(), "upstreams reloaded");
        }
        Ok(())
    }
}

/// The problems of an upstreams file.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
struct InvalidFile(Vec<Diagnostic>);

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if length as u64 > MAX_FILE_BYTES {
        let message = format!("more than {MAX_FILE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}
