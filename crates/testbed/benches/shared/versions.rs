//! The binary of an older revision, which is measured beside the new one.

use std::path::PathBuf;
use std::process::Command;

use super::plimsoll::binary;

/// The environment variable that names the binary of the older revision.
const OLD_PROGRAM_VARIABLE: &str = "PLIMSOLL_OLD_PROGRAM";
/// CPU time and memory of the new revision, as a part of those of the old one.
pub(crate) const RATIO_LIMIT: f64 = 1.1;
/// Decisions are not kept, because an older revision may keep only the last ones. The part `recording` of the controller's bench measures
/// what keeping them costs.
pub(crate) const NO_HISTORY: &str = "--history=0s";
/// The columns of the tables.
pub(crate) const COLUMNS: [&str; 2] = ["old", "new"];

/// Which revision a process is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Old,
    New,
}

impl Version {
    /// The binary of this revision.
    pub(crate) fn binary(self) -> PathBuf {
        match self {
            Self::New => binary(),
            Self::Old => {
                let program = std::env::var_os(OLD_PROGRAM_VARIABLE).map(PathBuf::from);
                let program = program.filter(|program| program.exists());
                program.unwrap_or_else(|| {
                    panic!("{OLD_PROGRAM_VARIABLE} must name the binary of the older revision")
                })
            }
        }
    }

    /// Those of these flags that its subcommand has: an older revision lacks some.
    pub(crate) fn known_flags(self, subcommand: &str, flags: &[String]) -> Vec<String> {
        let help = Command::new(self.binary()).args([subcommand, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let is_known = |flag: &&String| help.contains(flag.split('=').next().unwrap_or(flag));
        flags.iter().filter(is_known).cloned().collect()
    }
}
