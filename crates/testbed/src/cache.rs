//! The cache of parts: one folder for all clones on the machine. Each part is built once and then never changed.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::CACHE_VARIABLE;
use crate::error::{Attempt, Error, make_folder};
use crate::fetch;
use crate::parts::{Part, Source};
use crate::progress::Progress;

/// The folder of all parts that were built or fetched.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

/// The FNV-1a hash, which is the same in every release of Rust, so that a new compiler does not rebuild Kubernetes.
struct Fingerprint(u64);

impl Cache {
    /// `$PLIMSOLL_CACHE`, else `$XDG_CACHE_HOME/plimsoll`, else `~/.cache/plimsoll`.
    pub fn of_user() -> Result<Self, Error> {
        let root = root(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from));
        root.map(Self::at).ok_or_else(|| Error::Io {
            attempt: format!("find a cache folder (set {CACHE_VARIABLE})"),
            source: std::io::Error::new(
                std::io::ErrorKind::NotFound,
                "neither XDG_CACHE_HOME nor HOME is set",
            ),
        })
    }

    /// A cache in another folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns an error if a part is missing, which names the `arguments` of `cargo xtask real build` that build it.
    pub fn require(&self, part: &Part, arguments: &str) -> Result<(), Error> {
        if complete(&self.root.join("parts").join(key(part)), part) {
            return Ok(());
        }
        Err(Error::NotBuilt { part: part.title(), arguments: arguments.to_owned() })
    }

    /// The folder with the programs of a part, which is built or fetched first if it is missing. Several threads and processes may
    /// call this at the same time: one builds, the others wait.
    pub fn ensure(&self, part: &Part, progress: &mut Progress) -> Result<PathBuf, Error> {
        let folder = self.root.join("parts");
        let home = folder.join(key(part));
        if complete(&home, part) {
            return Ok(home);
        }
        make_folder(&folder)?;
        let lock = lock(&folder, part, progress)?;
        if complete(&home, part) {
            return Ok(home);
        }
        // This process holds the lock, so an existing draft was left by an interrupted build.
        let draft = folder.join(format!("{}.draft", key(part)));
        remove(&draft)?;
        remove(&home)?;
        make_folder(&draft)?;
        progress.begin(&part.title());
        let fetched = fetch::part(part, &draft, progress);
        progress.end(fetched.is_ok());
        if let Err(error) = fetched {
            remove(&draft)?;
            return Err(error);
        }
        fs::rename(draft.join("bin"), &home).attempt(|| format!("move {} into place", part.title()))?;
        remove(&draft)?;
        drop(lock);
        Ok(home)
    }
}

fn root(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    variable(CACHE_VARIABLE)
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("plimsoll")))
        .or_else(|| Some(variable("HOME")?.join(".cache").join("plimsoll")))
}

/// The name of a part in the cache. It is a hash of all inputs of the build.
pub fn key(part: &Part) -> String {
    let mut print = Fingerprint(0xcbf2_9ce4_8422_2325);
    print.add(std::env::consts::OS);
    print.add(std::env::consts::ARCH);
    match part.source {
        Source::Go(module) => {
            print.add(module.manifest);
            print.add(module.sums);
            for flag in module.link_flags {
                print.add(flag);
            }
            for (package, name) in module.programs.iter().chain(module.files) {
                print.add(package);
                print.add(name);
            }
        }
        Source::GoRelease(release) => {
            print.add(release.module);
            for flag in release.link_flags {
                print.add(flag);
            }
            for (package, name) in release.programs {
                print.add(package);
                print.add(name);
            }
        }
        Source::Debian { package, programs } => {
            print.add(package);
            for name in programs {
                print.add(name);
            }
            print.add(&release());
        }
        Source::DebianTree { packages, programs } => {
            for package in packages {
                print.add(package);
            }
            for program in programs {
                print.add(program.name);
                print.add(program.path);
                print.add(program.before);
            }
            print.add(&release());
        }
        Source::Packages(packages) => {
            print.add(packages.package);
            for (name, line) in packages.programs {
                print.add(name);
                print.add(line);
            }
        }
    }
    format!("{}-{}-{:016x}", part.name, part.version, print.0)
}

impl Fingerprint {
    fn add(&mut self, text: &str) {
        // The byte at the end makes the hashes of ("ab", "c") and ("a", "bc") differ.
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The name and release of this operating system, because another one has other packages.
fn release() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("ID=") || line.starts_with("VERSION_ID=")).collect()
}

fn lock(folder: &Path, part: &Part, progress: &mut Progress) -> Result<File, Error> {
    let path = folder.join(format!("{}.lock", key(part)));
    let file = File::create(&path).attempt(|| format!("write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {
            progress.note(&format!("{}: another process is building it; waiting", part.title()));
        }
        Err(TryLockError::Error(error)) => Err(error).attempt(|| format!("lock {}", path.display()))?,
    }
    file.lock().attempt(|| format!("lock {}", path.display()))?;
    Ok(file)
}

fn complete(home: &Path, part: &Part) -> bool {
    part.programs().iter().all(|name| home.join(name).is_file())
}

fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).attempt(|| format!("remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
