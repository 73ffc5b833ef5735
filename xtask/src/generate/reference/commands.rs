//! The help of every command.

use anyhow::{Context, bail};

use crate::help::{CommandHelp, help_of_all};

const HEAD: &str = "<!-- Made by `cargo xtask generate` from the help of the program; do not edit. -->
# Commands

What `--help` prints, for every command.
";

/// The page. The program must have been built from the same sources, as `make lint` does.
pub(super) fn page() -> anyhow::Result<String> {
    let program = std::env::current_exe().context("finding the folder of xtask")?.with_file_name("plimsoll");
    if !program.is_file() {
        bail!(
            "{} is missing\n  remedy: cargo build --workspace --bin plimsoll, then repeat",
            program.display()
        );
    }
    let sections: Vec<String> = help_of_all(&program)?.iter().map(section).collect();
    Ok(format!("{HEAD}{}", sections.concat()))
}

fn section(command: &CommandHelp) -> String {
    let lines: Vec<&str> = command.text.trim_end().lines().map(str::trim_end).collect();
    format!("\n## {}\n\n```text\n{}\n```\n", command.words.join(" "), lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_shown_as_it_is() {
        let help =
            CommandHelp { words: vec!["plimsoll".into(), "up".into()], text: "Runs.\n  \n  x \n\n".into() };
        assert_eq!(section(&help), "\n## plimsoll up\n\n```text\nRuns.\n\n  x\n```\n");
    }
}
