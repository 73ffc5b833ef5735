//! Rust code of the gRPC protocols, without a protobuf compiler on the machine.

use std::path::Path;

use anyhow::Context as _;

/// Where the protocols are.
const FOLDER: &str = "crates/external-scaler";
/// Each protocol, and the file that is named after its package.
const PROTOCOLS: [(&str, &str); 2] =
    [("externalscaler.proto", "externalscaler.rs"), ("metricsservice.proto", "api.rs")];

/// Every file with what belongs into it.
pub(super) fn files(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let folder = root.join(FOLDER);
    // The library only writes into folders.
    let draft = root.join("target/protobuf");
    std::fs::create_dir_all(&draft).with_context(|| format!("failed to make {}", draft.display()))?;
    let names = PROTOCOLS.map(|(protocol, _)| protocol);
    let parsed = protox::compile(names, [folder.join("proto")]).context("failed to read the protocols")?;
    tonic_prost_build::configure()
        .out_dir(&draft)
        // Maps in order: what is sent twice is the same twice.
        .btree_map(".")
        .compile_fds(parsed)
        .context("failed to make code of the protocols")?;
    PROTOCOLS
        .iter()
        .map(|(protocol, name)| {
            let code = std::fs::read_to_string(draft.join(name))
                .with_context(|| format!("failed to make {name}"))?;
            let title =
                format!("// Made by `cargo xtask generate` from {FOLDER}/proto/{protocol}; do not edit.\n");
            Ok((format!("{FOLDER}/src/generated/{name}"), title + &code))
        })
        .collect()
}
