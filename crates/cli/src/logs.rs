//! Logs of long-running commands, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::failure::{Failure, Outcome, use_colour};

/// The format of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs: one JSON object per line.
    Json,
}

/// The options, for commands that log.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// The format of logs.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// What is logged: error, warn, info, debug, trace, or by part (info,cluster=debug).
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: String,
}

impl LogArgs {
    /// Starts to log.
    pub(crate) fn init(&self) -> Outcome {
        let filter = EnvFilter::try_new(&self.log_level)
            .map_err(|error| Failure::input(format!("--log-level {}: {error}", self.log_level)))?;
        let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
        let done = match self.log_format {
            LogFormat::Json => builder.json().flatten_event(true).try_init(),
            LogFormat::Text => {
                let stderr = std::io::stderr();
                let colour = stderr.is_terminal() && use_colour(&stderr);
                builder.with_ansi(colour).with_target(false).compact().try_init()
            }
        };
        // Somebody in the same process logs already; that one goes on.
        let _ = done;
        Ok(())
    }
}
