//! Errors of the testbed, with their remedies.

use std::io;
use std::path::{Path, PathBuf};

use crate::CACHE_VARIABLE;
use crate::release::{RELEASE_VARIABLE, UnknownRelease};

/// Why a part could not be built or a control plane could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full.
    #[error(
        "the disk is full: failed to {attempt}\n  remedy: free some space, or let {CACHE_VARIABLE} (what is built), GOCACHE and TMPDIR (what Go keeps meanwhile) name folders on another disk"
    )]
    DiskFull {
        /// The operation that failed.
        attempt: String,
    },
    /// An operation on a file or a process failed.
    #[error("failed to {attempt}")]
    Io {
        /// The operation that failed.
        attempt: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Go is not on the search path.
    #[error(
        "Go is needed to build {part}, and there is no `go` on PATH\n  remedy: install Go {needs} or newer (https://go.dev/dl, or the golang package of your system) and add its bin folder to PATH"
    )]
    NoGo {
        /// The part that was to be built.
        part: String,
        /// The minimum version of Go.
        needs: String,
    },
    /// The Go on the search path is too old and may not fetch a newer one.
    #[error(
        "Go {found} is too old to build {part}\n  remedy: install Go {needs} or newer (https://go.dev/dl), or allow Go to fetch it with GOTOOLCHAIN=auto"
    )]
    OldGo {
        /// The part that was to be built.
        part: String,
        /// The minimum version of Go.
        needs: String,
        /// The output of `go version`.
        found: String,
    },
    /// A release that is not in the table of parts.
    #[error(
        "{name} {release} cannot be built here; known releases: {known}\n  remedy: add it as docs/upstreams.md says"
    )]
    UnknownRelease {
        /// The name of the program.
        name: &'static str,
        /// The requested release.
        release: String,
        /// The releases that can be built.
        known: String,
    },
    /// A part is missing that is built only on request.
    #[error("{part} is not built\n  remedy: run `cargo xtask real build {arguments}`")]
    NotBuilt {
        /// The missing part.
        part: String,
        /// The arguments that build it.
        arguments: String,
    },
    /// Sources or packages could not be fetched.
    #[error(
        "failed to fetch what {part} is made of: the network does not answer\n{output}\n  remedy: check the connection, or set GOPROXY (or apt's proxy) to one that is reachable; what was fetched is kept"
    )]
    NoNetwork {
        /// The part that was to be built.
        part: String,
        /// The last lines of the failed command.
        output: String,
    },
    /// A build failed.
    #[error("failed to build {part}\n{output}")]
    Build {
        /// The part that was to be built.
        part: String,
        /// The last lines of the failed command.
        output: String,
    },
    /// A part from Debian packages was requested on another system.
    #[error(
        "{part} comes from Debian's packages, and there is no `apt-get` here\n  remedy: install it so that {programs} are on PATH"
    )]
    NotDebian {
        /// The part that was to be fetched.
        part: String,
        /// The programs that can be installed instead.
        programs: String,
    },
    /// A component of the control plane did not become ready.
    #[error("{component} {happened}; the end of {log}:\n{tail}", log = log.display())]
    Component {
        /// The name of the component.
        component: &'static str,
        /// The state of the component.
        happened: String,
        /// The path of its log.
        log: PathBuf,
        /// The last lines of its log.
        tail: String,
    },
    /// The release that the environment names cannot be built.
    #[error("{RELEASE_VARIABLE}: {0}")]
    Release(#[from] UnknownRelease),
    /// Real nodes need namespaces, mounts and network devices.
    #[error(
        "real nodes need root, which makes namespaces, mounts and network devices\n  remedy: run the same command as root, or do without --node"
    )]
    NotRoot,
    /// Another control plane of this machine has real nodes.
    #[error(
        "another control plane of this machine has real nodes\n  remedy: end it with `cargo xtask real down`; one at a time can have the addresses"
    )]
    NodesBusy,
    /// Another control plane runs on this state folder.
    #[error("a control plane already runs in {}\n  remedy: use it, or end it with `cargo xtask real down`", .0.display())]
    Busy(PathBuf),
    /// No control plane runs on this state folder.
    #[error("no control plane runs in {}\n  remedy: start one with `cargo xtask real up`", .0.display())]
    NotRunning(PathBuf),
    /// A folder that would be emptied has files that the testbed did not write.
    #[error("{} is not empty and was not made by the testbed\n  remedy: choose a new folder", .0.display())]
    NotOurs(PathBuf),
    /// A certificate could not be created.
    #[error("failed to make a certificate")]
    Certificate(#[source] localkube::access::PkiError),
    /// A kubectl command of a test failed.
    #[error("kubectl {arguments}: {output}")]
    Kubectl {
        /// The arguments of kubectl.
        arguments: String,
        /// The output of kubectl.
        output: String,
    },
}

/// Adds the attempted operation to an `io::Error`.
pub(crate) trait Attempt<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull { attempt: what() },
            _ => Error::Io { attempt: what(), source },
        })
    }
}

/// The cause of a failed fetch or build, from the last lines of its output.
pub(crate) fn build_failure(part: &str, output: String) -> Error {
    const FULL: &[&str] = &["no space left on device", "disk quota exceeded"];
    const OFFLINE: &[&str] = &[
        "no such host",
        "connection refused",
        "connection reset",
        "i/o timeout",
        "tls handshake timeout",
        "network is unreachable",
        "temporary failure",
        "server misbehaving",
        "could not connect",
        "could not resolve",
    ];
    let low = output.to_lowercase();
    let part = part.to_owned();
    if FULL.iter().any(|sign| low.contains(sign)) {
        return Error::DiskFull { attempt: format!("build {part}\n{output}") };
    }
    if OFFLINE.iter().any(|sign| low.contains(sign)) {
        return Error::NoNetwork { part, output };
    }
    Error::Build { part, output }
}

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).attempt(|| format!("read {}", path.display()))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).attempt(|| format!("make the folder {}", path.display()))
}

impl<E: Into<localkube::access::PkiError>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Certificate(error.into())
    }
}

impl Error {
    /// Whether this machine lacks the tools for the real cluster, which is not a failure of a test.
    pub fn is_out_of_reach(&self) -> bool {
        matches!(
            self,
            Self::NoGo { .. }
                | Self::OldGo { .. }
                | Self::NoNetwork { .. }
                | Self::NotDebian { .. }
                | Self::NotBuilt { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_of_a_failed_build_is_classified() {
        let lookup = "go: k8s.io/api@v0.36.4: dial tcp: lookup modules.example.org: no such host";
        assert!(matches!(build_failure("etcd", lookup.into()), Error::NoNetwork { .. }));
        let full = "write /tmp/go-build1/b001/_pkg_.a: no space left on device";
        assert!(matches!(build_failure("etcd", full.into()), Error::DiskFull { .. }));
        let other = "# k8s.io/api\nundefined: x";
        assert!(matches!(build_failure("etcd", other.into()), Error::Build { .. }));
    }

    #[test]
    fn full_disk_has_its_own_error() {
        let full: io::Result<()> = Err(io::ErrorKind::StorageFull.into());
        let error = full.attempt(|| "write x".into()).unwrap_err();
        assert!(error.to_string().contains("PLIMSOLL_CACHE"), "{error}");
        let denied: io::Result<()> = Err(io::ErrorKind::PermissionDenied.into());
        assert!(matches!(denied.attempt(|| "write x".into()), Err(Error::Io { .. })));
    }
}
