//! Files that are made from code, committed, and compared in CI.
//!
//! ```text
//! autoscaler  the definition of our own kind
//! keda        the definitions of KEDA's kinds
//! protobuf    the code of gRPC protocols
//! scalers     the reference pages of the scalers
//! status      the part that it shares with autoscaling/v2
//! schema      the parts such a definition is put together from
//! ```

mod autoscaler;
mod keda;
mod protobuf;
mod scalers;
mod schema;
mod status;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

/// `cargo xtask generate`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a committed file differs from what would be written.
    #[arg(long)]
    check: bool,
}

/// Every file with what belongs into it.
fn files(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let definition = api::yaml::to_yaml(&autoscaler::definition());
    let mut files = vec![(
        "deploy/crds/autoscalers.plimsoll.dev.yaml".to_owned(),
        format!("# Made by `cargo xtask generate` from xtask/src/generate; do not edit.\n{definition}"),
    )];
    files.extend(keda::files()?);
    files.extend(protobuf::files(root)?);
    files.extend(scalers::files());
    Ok(files)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut stale = 0;
    for (name, wanted) in files(&root)? {
        let path = root.join(&name);
        if std::fs::read_to_string(&path).is_ok_and(|found| found == wanted) {
            continue;
        }
        if args.check {
            eprintln!(
                "error: {name} is not what the code says\n  remedy: cargo xtask generate, then commit it"
            );
            stale += 1;
        } else {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("failed to make a place for {name}"))?;
            }
            std::fs::write(&path, wanted).with_context(|| format!("failed to write {name}"))?;
            println!("{name}: written");
        }
    }
    Ok(if stale == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
