//! `plimsoll version`: which build this is.

use runtime::build_info;
use serde::Serialize;

use crate::failure::CommandResult;
use crate::output::{self, Format};

/// Print the version and the git revision of this program
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  plimsoll version
  plimsoll version -o json

The revision is known where the build was given one (docs/releasing.md). Servers export both as plimsoll_build_info.")]
pub(crate) struct VersionArgs {
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// What is printed.
#[derive(Serialize)]
struct ProgramVersion {
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'static str>,
}

pub(crate) fn run(args: &VersionArgs) -> CommandResult {
    let found = ProgramVersion { version: build_info::VERSION, revision: build_info::REVISION };
    match args.output {
        Format::Table | Format::Wide => output::text_out(&found.line()),
        format => output::value(format, &found),
    }
}

impl ProgramVersion {
    fn line(&self) -> String {
        match self.revision {
            Some(revision) => format!("plimsoll {} (revision {revision})\n", self.version),
            None => format!("plimsoll {}\n", self.version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revision_is_printed_where_it_is_known() {
        let built = ProgramVersion { version: "1.2.3", revision: Some("abc") };
        assert_eq!(built.line(), "plimsoll 1.2.3 (revision abc)\n");
        assert_eq!(ProgramVersion { revision: None, ..built }.line(), "plimsoll 1.2.3\n");
    }
}
