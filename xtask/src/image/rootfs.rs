//! The files of the image: the binary, glibc and CA certificates of Debian, and nothing else.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::output;

/// A package of Debian, of which files are in the image.
pub(super) struct DebianPackage {
    pub(super) name: String,
    pub(super) version: String,
}

/// The package of glibc.
const GLIBC: &str = "libc6";
/// The first glibc that can load the program of `make dist`, which has packed relocations (make/dist.mk).
const MIN_GLIBC: (u32, u32) = (2, 36);
/// The packages that files are taken from, each with the names of the libraries that the binary may load.
const LIBRARIES: [(&str, &[&str]); 2] = [
    ("libc6", &["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"]),
    ("libgcc-s1", &["libgcc_s.so.1"]),
];
const CERTIFICATES: &str = "ca-certificates";

/// The names by which the programs that Plimsoll replaces are called in their own manifests.
const PEER_PROGRAMS: [&str; 3] = ["metrics-server", "adapter", "keda"];

/// Writes the files for an architecture below `root`; returns the packages they come from.
pub(super) fn build(root: &Path, binary: &Path, architecture: &str) -> anyhow::Result<Vec<DebianPackage>> {
    let scratch = root.with_extension("packages");
    fs::create_dir_all(&scratch).with_context(|| format!("creating {}", scratch.display()))?;
    let mut packages = Vec::new();
    for (package, libraries) in LIBRARIES {
        let (found, files) = unpacked(package, Some(architecture), &scratch)?;
        if package == GLIBC {
            check_glibc(&found.version)?;
        }
        packages.push(found);
        copy_libraries(&files, libraries, root)?;
    }
    let (found, files) = unpacked(CERTIFICATES, None, &scratch)?;
    packages.push(found);
    let bundle = certificate_bundle(&files.join("usr/share/ca-certificates"))?;
    write(root, "etc/ssl/certs/ca-certificates.crt", bundle.as_bytes(), 0o644)?;
    // glibc reads the names of users here, which `kubectl exec` and audit logs show.
    write(root, "etc/passwd", b"nonroot:x:65532:65532:nonroot:/:/nologin\n", 0o644)?;
    write(root, "etc/group", b"nonroot:x:65532:\n", 0o644)?;
    let program = fs::read(binary).with_context(|| format!("reading {}", binary.display()))?;
    write(root, "usr/local/bin/plimsoll", &program, 0o755)?;
    for name in PEER_PROGRAMS {
        symlink("usr/local/bin/plimsoll", root.join(name)).with_context(|| format!("linking {name}"))?;
    }
    fs::remove_dir_all(&scratch).with_context(|| format!("removing {}", scratch.display()))?;
    Ok(packages)
}

/// Fetches and unpacks a package without installing it; without an architecture, one for all of them.
fn unpacked(
    package: &str,
    architecture: Option<&str>,
    scratch: &Path,
) -> anyhow::Result<(DebianPackage, PathBuf)> {
    let folder = scratch.join(package);
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let chosen = architecture.map_or_else(|| package.to_owned(), |name| format!("{package}:{name}"));
    let apt = ["--quiet", "-o", "APT::Sandbox::User=root", "download", &chosen];
    output(Command::new("apt-get").args(apt).current_dir(&folder)).with_context(|| {
        format!(
            "fetching {chosen}\n  remedy: run this on Debian, after apt-get update, \
             and for another architecture than that of this machine after dpkg --add-architecture"
        )
    })?;
    let archive = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    let archive = archive.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
    let archive = archive.with_context(|| format!("apt-get left no {package}"))?;
    let archive = archive.canonicalize()?;
    let version = output(Command::new("dpkg-deb").arg("--field").arg(&archive).arg("Version"))?;
    let files = folder.join("files");
    output(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(&files))?;
    Ok((DebianPackage { name: package.to_owned(), version: version.trim().to_owned() }, files))
}

/// Refuses a glibc with which the program would not start.
fn check_glibc(version: &str) -> anyhow::Result<()> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        anyhow::bail!(
            "{GLIBC} has the version {version:?}, which is no number\n  remedy: run this on Debian 12 or later"
        );
    };
    anyhow::ensure!(
        (major, minor) >= MIN_GLIBC,
        "{GLIBC} {version} cannot load the program, which needs {}.{} or later\n  \
         remedy: run this on Debian 12 or later, or use docker build",
        MIN_GLIBC.0,
        MIN_GLIBC.1
    );
    Ok(())
}

/// Copies the loader and these libraries to the places where the loader looks for them.
fn copy_libraries(files: &Path, libraries: &[&str], root: &Path) -> anyhow::Result<()> {
    for path in tree(files)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let is_loader = name.starts_with("ld-linux");
        // The link of the loader is absolute, and would resolve to the loader of this machine, which may have another version.
        if !(is_loader || libraries.contains(&name)) || path.is_symlink() {
            continue;
        }
        let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        if is_loader {
            // The binary names the loader by this path.
            let folder = if name.contains("x86-64") { "lib64" } else { "lib" };
            write(root, &format!("{folder}/{name}"), &content, 0o755)?;
        } else {
            // The loader looks here without a cache.
            write(root, &format!("usr/lib/{name}"), &content, 0o644)?;
        }
    }
    let missing: Vec<&&str> =
        libraries.iter().filter(|name| !root.join("usr/lib").join(name).is_file()).collect();
    anyhow::ensure!(
        missing.is_empty(),
        "the packages have no files {missing:?}\n  remedy: run this on Debian 12 or later, where they are no links"
    );
    // Where /lib is a link to /usr/lib, as in Debian, the loader is found in either place.
    if !root.join("lib").exists() {
        symlink("usr/lib", root.join("lib")).context("linking lib")?;
    }
    Ok(())
}

/// All certificates in one file, in the order of their names.
fn certificate_bundle(folder: &Path) -> anyhow::Result<String> {
    let mut files: Vec<PathBuf> =
        tree(folder)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "crt")).collect();
    files.sort();
    let mut bundle = String::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        bundle.push_str(text.trim_end());
        bundle.push('\n');
    }
    anyhow::ensure!(bundle.contains("BEGIN CERTIFICATE"), "{CERTIFICATES} holds no certificate");
    Ok(bundle)
}

/// All files below a folder.
fn tree(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            files.extend(tree(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

fn write(root: &Path, name: &str, content: &[u8], mode: u32) -> anyhow::Result<()> {
    let path = root.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
    }
    fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("setting the mode of {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_that_cannot_load_the_program_is_refused() {
        for version in ["2.36-9+deb12u14", "2.41-12", "2.42~rc1-1", "3.0-1"] {
            check_glibc(version).unwrap();
        }
        for version in ["2.35-0ubuntu3.8", "2.31-13+deb11u11", "unknown", "2"] {
            let error = check_glibc(version).unwrap_err().to_string();
            assert!(error.contains("remedy: run this on Debian"), "{error}");
        }
    }
}
