//! `cargo xtask generate`: files that are generated, committed, and compared in CI.
//!
//! ```text
//! autoscaler  the definition of Autoscaler
//! keda        the definitions of KEDA's kinds
//! protobuf    the code of gRPC protocols
//! reference   the reference pages of commands, custom resources and exported metrics
//! scalers     the reference pages of the scalers
//! definition  CustomResourceDefinitions from `.schema` files
//! schema      structural schemas from `.schema` files
//! ```

mod autoscaler;
mod definition;
mod keda;
mod protobuf;
mod reference;
mod scalers;
mod schema;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

/// Writes the generated files.
#[derive(clap::Args)]
pub(crate) struct GenerateArgs {
    /// Write nothing; fail if a committed file differs from what would be written.
    #[arg(long)]
    check: bool,
}

/// Path and content of every generated file.
fn files(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let mut all = Vec::new();
    for (folder, from, definitions) in [
        ("deploy/crds", "xtask/src/generate", autoscaler::definition()?),
        ("deploy/crds/keda", "xtask/src/generate/keda", keda::definitions()?),
    ] {
        files.extend(definitions.iter().map(|definition| {
            let text = api::yaml::to_yaml(&definition.object);
            let head = format!("# Made by `cargo xtask generate` from {from}; do not edit.");
            (format!("{folder}/{}.yaml", definition.name), format!("{head}\n{text}"))
        }));
        all.extend(definitions);
    }
    files.extend(reference::files(root, &all)?);
    files.extend(protobuf::files(root)?);
    files.extend(scalers::files(root)?);
    Ok(files)
}

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut stale = 0;
    for (name, wanted) in files(&root)? {
        let path = root.join(&name);
        if std::fs::read_to_string(&path).is_ok_and(|found| found == wanted) {
            continue;
        }
        if args.check {
            eprintln!("error: {name} is out of date\n  remedy: cargo xtask generate, then commit it");
            stale += 1;
        } else {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("failed to create the folder of {name}"))?;
            }
            std::fs::write(&path, wanted).with_context(|| format!("failed to write {name}"))?;
            println!("{name}: written");
        }
    }
    Ok(if stale == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects of version 0.1.0 may be stored in these versions, so the API server must be able to serve them.
    #[test]
    fn versions_of_0_1_0_are_served() {
        let mut definitions = autoscaler::definition().unwrap();
        definitions.extend(keda::definitions().unwrap());
        for line in include_str!("../../../tests/stored/v0.1.0/served-versions.txt").lines() {
            let (name, version) = line.split_once(' ').unwrap();
            let found = definitions.iter().find(|definition| definition.name == name).unwrap();
            let versions = found.object["spec"]["versions"].as_array().unwrap();
            let is_served = versions.iter().any(|known| known["name"] == version && known["served"] == true);
            assert!(is_served, "{line}");
        }
    }
}
