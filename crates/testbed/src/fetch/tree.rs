//! Extracts programs from several Debian packages, with their dependencies, without installing them. The result is a tree of files,
//! and a script for each program that runs it with the libraries of the tree.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::debian::{command, link};
use super::on_path;
use crate::error::{Attempt, Error, build_failure};
use crate::parts::{Part, TreeProgram};
use crate::progress::Progress;

pub(super) fn fetch(
    part: &Part,
    packages: &[&str],
    programs: &[TreeProgram],
    draft: &Path,
    progress: &mut Progress,
) -> Result<(), Error> {
    if on_path("apt-get").is_none() || on_path("dpkg-deb").is_none() {
        let names: Vec<&str> = programs.iter().map(|program| program.name).collect();
        return link(part, &names, draft);
    }
    let archives = draft.join("archives");
    crate::error::make_folder(&archives.join("partial"))?;
    let into = format!("Dir::Cache::archives={}", archives.display());
    let real: Vec<String> = packages.iter().flat_map(|package| followed(package)).collect();
    // Named packages are fetched even if they are installed, their dependencies only if they are not.
    let mut words =
        vec!["apt-get", "--quiet", "--yes", "--no-install-recommends", "--download-only", "--reinstall"];
    words.extend(["-o", &into, "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root", "install"]);
    words.extend(real.iter().map(String::as_str));
    command(part, &words, draft, progress)?;
    for archive in fs::read_dir(&archives).attempt(|| format!("read {}", archives.display()))?.flatten() {
        let path = archive.path();
        if path.extension().is_some_and(|end| end == "deb") {
            command(part, &["dpkg-deb", "--extract", &path.to_string_lossy(), "bin/root"], draft, progress)?;
        }
    }
    for program in programs {
        let file = draft.join("bin").join(program.name);
        fs::write(&file, script(program)).attempt(|| format!("write {}", file.display()))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
            .attempt(|| format!("write {}", file.display()))?;
        let check = Command::new("sh")
            .arg("-c")
            .arg(format!("ls {}", program.path))
            .current_dir(draft.join("bin/root"))
            .output();
        if !check.is_ok_and(|check| check.status.success()) {
            let reason = format!("  there is no {} in {}", program.path, packages.join(", "));
            return Err(build_failure(&part.title(), reason));
        }
    }
    Ok(())
}

/// The packages behind a metapackage: `postgresql` depends on `postgresql-17`.
fn followed(package: &str) -> Vec<String> {
    let said =
        Command::new("apt-cache").args(["depends", "--important", package]).env("LC_ALL", "C").output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    named(package, &said)
}

fn named(package: &str, said: &str) -> Vec<String> {
    let mut names = vec![package.to_owned()];
    let needs = said.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let number = |name: &str| {
        let rest = name.strip_prefix(package).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    names.extend(needs.filter(|name| number(name)).map(str::to_owned));
    names
}

/// Runs a program of the tree with the libraries of the tree.
fn script(program: &TreeProgram) -> String {
    let TreeProgram { path, before, .. } = program;
    format!(
        "#!/bin/sh
root=$(dirname \"$(readlink -f \"$0\")\")/root
for folder in \"$root\"/usr/lib/*-linux-gnu* \"$root\"/lib/*-linux-gnu*; do
    LD_LIBRARY_PATH=$folder${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}
done
export LD_LIBRARY_PATH
for program in \"$root\"/{path}; do break; done
{before}
exec \"$program\" \"$@\"
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_metapackages_are_followed() {
        let said = "postgresql\n  Depends: postgresql-15\n  Depends: postgresql-common\n  Depends: libc6\n";
        assert_eq!(named("postgresql", said), ["postgresql", "postgresql-15"]);
        assert_eq!(named("redis-server", "redis-server\n  Depends: redis-tools\n"), ["redis-server"]);
    }

    #[test]
    fn wrapper_scripts_work_after_the_tree_is_moved() {
        let program = TreeProgram { name: "x", path: "usr/lib/x-*/bin/x", before: "export A=$root" };
        let text = script(&program);
        assert!(
            text.contains("\"$root\"/usr/lib/x-*/bin/x") && text.contains("\nexport A=$root\nexec "),
            "{text}"
        );
    }
}
