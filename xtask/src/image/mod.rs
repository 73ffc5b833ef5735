//! `cargo xtask image`: writes the container image as an OCI layout, without a container engine.
//!
//! ```text
//! rootfs  the files of the image: the binary, glibc and CA certificates of Debian
//! sbom    the bill of materials (CycloneDX)
//! ```
//!
//! The same input gives the same digest: files have a fixed order, owner, mode and time.

mod rootfs;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use testbed::oci::{self, ImageConfig};

/// The OCI layout in the folder of an image; it is made first, so that an interrupted run can be repeated.
pub(crate) const LAYOUT: &str = "oci";
/// The bill of materials in the folder of an image.
pub(crate) const SBOM: &str = "sbom.cdx.json";
/// The maximum compressed size of the published image.
const MAX_LAYER_BYTES: u64 = 30_000_000;

/// Writes the container image as an OCI layout.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  make image                                                           # builds the binary first
  cargo xtask image --binary target/debug/plimsoll                     # an image of a debug build
  cargo xtask image --architecture arm64 --output target/image-arm64   # of a program that was built for another machine
  ctr --namespace k8s.io images import <(tar -C target/image/oci -c .) # into containerd of a node")]
pub(crate) struct ImageArgs {
    /// The architecture of the program and of the packages of Debian, such as arm64.
    #[arg(long, value_name = "NAME", default_value = oci::architecture())]
    architecture: String,
    /// The program [default: what `make dist` builds for this architecture].
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The folder of the image; an earlier image in it is replaced.
    #[arg(long, value_name = "FOLDER", default_value = "target/image")]
    output: PathBuf,
    /// The name by which the image is imported.
    #[arg(long, value_name = "NAME", default_value = concat!("ghcr.io/plimsoll/plimsoll:", env!("CARGO_PKG_VERSION")))]
    name: String,
    /// Do not write the bill of materials.
    #[arg(long)]
    without_sbom: bool,
}

pub(crate) fn run(args: &ImageArgs) -> anyhow::Result<ExitCode> {
    let binary = args.binary.clone().map_or_else(|| dist_binary(&args.architecture), Ok)?;
    if !binary.is_file() {
        bail!("there is no {}\n  remedy: make dist, or name a program with --binary", binary.display());
    }
    let root = args.output.join("rootfs");
    make_empty(&args.output)?;
    let packages = rootfs::build(&root, &binary, &args.architecture)?;
    let config = ImageConfig {
        name: &args.name,
        entrypoint: "/usr/local/bin/plimsoll",
        title: "plimsoll",
        version: env!("CARGO_PKG_VERSION"),
        architecture: &args.architecture,
    };
    let image = oci::write(&args.output, &root, &config)?;
    if !args.without_sbom {
        let text = sbom::document(&args.name, &image.digest, &packages)?;
        std::fs::write(args.output.join(SBOM), text).with_context(|| format!("writing {SBOM}"))?;
    }
    println!("{}@{} in {}", args.name, image.digest, args.output.join(LAYOUT).display());
    println!("layer: {:.1} MB compressed", megabytes(image.layer_bytes));
    // A program that is given by flag may have debug information, so its size is not limited.
    if args.binary.is_none() && image.layer_bytes > MAX_LAYER_BYTES {
        bail!(
            "the image is larger than {:.0} MB\n  remedy: leave out what made the program larger, or raise MAX_LAYER_BYTES",
            megabytes(MAX_LAYER_BYTES)
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the image of an earlier run, also of one that was interrupted; refuses a folder with anything else.
fn make_empty(folder: &Path) -> anyhow::Result<()> {
    let layout = folder.join(LAYOUT);
    if folder.exists() {
        let has_files = std::fs::read_dir(folder)
            .with_context(|| format!("reading {}", folder.display()))?
            .next()
            .is_some();
        if has_files && !layout.is_dir() {
            bail!(
                "{} holds files, and no image\n  remedy: remove it, or name another folder with --output",
                folder.display()
            );
        }
        std::fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    std::fs::create_dir_all(&layout).with_context(|| format!("creating {}", layout.display()))
}

#[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The path of the program that `make dist` builds for an architecture (`make dist HOST=…` for another one than that of this machine).
fn dist_binary(architecture: &str) -> anyhow::Result<PathBuf> {
    let target = match architecture {
        own if own == oci::architecture() => {
            let version = output(Command::new("rustc").arg("-vV"))?;
            let host = version.lines().find_map(|line| line.strip_prefix("host: "));
            host.context("rustc names no host")?.to_owned()
        }
        "amd64" => "x86_64-unknown-linux-gnu".to_owned(),
        "arm64" => "aarch64-unknown-linux-gnu".to_owned(),
        other => bail!("unknown architecture {other:?}\n  remedy: name the program with --binary"),
    };
    Ok(Path::new("target").join(target).join("dist/plimsoll"))
}

/// Runs a command, and returns its standard output.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let shown = format!("{command:?}");
    let output = command.env("LC_ALL", "C").output().with_context(|| format!("running {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_without_an_image_is_not_removed() {
        let folder = std::env::temp_dir().join(format!("plimsoll-image-{}", std::process::id()));
        let own = folder.join("notes.txt");
        std::fs::create_dir_all(&folder).unwrap();
        make_empty(&folder).unwrap();
        std::fs::write(&own, "").unwrap();
        // The layout of the first run is there.
        make_empty(&folder).unwrap();
        assert!(!own.exists());
        std::fs::remove_dir(folder.join(LAYOUT)).unwrap();
        std::fs::write(&own, "").unwrap();
        let error = make_empty(&folder).unwrap_err();
        assert!(error.to_string().contains("no image"), "{error}");
        assert!(own.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
