//! Output formats of commands.

use std::io::Write;

use serde::Serialize;

use crate::control_characters::without_controls;
use crate::failure::CommandResult;

/// `-o` for commands that print values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For people, with more columns.
    Wide,
    /// For programs.
    Json,
    /// For files.
    Yaml,
}

/// Prints a value as JSON or YAML.
pub(crate) fn value(format: Format, value: &impl Serialize) -> CommandResult {
    let json = serde_json::to_value(value)
        .map_err(|e| crate::failure::Failure::Outside(format!("failed to write the output: {e}")))?;
    let text = match format {
        Format::Yaml => api::yaml::to_yaml(&json),
        _ => format!("{json:#}\n"),
    };
    exact_out(&text)
}

/// Prints text for people. Only our colours control the terminal: users of a cluster choose texts of its objects and events.
pub(crate) fn text_out(text: &str) -> CommandResult {
    exact_out(&without_controls(text))
}

/// Prints text for programs as it is.
pub(crate) fn exact_out(text: &str) -> CommandResult {
    bytes_out(text.as_bytes())
}

/// Writes bytes to standard output.
pub(crate) fn bytes_out(bytes: &[u8]) -> CommandResult {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}
