//! The name we were called by: as a plugin, kubectl finds us as `kubectl-plimsoll`, and users type `kubectl plimsoll`.

use std::ffi::OsStr;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Command, CommandFactory as _};

const PLUGIN: &str = "kubectl plimsoll";

/// The command line, with help and usage that say what the user types.
pub(crate) fn command() -> Command {
    let program = std::env::args_os().next().unwrap_or_default();
    if is_plugin(&program) { renamed(crate::Cli::command()).bin_name(PLUGIN) } else { crate::Cli::command() }
}

fn is_plugin(program: &OsStr) -> bool {
    let name = Path::new(program).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    matches!(name, "kubectl-plimsoll" | "kubectl_plimsoll")
}

/// Examples, too, are there to be copied.
fn renamed(command: Command) -> Command {
    let examples = command.get_after_help().map(StyledStr::to_string);
    let command = match examples {
        Some(text) => command.after_help(as_typed(&text)),
        None => command,
    };
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, renamed))
}

/// Our name where a shell would look for it.
fn as_typed(text: &str) -> String {
    let named = ["  plimsoll ", "| plimsoll ", "(plimsoll "];
    named.iter().fold(text.to_owned(), |text, place| text.replace(place, &place.replace("plimsoll", PLUGIN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_are_renamed() {
        assert_eq!(
            as_typed(
                "Examples:\n  plimsoll get\n  kubectl x | plimsoll convert - --to plimsoll.dev/v1alpha1"
            ),
            "Examples:\n  kubectl plimsoll get\n  kubectl x | kubectl plimsoll convert - --to plimsoll.dev/v1alpha1"
        );
    }

    #[test]
    fn plugins_are_known_by_their_file() {
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
    fn the_command_line_is_sound() {
        crate::Cli::command().debug_assert();
        renamed(crate::Cli::command()).debug_assert();
    }
}
