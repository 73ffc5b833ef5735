//! The log flags of `plimsoll run`: its own, and those of the replaced programs, which its roles take, too. KEDA's and prometheus-adapter's
//! charts always set one of them.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::commands::metrics::flags::FLAGS as METRICS_FLAGS;
use crate::commands::operator::flags::FLAGS as OPERATOR_FLAGS;
use crate::failure::Failure;
use crate::flags::{Flag, Group};
use crate::logs::{LogArgs, LogFormat, level_of_klog, level_of_zap};

/// The names by which clap knows the fields of `LogArgs`.
const LOG_FORMAT: &str = "log_format";
const LOG_LEVEL: &str = "log_level";

/// The levels of the replaced programs, from the least detailed one.
const LEVELS_BY_DETAIL: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// How the process logs. `--log-level` and `--log-format` take precedence over the flags of the replaced programs.
#[derive(Clone, Debug)]
pub(crate) struct RunLogs(pub(super) LogArgs);

/// The log flags of the replaced programs, each once.
fn peer_flags() -> Vec<&'static Flag> {
    let mut flags: Vec<&'static Flag> = Vec::new();
    for flag in METRICS_FLAGS.iter().chain(OPERATOR_FLAGS) {
        if flag.group == Group::Logging && flags.iter().all(|known| known.name != flag.name) {
            flags.push(flag);
        }
    }
    flags
}

/// The values of a log flag of the replaced programs.
fn values<'a>(matches: &'a ArgMatches, name: &str) -> impl Iterator<Item = &'a String> {
    matches.get_many::<String>(name).into_iter().flatten()
}

/// The most detailed level of the log flags of the replaced programs, because the roles may have got different ones; none without such a flag.
fn peer_level(matches: &ArgMatches) -> Result<Option<&'static str>, Failure> {
    let zap: Vec<&'static str> =
        values(matches, "zap-log-level").map(|level| level_of_zap(level)).collect::<Result<_, Failure>>()?;
    let klog = values(matches, "v").filter_map(|verbosity| verbosity.parse::<i64>().ok()).map(level_of_klog);
    let detail = |level: &&'static str| LEVELS_BY_DETAIL.iter().position(|known| known == level);
    Ok(zap.into_iter().chain(klog).max_by_key(detail))
}

/// Whether a log flag of the replaced programs asks for JSON.
fn is_json(matches: &ArgMatches) -> bool {
    ["logging-format", "zap-encoder"].iter().any(|name| values(matches, name).any(|format| format == "json"))
}

impl FromArgMatches for RunLogs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let invalid = |text: String| clap::Error::raw(ErrorKind::ValueValidation, format!("{text}\n"));
        for flag in peer_flags() {
            values(matches, flag.name).try_for_each(|value| flag.check(value)).map_err(invalid)?;
        }
        let mut logs = LogArgs::from_arg_matches(matches)?;
        let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let level = peer_level(matches).map_err(|failure| invalid(failure.to_string()))?;
        if let Some(level) = level.filter(|_| !is_given(LOG_LEVEL)) {
            level.clone_into(&mut logs.log_level);
        }
        if is_json(matches) && !is_given(LOG_FORMAT) {
            logs.log_format = LogFormat::Json;
        }
        Ok(Self(logs))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RunLogs {
    fn augment_args(command: Command) -> Command {
        peer_flags().into_iter().fold(LogArgs::augment_args(command), |command, flag| command.arg(flag.arg()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
