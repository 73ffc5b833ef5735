//! Rust code of the gRPC protocols.
//!
//! The code generator (protox, tonic-prost-build) takes a minute to compile and the protocols hardly ever change, so it is behind
//! the feature `protobuf`: `cargo generate-protobuf`. Each generated file names the digest of its protocol, by which `generate
//! --check` finds one that is out of date without the generator.

use std::path::Path;

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};

/// The crate that holds the protocols.
const CRATE: &str = "crates/external-scaler";
/// Each protocol, and the file that is named after its package.
const PROTOCOLS: [(&str, &str); 2] =
    [("externalscaler.proto", "externalscaler.rs"), ("metricsservice.proto", "api.rs")];

/// The protocol of which Plimsoll is also the client.
#[cfg(feature = "protobuf")]
const CALLED_PROTOCOL: &str = "externalscaler.proto";

/// Every generated file with its content. Without the feature `protobuf`, a file whose header names the digest of today's
/// protocol keeps its content.
pub(super) fn files(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    PROTOCOLS
        .into_iter()
        .map(|(protocol, name)| {
            let source = format!("{CRATE}/proto/{protocol}");
            let text =
                std::fs::read(root.join(&source)).with_context(|| format!("failed to read {source}"))?;
            let digest = Sha256::digest(text);
            let digest = u64::from_be_bytes(*digest.first_chunk().context("a digest has 32 bytes")?);
            let header = format!(
                "// Made by `cargo generate-protobuf` from {source} (SHA-256 {digest:016x}); do not edit.\n"
            );
            let path = format!("{CRATE}/src/generated/{name}");
            let content = generate(root, &path, (protocol, name), &header)?;
            Ok((path, content))
        })
        .collect()
}

#[cfg(feature = "protobuf")]
fn generate(root: &Path, _: &str, (protocol, name): (&str, &str), header: &str) -> anyhow::Result<String> {
    // The generator writes into a folder only.
    let folder = root.join("target/protobuf");
    std::fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    let parsed = protox::compile([protocol], [root.join(CRATE).join("proto")])
        .context("failed to parse the protocol")?;
    tonic_prost_build::configure()
        .out_dir(&folder)
        .build_client(protocol == CALLED_PROTOCOL)
        // Ordered maps encode the same message to the same bytes.
        .btree_map(".")
        .compile_fds(parsed)
        .with_context(|| format!("failed to generate code from {protocol}"))?;
    let code =
        std::fs::read_to_string(folder.join(name)).with_context(|| format!("failed to generate {name}"))?;
    Ok(header.to_owned() + &code)
}

#[cfg(not(feature = "protobuf"))]
fn generate(root: &Path, path: &str, _: (&str, &str), header: &str) -> anyhow::Result<String> {
    let found = std::fs::read_to_string(root.join(path)).with_context(|| format!("failed to read {path}"))?;
    anyhow::ensure!(
        found.starts_with(header),
        "{path} was generated from another version of its protocol\n  remedy: cargo generate-protobuf, then commit it"
    );
    Ok(found)
}
