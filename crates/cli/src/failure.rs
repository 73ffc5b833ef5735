//! Exit codes of failed commands: 1 if something outside failed, 2 if the input was invalid, 3 if `shadow report` found
//! differences, 4 if it had nothing to compare.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use api::yaml::Diagnostic;

use crate::control_characters::without_controls;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input is invalid, with positions in files.
    Problems(Vec<Diagnostic>),
    /// The input is invalid.
    Input(String),
    /// Something outside failed: a disk, a pipe.
    Outside(String),
    /// Differences were found and printed.
    DifferencesFound,
    /// There was nothing to compare, which was printed.
    NothingCompared,
    /// The result is printed; only the exit code remains.
    Printed(u8),
    /// The reader of our output closed the pipe.
    Quiet,
}

/// Any error, where only its text is shown.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The result of a command.
pub(crate) type CommandResult = Result<(), Failure>;

impl Failure {
    /// Invalid input, in one sentence.
    pub(crate) fn input(message: impl Display) -> Self {
        Self::Input(message.to_string())
    }

    /// An operation on a file that failed.
    pub(crate) fn file(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::Outside(format!("failed to {doing} {}: {}", path.display(), cause(error)))
    }

    /// Prints the failure to standard error and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let colour = use_colour(&std::io::stderr());
        let mut out = std::io::stderr().lock();
        let (text, code) = match self {
            Self::Problems(problems) => {
                let rendered: Vec<String> = problems.iter().map(|p| p.render(colour)).collect();
                (rendered.join("\n"), 2)
            }
            Self::Input(message) => (format!("error: {message}"), 2),
            Self::Outside(message) => (format!("error: {message}"), 1),
            Self::DifferencesFound => return ExitCode::from(3),
            Self::NothingCompared => return ExitCode::from(4),
            Self::Printed(code) => return ExitCode::from(code),
            Self::Quiet => return ExitCode::SUCCESS,
        };
        // A failure to print cannot be reported.
        let _ = writeln!(out, "{}", without_controls(text.trim_end()));
        ExitCode::from(code)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Problems(problems) => {
                problems.iter().try_for_each(|problem| f.write_str(&problem.render(false)))
            }
            Self::Input(message) | Self::Outside(message) => f.write_str(message),
            Self::DifferencesFound | Self::NothingCompared | Self::Printed(_) | Self::Quiet => Ok(()),
        }
    }
}

impl From<Diagnostic> for Failure {
    fn from(problem: Diagnostic) -> Self {
        Self::Problems(vec![problem])
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(problems: Vec<Diagnostic>) -> Self {
        Self::Problems(problems)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::Quiet;
        }
        Self::Outside(format!("failed to write the output: {}", cause(&error)))
    }
}

/// Whether output to `stream` is coloured: only a terminal, and only without `NO_COLOR`.
pub(crate) fn use_colour(stream: &impl IsTerminal) -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && stream.is_terminal()
}

/// The cause, with a remedy where one is known.
pub(crate) fn cause(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let remedy = match error.kind() {
        ErrorKind::NotFound => "no such file or folder",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::StorageFull => "the disk is full; free some space or choose another place",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only; choose another place",
        ErrorKind::IsADirectory => "it is a folder",
        _ => return error.to_string(),
    };
    remedy.to_owned()
}
