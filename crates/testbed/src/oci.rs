//! Layer, configuration, manifest and index of an image, as the OCI image specification lays them out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::output;

/// An image that was written.
pub(super) struct Image {
    /// The digest of its manifest.
    pub(super) digest: String,
    pub(super) layer_bytes: u64,
}

/// Writes the layout to `folder/oci`.
pub(super) fn write(folder: &Path, root: &Path, name: &str) -> anyhow::Result<Image> {
    let blobs = folder.join("oci/blobs/sha256");
    fs::create_dir_all(&blobs).with_context(|| format!("creating {}", blobs.display()))?;
    let archive = archive(folder, root)?;
    let unpacked = digest(&fs::read(&archive)?);
    output(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(&archive))?;
    let layer = add(&blobs, &fs::read(archive.with_extension("tar.gz"))?)?;
    fs::remove_file(archive.with_extension("tar.gz")).context("removing the layer's archive")?;
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "User": "65532:65532",
            "Entrypoint": ["/usr/local/bin/plimsoll"],
            "Env": ["PATH=/usr/local/bin"],
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": "plimsoll",
                "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [unpacked]},
    });
    let config = add(&blobs, &serde_json::to_vec(&config)?)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor("application/vnd.oci.image.config.v1+json"),
        "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar+gzip")],
    });
    let manifest = add(&blobs, &serde_json::to_vec(&manifest)?)?;
    let mut entry = manifest.descriptor("application/vnd.oci.image.manifest.v1+json");
    // containerd names an imported image by the first, other tools by the second.
    let names = json!({
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.rsplit(':').next().unwrap_or(name),
    });
    if let Some(entry) = entry.as_object_mut() {
        entry.insert("annotations".to_owned(), names);
    }
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]
    });
    fs::write(folder.join("oci/index.json"), serde_json::to_vec(&index)?).context("writing index.json")?;
    let version = br#"{"imageLayoutVersion":"1.0.0"}"#;
    fs::write(folder.join("oci/oci-layout"), version).context("writing oci-layout")?;
    Ok(Image { digest: manifest.digest, layer_bytes: layer.bytes })
}

/// A tar archive of the files whose bytes depend on nothing but the files.
fn archive(folder: &Path, root: &Path) -> anyhow::Result<PathBuf> {
    let archive = folder.join("layer.tar");
    let fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"];
    output(
        Command::new("tar")
            .args(fixed)
            .arg("--create")
            .arg("--file")
            .arg(&archive)
            .arg("-C")
            .arg(root)
            .arg("."),
    )?;
    Ok(archive)
}

struct Blob {
    digest: String,
    bytes: u64,
}

impl Blob {
    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": self.digest, "size": self.bytes})
    }
}

fn add(blobs: &Path, content: &[u8]) -> anyhow::Result<Blob> {
    let digest = digest(content);
    let name = digest.trim_start_matches("sha256:");
    fs::write(blobs.join(name), content).with_context(|| format!("writing the blob {name}"))?;
    Ok(Blob { digest, bytes: content.len() as u64 })
}

fn digest(content: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(content) {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The name that OCI uses for the architecture of this machine.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
