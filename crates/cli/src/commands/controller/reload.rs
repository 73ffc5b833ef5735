//! Reloads the configuration file when it changes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use controllers::hpa::HpaControllerHandle;

use super::options::ControllerOptions;
use crate::failure::Failure;

/// How often the file is checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Merges flags with the file; flags take precedence.
pub(crate) fn merged(flags: &ControllerOptions, file: Option<&Path>) -> Result<ControllerOptions, Failure> {
    let file = file.map(ControllerOptions::read).transpose()?.unwrap_or_default();
    Ok(flags.clone().over(file))
}

/// Watches the configuration file.
pub(crate) struct Reloader {
    flags: ControllerOptions,
    file: Option<PathBuf>,
    seen: Option<SystemTime>,
}

impl Reloader {
    pub(crate) fn new(flags: ControllerOptions, file: Option<PathBuf>) -> Self {
        let seen = file.as_deref().and_then(changed);
        Self { flags, file, seen }
    }

    /// Applies new settings whenever the file changes or `asked` resolves. An invalid file is reported, and
    /// the old settings stay.
    pub(crate) async fn run(mut self, handle: HpaControllerHandle, mut reload_requested: impl AsyncFnMut()) {
        loop {
            let requested = tokio::select! {
                () = reload_requested() => true,
                () = tokio::time::sleep(CHECK_INTERVAL) => false,
            };
            let now = self.file.as_deref().and_then(changed);
            if !requested && now == self.seen {
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
