//! The help of every command.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::release::commands;

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
    let mut page = HEAD.to_owned();
    add(&mut page, &program, &[])?;
    Ok(page)
}

/// Adds a command and those below it.
fn add(page: &mut String, program: &Path, words: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    // The width of the terminal must not matter; standard input is not inherited.
    let output = command.args(words).arg("--help").env_remove("COLUMNS").output();
    let output = output.with_context(|| format!("running {}", program.display()))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let help = String::from_utf8(output.stdout).context("a help text is not UTF-8")?;
    let title: Vec<&str> = std::iter::once("plimsoll").chain(words.iter().copied()).collect();
    page.push_str(&section(&title.join(" "), &help));
    for name in commands(&help) {
        let below: Vec<&str> = words.iter().copied().chain([name]).collect();
        add(page, program, &below)?;
    }
    Ok(())
}

fn section(title: &str, help: &str) -> String {
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    format!("\n## {title}\n\n```text\n{}\n```\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_shown_as_it_is() {
        assert_eq!(
            section("plimsoll up", "Runs.\n  \n  x \n\n"),
            "\n## plimsoll up\n\n```text\nRuns.\n\n  x\n```\n"
        );
    }
}
