//! The help texts of a `plimsoll` program.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// A command and its output with `--help`.
pub(crate) struct CommandHelp {
    /// `plimsoll`, and the names of the commands.
    pub(crate) words: Vec<String>,
    pub(crate) text: String,
}

/// The help of the program and of all its commands, each before those below it.
pub(crate) fn help_of_all(program: &Path) -> anyhow::Result<Vec<CommandHelp>> {
    let mut found = Vec::new();
    add(&mut found, program, vec!["plimsoll".to_owned()])?;
    Ok(found)
}

fn add(found: &mut Vec<CommandHelp>, program: &Path, words: Vec<String>) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command.args(words.iter().skip(1)).arg("--help");
    // The output must not depend on the width of a terminal: `output` inherits no terminal, but this variable would set the width.
    let output = command.env_remove("COLUMNS").output();
    let output = output.with_context(|| format!("running {}", program.display()))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8(output.stdout).context("a help text is not UTF-8")?;
    let below: Vec<Vec<String>> = commands(&text)
        .into_iter()
        .map(|name| words.iter().cloned().chain([name.to_owned()]).collect())
        .collect();
    found.push(CommandHelp { words, text });
    below.into_iter().try_for_each(|words| add(found, program, words))
}

/// The commands that a help text lists.
fn commands(help: &str) -> Vec<&str> {
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A description that is continued in the next line is indented further.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names.filter_map(|rest| rest.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_that_the_help_lists() {
        let help = "Scales.\n\nCommands:\n  up    Run a cluster and watch\n        it\n  why   Explain\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["up", "why"]);
        assert!(commands("Scales.\n").is_empty());
    }
}
