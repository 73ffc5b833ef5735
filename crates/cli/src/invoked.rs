//! The name of the program: as a kubectl plugin it is `kubectl-plimsoll`, and users type `kubectl plimsoll`, which kubectl completes with
//! `kubectl_complete-plimsoll`. Instead of another server it is started by that server's name.

use std::ffi::{OsStr, OsString};

use clap::builder::StyledStr;
use clap::{Command, CommandFactory as _};

use crate::commands::metrics::flags::FLAGS;
use crate::flags;
use crate::program::{Replaced, replaced_by, stem};

const PLUGIN: &str = "kubectl plimsoll";
/// The name by which kubectl starts the program to complete a command line of the plugin.
const PLUGIN_COMPLETION: &str = "kubectl_complete-plimsoll";

/// The command line, whose help shows what the user types.
pub(crate) fn command() -> Command {
    let program = std::env::args_os().next().unwrap_or_default();
    if is_plugin(&program) { renamed(crate::Cli::command()).bin_name(PLUGIN) } else { crate::Cli::command() }
}

/// The words after `kubectl plimsoll`, if kubectl asks for the completion of the last one.
pub(crate) fn words_to_complete() -> Option<Vec<String>> {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let is_completion = stem(&program) == PLUGIN_COMPLETION;
    is_completion.then(|| words.map(|word| word.to_string_lossy().into_owned()).collect())
}

/// The command line, translated.
pub(crate) fn words() -> Vec<OsString> {
    understood(std::env::args_os())
}

/// Translates the command lines of replaced servers: manifests name the program, its path in the image, or only flags.
fn understood(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let mut rest: Vec<OsString> = words.collect();
    let named = |word: &OsString| {
        word.to_str().is_some_and(|word| word.starts_with('/')) && replaced_by(word).is_some()
    };
    let repeated_as = rest.first().filter(|word| named(word)).and_then(|word| replaced_by(word));
    if repeated_as.is_some() {
        rest.remove(0);
    }
    if repeated_as.is_some()
        || replaced_by(&program).is_some()
        || rest.first().and_then(|word| word.to_str()).is_some_and(is_flag)
    {
        let is_operator = repeated_as.or_else(|| replaced_by(&program)) == Some(Replaced::Operator);
        rest.insert(0, if is_operator { "operator" } else { "metrics" }.into());
    }
    if rest.first().is_some_and(|word| word == "metrics") {
        for word in &mut rest {
            if let Some(text) = word.to_str() {
                *word = flags::normal(text).into();
            }
        }
    }
    std::iter::once(program).chain(rest).collect()
}

/// Whether a word is a flag of `plimsoll metrics` that `plimsoll` itself does not have.
fn is_flag(word: &str) -> bool {
    let word = flags::normal(word);
    let name = word.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or_default());
    name.is_some_and(|name| name != "version" && FLAGS.iter().any(|flag| flag.name == name))
}

fn is_plugin(program: &OsStr) -> bool {
    matches!(stem(program), "kubectl-plimsoll" | "kubectl_plimsoll")
}

/// Renames the program in usage and examples.
fn renamed(command: Command) -> Command {
    let examples = command.get_after_help().map(StyledStr::to_string);
    let command = match examples {
        Some(text) => command.after_help(as_typed(&text)),
        None => command,
    };
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, renamed))
}

/// Replaces the program's name where a shell expects a command.
fn as_typed(text: &str) -> String {
    let named = ["  plimsoll ", "| plimsoll ", "(plimsoll "];
    named.iter().fold(text.to_owned(), |text, place| text.replace(place, &place.replace("plimsoll", PLUGIN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_help_names_commands_as_typed() {
        assert_eq!(
            as_typed(
                "Examples:\n  plimsoll get\n  kubectl x | plimsoll convert - --to plimsoll.dev/v1alpha1"
            ),
            "Examples:\n  kubectl plimsoll get\n  kubectl x | kubectl plimsoll convert - --to plimsoll.dev/v1alpha1"
        );
    }

    #[test]
    fn kubectl_plugin_is_recognized_by_its_file_name() {
        for (program, expected) in [
            ("/usr/local/bin/kubectl-plimsoll", true),
            ("kubectl_plimsoll", true),
            ("kubectl-plimsoll.exe", true),
            ("./plimsoll", false),
            ("", false),
        ] {
            assert_eq!(is_plugin(OsStr::new(program)), expected, "{program}");
        }
    }

    #[test]
    fn program_names_of_replaced_servers_start_ours() {
        for (line, expected) in [
            ("/metrics-server --cert-dir=/tmp", "/metrics-server metrics --cert-dir=/tmp"),
            ("adapter --log_dir=/a_b", "adapter metrics --log-dir=/a_b"),
            // The image's entrypoint and the manifest's arguments both name it.
            ("/adapter /adapter --v=4", "/adapter metrics --v=4"),
            ("plimsoll /adapter --v=4", "plimsoll metrics --v=4"),
            ("plimsoll --secure-port=10250", "plimsoll metrics --secure-port=10250"),
            ("plimsoll --secure_port 10250", "plimsoll metrics --secure-port 10250"),
            ("plimsoll metrics --secure_port=1", "plimsoll metrics --secure-port=1"),
            (
                "/keda --leader-elect --zap-log-level=info",
                "/keda operator --leader-elect --zap-log-level=info",
            ),
            ("plimsoll /keda --cert-dir=/certs", "plimsoll operator --cert-dir=/certs"),
            ("plimsoll --version", "plimsoll --version"),
            ("plimsoll why a_b --x_y", "plimsoll why a_b --x_y"),
            ("plimsoll adapter", "plimsoll adapter"),
            ("plimsoll", "plimsoll"),
        ] {
            let words = understood(line.split(' ').map(OsString::from));
            assert_eq!(words.join(OsStr::new(" ")), expected, "{line}");
        }
        assert_eq!(replaced_by(OsStr::new("/usr/bin/prometheus-adapter")), Some(Replaced::Adapter));
        assert_eq!(replaced_by(OsStr::new("metrics-server")), Some(Replaced::Server));
    }

    #[test]
    fn command_line_passes_clap_assertions() {
        crate::Cli::command().debug_assert();
        renamed(crate::Cli::command()).debug_assert();
    }
}
