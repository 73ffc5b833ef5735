//! How a command ends when it does not end well: 1 if something outside failed, 2 if the input was bad, 3 if what was
//! looked for and is not wanted was found.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use api::yaml::Diagnostic;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What the user gave is wrong, with places in files.
    Problems(Vec<Diagnostic>),
    /// What the user gave is wrong.
    Input(String),
    /// Something outside failed: a disk, a pipe.
    Outside(String),
    /// What nobody hopes for was found, and has been printed.
    Found,
    /// All that there is to say has been printed; the exit code says the rest.
    Told(u8),
    /// The reader of our output went away; nothing to say.
    Quiet,
}

/// What commands return.
pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    /// Bad input, in one sentence.
    pub(crate) fn input(message: impl Display) -> Self {
        Self::Input(message.to_string())
    }

    /// An operation on a file that failed.
    pub(crate) fn file(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::Outside(format!("failed to {doing} {}: {}", path.display(), cause(error)))
    }

    /// Says it on standard error and turns it into an exit code.
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
            Self::Found => return ExitCode::from(3),
            Self::Told(code) => return ExitCode::from(code),
            Self::Quiet => return ExitCode::SUCCESS,
        };
        // Nobody is left to tell if this fails too.
        let _ = writeln!(out, "{}", text.trim_end());
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
            Self::Found | Self::Told(_) | Self::Quiet => Ok(()),
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

/// Whether to colour what goes to `stream`: only a terminal, and only if the user did not say no.
pub(crate) fn use_colour(stream: &impl IsTerminal) -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && stream.is_terminal()
}

/// The cause in words, with what to do about it where that is known.
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
