//! Reloads the file behind `--upstreams` when it changes. An invalid file changes nothing.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use api::yaml::SourceFile;

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
            let found = read(path);
            if last.as_ref() != Some(&found) {
                let problem = found
                    .as_ref()
                    .map_err(String::clone)
                    .and_then(|bytes| self.apply_file(path, bytes))
                    .err();
                if let Some(problem) = &problem {
                    tracing::error!(
                        "the upstreams file is not valid, the previous upstreams stay: {problem}"
                    );
                }
                self.set_problem(problem);
                last = Some(found);
            }
            tokio::time::sleep(FILE_CHECK_INTERVAL).await;
        }
    }

    fn apply_file(&self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let name = path.display().to_string();
        let source = SourceFile::from_bytes(name, bytes).map_err(|problem| problem.to_string())?;
        let config = FederationConfig::read(&source, self.own())
            .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        if config != self.config() {
            self.configure(config);
            tracing::info!(file = %path.display(), "upstreams reloaded");
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let limited = |bytes: &mut Vec<u8>| -> io::Result<usize> {
        File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(bytes)
    };
    match limited(&mut bytes) {
        Err(error) => Err(format!("{}: {error}", path.display())),
        Ok(length) if length as u64 > MAX_FILE_BYTES => {
            Err(format!("{}: more than {MAX_FILE_BYTES} bytes", path.display()))
        }
        Ok(_) => Ok(bytes),
    }
}
