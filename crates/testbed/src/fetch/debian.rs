//! Extracts programs from a Debian package without installing it, so that no service of the system is changed.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::{on_path, run};
use crate::error::{Attempt, Error, build_failure};
use crate::parts::Part;
use crate::progress::Progress;

pub(super) fn fetch(
    part: &Part,
    package: &str,
    programs: &[&str],
    draft: &Path,
    progress: &mut Progress,
) -> Result<(), Error> {
    if on_path("apt-get").is_none() || on_path("dpkg-deb").is_none() {
        return link(part, programs, draft);
    }
    // The option avoids apt's warning that its sandbox user cannot write here. The signature of the package is checked in any case.
    command(
        part,
        &["apt-get", "--quiet", "-o", "APT::Sandbox::User=root", "download", package],
        draft,
        progress,
    )?;
    let archive = archive(draft)?
        .ok_or_else(|| build_failure(&part.title(), format!("  apt-get left no {package}")))?;
    command(part, &["dpkg-deb", "--extract", &archive, "root"], draft, progress)?;
    for name in programs {
        let from = draft.join("root/usr/bin").join(name);
        fs::rename(&from, draft.join("bin").join(name))
            .attempt(|| format!("find {name} in the package {package}"))?;
    }
    Ok(())
}

pub(super) fn command(
    part: &Part,
    words: &[&str],
    draft: &Path,
    progress: &mut Progress,
) -> Result<(), Error> {
    progress.doing(words.first().copied().unwrap_or_default());
    let arguments = words.iter().map(OsString::from).collect();
    let prepare = |command: &mut std::process::Command| {
        command.current_dir(draft).env("LC_ALL", "C");
    };
    let (status, output) = run(arguments, prepare, progress, |_| None)?;
    if status.success() {
        return Ok(());
    }
    let remedy = if output.contains("Unable to locate package") || output.contains("No candidate") {
        "\n  remedy: run `apt-get update` as root first"
    } else {
        ""
    };
    Err(build_failure(&part.title(), format!("{output}{remedy}")))
}

fn archive(draft: &Path) -> Result<Option<String>, Error> {
    let entries = fs::read_dir(draft).attempt(|| format!("read {}", draft.display()))?;
    let archive = entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "deb"));
    Ok(archive.map(|path| path.to_string_lossy().into_owned()))
}

/// On systems other than Debian, links the programs that are installed.
pub(super) fn link(part: &Part, programs: &[&str], draft: &Path) -> Result<(), Error> {
    for name in programs {
        let Some(found) = on_path(name) else {
            return Err(Error::NotDebian { part: part.title(), programs: programs.join(" and ") });
        };
        let to = draft.join("bin").join(name);
        std::os::unix::fs::symlink(found, &to).attempt(|| format!("link {}", to.display()))?;
    }
    Ok(())
}
