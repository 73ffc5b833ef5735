//! Layer, configuration, manifest and index of an image, as the OCI image specification lays them out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::{Attempt, Error, make_folder};

/// The configuration of an image.
#[derive(Debug, Clone, Copy)]
pub struct ImageConfig<'a> {
    /// The name of the imported image.
    pub name: &'a str,
    /// The program that the image runs.
    pub entrypoint: &'a str,
    /// The title.
    pub title: &'a str,
    /// The version.
    pub version: &'a str,
    /// The architecture of the programs, as Go names it.
    pub architecture: &'a str,
}

/// A written image.
#[derive(Debug, Clone)]
pub struct Image {
    /// The digest of the manifest.
    pub digest: String,
    /// The size of the compressed layer.
    pub layer_bytes: u64,
}

/// Writes an image with the files below `root` as an OCI layout to `folder/oci`. The same files give the same digest.
pub fn write(folder: &Path, root: &Path, image: &ImageConfig<'_>) -> Result<Image, Error> {
    let blobs = folder.join("oci/blobs/sha256");
    make_folder(&blobs)?;
    let archive = archive(folder, root)?;
    let unpacked = digest(&read(&archive)?);
    run(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(&archive))?;
    let compressed = archive.with_extension("tar.gz");
    let layer = add(&blobs, &read(&compressed)?)?;
    fs::remove_file(&compressed).attempt(|| format!("remove {}", compressed.display()))?;
    let config = json!({
        "architecture": image.architecture,
        "os": "linux",
        "config": {
            "User": "65532:65532",
            "Entrypoint": [image.entrypoint],
            "Env": ["PATH=/usr/local/bin"],
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": image.title,
                "org.opencontainers.image.version": image.version,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [unpacked]},
    });
    let config = add(&blobs, config.to_string().as_bytes())?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor("application/vnd.oci.image.config.v1+json"),
        "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar+gzip")],
    });
    let manifest = add(&blobs, manifest.to_string().as_bytes())?;
    let mut entry = manifest.descriptor("application/vnd.oci.image.manifest.v1+json");
    // containerd names an imported image by the first, other tools by the second.
    let names = json!({
        "io.containerd.image.name": image.name,
        "org.opencontainers.image.ref.name": image.name.rsplit(':').next().unwrap_or(image.name),
    });
    if let Some(entry) = entry.as_object_mut() {
        entry.insert("annotations".to_owned(), names);
    }
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]
    });
    put(&folder.join("oci/index.json"), index.to_string().as_bytes())?;
    put(&folder.join("oci/oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    Ok(Image { digest: manifest.digest, layer_bytes: layer.bytes })
}

/// A tar archive of files, whose bytes depend only on the files.
fn archive(folder: &Path, root: &Path) -> Result<PathBuf, Error> {
    let archive = folder.join("layer.tar");
    let fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"];
    run(Command::new("tar")
        .args(fixed)
        .arg("--create")
        .arg("--file")
        .arg(&archive)
        .arg("-C")
        .arg(root)
        .arg("."))?;
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

fn add(blobs: &Path, content: &[u8]) -> Result<Blob, Error> {
    let digest = digest(content);
    let name = digest.trim_start_matches("sha256:");
    put(&blobs.join(name), content)?;
    Ok(Blob { digest, bytes: content.len() as u64 })
}

fn put(path: &Path, content: &[u8]) -> Result<(), Error> {
    fs::write(path, content).attempt(|| format!("write {}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).attempt(|| format!("read {}", path.display()))
}

/// Runs a command, and returns an error if it fails.
fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").output().attempt(|| format!("run {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    let output = format!("  {program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Err(Error::Build { part: "an image".to_owned(), output })
}

fn digest(content: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(content) {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The name that OCI and Debian use for the architecture of this machine.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
