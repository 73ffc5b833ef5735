//! Logs of long-running commands, on standard error.

use std::io::IsTerminal;

use api::yaml::nearest;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::failure::{CommandResult, Failure, use_colour};

/// The levels.
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

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
    pub(crate) fn init(&self) -> CommandResult {
        check(&self.log_level)?;
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

/// Refuses a word that is no level: `EnvFilter` takes it for the name of a part that does not exist, and nothing is logged.
fn check(text: &str) -> CommandResult {
    let is_level = |word: &str| {
        LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word)) || matches!(word.parse::<u8>(), Ok(0..=5))
    };
    for part in text.split(',').map(str::trim).filter(|part| !part.contains(['[', '{'])) {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        if !is_level(level) {
            let near =
                nearest(level, LEVELS).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return Err(Failure::input(format!(
                "--log-level {text}: {level:?} is not a level; write {}, or by part (info,cluster=debug){near}",
                LEVELS.join(", ")
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_level_are_refused() {
        for text in [
            "info",
            "DEBUG",
            "info,cluster=debug",
            "warn, cluster::watch=trace",
            "off",
            "0",
            "info,[{name}]=debug",
        ] {
            assert!(check(text).is_ok(), "{text}");
        }
        for text in ["loud", "", "info,cluster=loud", "info,", "7", "cluster"] {
            assert!(matches!(check(text), Err(Failure::Input(_))), "{text}");
        }
        let near = check("infoo").unwrap_err().to_string();
        assert!(near.ends_with("did you mean info?"), "{near}");
    }
}
