//! Logs of long-running commands, on standard error.

use std::io::{self, IsTerminal, Write};

use api::yaml::nearest;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::control_characters::without_controls;
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
    // The last value counts, as for the flags of the replaced programs: the chart sets the format, and users add flags after it.
    /// The format of logs.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, overrides_with = "log_format")]
    pub(crate) log_format: LogFormat,
    /// What is logged: error, warn, info, debug, trace, or by part (info,cluster=debug).
    #[arg(long, value_name = "LEVEL", default_value = "info", overrides_with = "log_level")]
    pub(crate) log_level: String,
}

impl LogArgs {
    /// Starts to log.
    pub(crate) fn init(&self) -> CommandResult {
        check(&self.log_level)?;
        let filter = EnvFilter::try_new(&self.log_level)
            .map_err(|error| Failure::input(format!("--log-level {}: {error}", self.log_level)))?;
        let builder = fmt().with_env_filter(filter).with_writer(io::stderr);
        let done = match self.log_format {
            LogFormat::Json => builder.json().flatten_event(true).try_init(),
            LogFormat::Text => {
                let stderr = io::stderr();
                let colour = stderr.is_terminal() && use_colour(&stderr);
                builder.with_writer(|| EventWriter).with_ansi(colour).with_target(false).compact().try_init()
            }
        };
        // Somebody in the same process logs already; that one goes on.
        let _ = done;
        Ok(())
    }
}

/// The level of a verbosity of klog, the log library of Kubernetes (`-v`).
pub(crate) fn level_of_klog(verbosity: i64) -> &'static str {
    match verbosity {
        ..=3 => "info",
        4 | 5 => "debug",
        _ => "trace",
    }
}

/// The level of a value of `--zap-log-level`, which KEDA's operator has from zap.
pub(crate) fn level_of_zap(level: &str) -> Result<&'static str, Failure> {
    match level {
        "" | "info" | "0" => Ok("info"),
        "debug" | "1" => Ok("debug"),
        "warn" => Ok("warn"),
        "error" => Ok("error"),
        // Zap's numbers mean increasing verbosity.
        number if number.parse::<u8>().is_ok() => Ok("trace"),
        _ => Err(Failure::input(format!("--zap-log-level={level}: write debug, info, error or a number"))),
    }
}

/// Writes each event as one line on standard error. Errors name texts of objects, whose line ends would begin lines that look like
/// events of this program.
struct EventWriter;

impl Write for EventWriter {
    /// Writes one event: the subscriber passes it as a whole.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(line(&String::from_utf8_lossy(event)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The line of an event.
fn line(event: &str) -> String {
    let text = event.strip_suffix('\n').unwrap_or(event);
    format!("{}\n", without_controls(text).replace('\n', "\\n"))
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
    fn texts_of_objects_begin_no_lines() {
        assert_eq!(
            line("WARN failed error=no \u{1b}[2mred\u{1b}[0m\n"),
            "WARN failed error=no \u{1b}[2mred\u{1b}[0m\n"
        );
        let forged = "WARN failed error=\"web\nINFO leading\r\u{1b}[2Jx\" not found\n";
        let shown = "WARN failed error=\"web\\nINFO leading\u{FFFD}\u{FFFD}[2Jx\" not found\n";
        assert_eq!(line(forged), shown);
    }

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
