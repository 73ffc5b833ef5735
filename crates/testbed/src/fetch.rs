//! Builds one part with Go, or fetches it from packages, into a folder.

mod debian;
mod go;
mod packages;
mod tree;

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::error::{Attempt, Error};
use crate::parts::{Part, Source};
use crate::process::{last_lines, supervised};
use crate::progress::Progress;

/// The time after which a progress line is redrawn when there is no output.
const REDRAW_INTERVAL: Duration = Duration::from_millis(500);

/// The number of lines that are shown of the output of a failed command.
const MAX_SHOWN_LINES: usize = 25;

/// The folder of a published Go module (`path@version`), which is fetched first if it is missing.
pub fn go_module(named: &str) -> Result<PathBuf, Error> {
    go::download(named, &std::env::temp_dir())
}

/// Writes the programs of `part` to `draft/bin`.
pub(crate) fn part(part: &Part, draft: &Path, progress: &mut Progress) -> Result<(), Error> {
    crate::error::make_folder(&draft.join("bin"))?;
    match part.source {
        Source::Go(module) => go::build(part, &module, draft, progress),
        Source::GoRelease(release) => go::build_release(part, &release, draft, progress),
        Source::Debian { package, programs } => debian::fetch(part, package, programs, draft, progress),
        Source::DebianTree { packages, programs } => tree::fetch(part, packages, programs, draft, progress),
        Source::Packages(packages) => packages::fetch(part, &packages, draft, progress),
    }
}

/// Runs a command at low priority, which ends when this process ends. Each line of output is passed to `understand`, which returns what the
/// line means for progress. Other lines are collected and returned.
fn run(
    arguments: Vec<OsString>,
    prepare: impl FnOnce(&mut Command),
    progress: &mut Progress,
    mut understand: impl FnMut(&str) -> Option<String>,
) -> Result<(ExitStatus, String), Error> {
    let shown = arguments.iter().take(2).map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let niced = [OsString::from("-n"), OsString::from("19")].into_iter().chain(arguments);
    let mut command = supervised("nice", niced);
    prepare(&mut command);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().attempt(|| format!("run {shown}"))?;
    let leash = child.stdin.take();
    let (sender, lines) = mpsc::channel();
    if let Some(errors) = child.stderr.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
    }
    let mut doing = String::from("working");
    let mut kept = Vec::new();
    loop {
        match lines.recv_timeout(REDRAW_INTERVAL) {
            Ok(line) => match understand(&line) {
                Some(what) => doing = what,
                None => kept.push(line),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        progress.doing(&doing);
    }
    let status = child.wait().attempt(|| format!("run {shown}"))?;
    drop(leash);
    Ok((status, last_lines(&kept.join("\n"), MAX_SHOWN_LINES)))
}

/// The path of a program on the search path.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unparsed_lines_are_kept_and_exit_code_is_returned() {
        let mut understood = Vec::new();
        let script = "echo one >&2; echo 'two words' >&2; exit 3";
        let arguments = ["sh", "-c", script].map(OsString::from).to_vec();
        let (status, kept) = run(
            arguments,
            |_| {},
            &mut Progress::silent(),
            |line| {
                understood.push(line.to_owned());
                (!line.contains(' ')).then(|| line.to_owned())
            },
        )
        .unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(kept, "  two words");
        assert_eq!(understood, ["one", "two words"]);
    }

    #[test]
    fn programs_are_found_on_the_search_path() {
        assert!(on_path("sh").is_some());
        assert!(on_path("no such program").is_none());
    }
}
