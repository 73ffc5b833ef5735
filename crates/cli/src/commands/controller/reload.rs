//! Reloads the configuration file when it changes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use controllers::hpa::HpaControllerHandle;

use super::options::Options;
use crate::failure::Failure;

/// How often the file is checked for changes.
const LOOK: Duration = Duration::from_secs(5);

/// Merges flags with the file; flags take precedence.
pub(crate) fn merged(flags: &Options, file: Option<&Path>) -> Result<Options, Failure> {
    let file = file.map(Options::read).transpose()?.unwrap_or_default();
    Ok(flags.clone().over(file))
}

/// Watches the configuration file.
pub(crate) struct Reloader {
    flags: Options,
    file: Option<PathBuf>,
    seen: Option<SystemTime>,
}

impl Reloader {
    pub(crate) fn new(flags: Options, file: Option<PathBuf>) -> Self {
        let seen = file.as_deref().and_then(changed);
        Self { flags, file, seen }
    }

    /// Applies new settings whenever the file changes or `asked` resolves. An invalid file is reported, and
    /// the old settings stay.
    pub(crate) async fn run(mut self, handle: HpaControllerHandle, mut asked: impl AsyncFnMut()) {
        loop {
            let told = tokio::select! {
                () = asked() => true,
                () = tokio::time::sleep(LOOK) => false,
            };
            let now = self.file.as_deref().and_then(changed);
            if !told && now == self.seen {
                continue;
            }
            self.seen = now;
            match merged(&self.flags, self.file.as_deref()).and_then(|options| options.settings()) {
                Ok(settings) => {
                    tracing::info!("new settings are in force");
                    handle.update(settings);
                }
                Err(error) => {
                    tracing::error!("the new configuration is not used, the old one stays: {error}");
                }
            }
        }
    }
}

fn changed(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|found| found.modified()).ok()
}
