//! `cargo xtask upstream diff keda 2.20.2 2.21.0`: what a new release of Kubernetes or KEDA changes for us, from the sources of both
//! releases. docs/upstreams.md says what to do with the result.
//!
//! ```text
//! releases  the modules, the packages that matter and the vectors they affect      the table
//! go_text   tokens of Go                                                           pure
//! gates     feature gates with their stages                                        pure
//! texts     what users see: events, conditions, metrics, flags, errors             pure
//! fields    the fields of resource definitions                                     pure
//! changes   changed files and texts of two folders
//! report    the result
//! ```

mod changes;
mod fields;
mod gates;
mod go_text;
mod releases;
mod report;
#[cfg(test)]
mod tests;
mod texts;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use changes::ModuleChanges;
use releases::Upstream;

/// Compares releases of the programs that Plimsoll replaces.
#[derive(clap::Subcommand)]
pub(crate) enum UpstreamArgs {
    /// List what differs between two releases and concerns us.
    Diff(DiffArgs),
}

#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    /// Whose releases.
    #[arg(value_enum)]
    upstream: Upstream,
    /// The release that is supported, such as 2.20.2 or 1.36.4.
    old: String,
    /// The new release.
    new: String,
    /// Also list texts that belong to no category.
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &UpstreamArgs) -> anyhow::Result<ExitCode> {
    let UpstreamArgs::Diff(args) = args;
    let mut all = Vec::new();
    for module in args.upstream.modules() {
        let folder = |release: &str| -> anyhow::Result<PathBuf> {
            let named = format!("{}@{}", module.path, module.version(release));
            eprintln!("fetching {named}");
            testbed::go_module(&named).with_context(|| format!("failed to fetch {named}"))
        };
        let (old, new) = (folder(&args.old)?, folder(&args.new)?);
        all.push((module, ModuleChanges::between(&old, &new, module.packages)?));
    }
    print!("{}", report::text(&all, args.all));
    Ok(ExitCode::SUCCESS)
}
