//! Reads input files and writes output files atomically.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use api::yaml::SourceFile;

use crate::failure::{self, Failure};

/// The maximum size of an input file, a guard against wrong files.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Reads a file; `-` is standard input, which is refused if it is empty: the command before the pipe has failed, and its exit code is
/// lost.
pub(crate) fn read(path: &Path) -> Result<SourceFile, Failure> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|e| Failure::file("read", Path::new("standard input"), &e))?;
        if bytes.is_empty() {
            return Err(Failure::input("standard input is empty: did the command before the pipe fail?"));
        }
        return Ok(SourceFile::from_bytes("<stdin>", &bytes)?);
    }
    Ok(SourceFile::from_bytes(path.display().to_string(), &bytes(path)?)?)
}

/// Reads several files.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<SourceFile>, Failure> {
    paths.iter().map(|path| read(path)).collect()
}

/// Reads the bytes of a file.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let fail = |e: &std::io::Error| {
        Failure::input(format!("failed to read {}: {}", path.display(), failure::cause(e)))
    };
    let file = File::open(path).map_err(|e| fail(&e))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| fail(&e))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Failure::input(format!("{} is larger than 64 MiB", path.display())));
    }
    Ok(bytes)
}

/// Writes a file atomically: to a temporary file, which is then renamed.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    replace(path, text.as_bytes(), File::options().write(true).create(true).truncate(true))
}

/// Writes bytes as [`write`] does, to a file that only its owner may read.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    replace(path, bytes, &options)
}

/// Writes a file that is opened with `options`.
fn replace(path: &Path, bytes: &[u8], options: &OpenOptions) -> Result<(), Failure> {
    let fail = |e: &std::io::Error| Failure::file("write", path, e);
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let attempt = || -> std::io::Result<()> {
        // A device or a pipe is written in place.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return OpenOptions::new().write(true).open(path)?.write_all(bytes);
        }
        let mut file = options.open(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    };
    attempt().map_err(|error| {
        let _ = std::fs::remove_file(&part);
        fail(&error)
    })
}

/// Checks before the work that a file can be written.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::input(format!("{} is a folder; name a file", path.display())));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Failure::input(format!("there is no folder {}", folder.display())));
    }
    Ok(())
}
