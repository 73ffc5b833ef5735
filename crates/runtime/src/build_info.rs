//! Which build of the program this is.

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The git revision, where the build was given one. It is not read from git: each commit would compile everything again, and an archive
/// of the sources has no repository.
pub const REVISION: Option<&str> = option_env!("PLIMSOLL_REVISION");
