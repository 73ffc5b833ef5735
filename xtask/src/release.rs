//! `cargo xtask release`: writes the files of a release: archives with completions and manual pages, images with their bills of
//! materials, chart, manifests, checksums and the plugin manifest of krew.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use sha2::{Digest as _, Sha256};
use testbed::Helm;

use crate::help::{CommandHelp, help_of_all};
use crate::image::{LAYOUT, SBOM};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const CHART: &str = "charts/plimsoll/Chart.yaml";
/// The image in the plain manifests, without its tag; the tag is the word VERSION there.
const IMAGE: &str = "ghcr.io/plimsoll/plimsoll";
/// The last file that is written; a folder with it is a release.
const CHECKSUMS: &str = "SHA256SUMS";
/// What is in every archive beside the program.
const ARCHIVE_TEXTS: [&str; 3] = ["LICENSE", "README.md", "CHANGELOG.md"];
/// Shells, and the names under which they look for completions.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "plimsoll.bash"), ("zsh", "_plimsoll"), ("fish", "plimsoll.fish")];

/// Links to the program: the plugin of kubectl, and the program that kubectl starts to complete its command lines.
const LINKS: [&str; 2] = ["kubectl-plimsoll", "kubectl_complete-plimsoll"];

/// Writes the files of a release.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo build --release --package plimsoll && cargo xtask release --program linux-amd64=target/release/plimsoll
  cargo xtask release --program linux-amd64=… --program darwin-arm64=… --url https://example.com/releases/v0.1.0
  cargo xtask release --program linux-amd64=… --image linux-amd64=target/image   # with the image that make image wrote
  cargo xtask release --program linux-amd64=… --snapshot                         # try it between two releases

The first program must run on this machine: it prints the completions for shells and the manual pages. Programs for other systems are built there, or
with a toolchain for them; this command packs what it is given.")]
pub(crate) struct ReleaseArgs {
    /// A program and its platform, such as linux-amd64=target/…/plimsoll; may be repeated.
    #[arg(long = "program", value_name = "PLATFORM=FILE", value_parser = platform, required = true)]
    programs: Vec<(String, PathBuf)>,
    /// An image and its platform, such as linux-amd64=target/image, as `make image` writes it with its bill of materials; may be repeated.
    #[arg(long = "image", value_name = "PLATFORM=FOLDER", value_parser = platform)]
    images: Vec<(String, PathBuf)>,
    /// Allow a version that has no section in CHANGELOG.md, to try the files of the next release.
    #[arg(long)]
    snapshot: bool,
    /// Where the archives will be found; without it no plugin manifest is written.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The folder of the release; an earlier release in it is replaced.
    #[arg(long, value_name = "FOLDER", default_value = "target/release-files")]
    output: PathBuf,
}

/// An archive that was written.
struct Archive {
    platform: String,
    file: String,
    digest: String,
}

pub(crate) fn run(args: &ReleaseArgs) -> anyhow::Result<ExitCode> {
    let changes = fs::read_to_string("CHANGELOG.md").context("reading CHANGELOG.md")?;
    if !args.snapshot && !has_section(&changes, VERSION) {
        bail!(
            "CHANGELOG.md has no section for {VERSION}\n  remedy: name the section Unreleased after it, or try the files with --snapshot"
        );
    }
    let chart = fs::read_to_string(CHART).with_context(|| format!("reading {CHART}"))?;
    if !is_of_version(&chart, VERSION) {
        bail!("{CHART} has another version than {VERSION}\n  remedy: set version and appVersion there");
    }
    let output = &args.output;
    if output.exists() {
        if !output.join(CHECKSUMS).exists() {
            bail!(
                "{} exists and holds no release\n  remedy: remove it, or name another folder with --output",
                output.display()
            );
        }
        fs::remove_dir_all(output).with_context(|| format!("removing {}", output.display()))?;
    }
    fs::create_dir_all(output).with_context(|| format!("creating {}", output.display()))?;
    let (_, host) = args.programs.first().context("no program")?;
    let archives = args
        .programs
        .iter()
        .map(|(platform, program)| archive(output, platform, program, host))
        .collect::<anyhow::Result<Vec<Archive>>>()?;
    for (platform, image) in &args.images {
        pack_image(output, platform, image)?;
    }
    let helm = Helm::ensure()?.helm;
    succeed(Command::new(helm).args(["package", "charts/plimsoll", "--destination"]).arg(output))?;
    let manifests = output.join("deploy");
    copy_manifests(Path::new("deploy"), &manifests)?;
    pack(&output.join(format!("plimsoll-{VERSION}-manifests.tar.gz")), output, &["deploy"])?;
    fs::remove_dir_all(&manifests).with_context(|| format!("removing {}", manifests.display()))?;
    if let Some(url) = &args.url {
        let path = output.join("krew.yaml");
        fs::write(&path, plugin(url, &archives)).with_context(|| format!("writing {}", path.display()))?;
    }
    let sums = checksums(output)?;
    fs::write(output.join(CHECKSUMS), &sums).with_context(|| format!("writing {CHECKSUMS}"))?;
    print!("{sums}");
    Ok(ExitCode::SUCCESS)
}

/// Packs a program with its links, texts and completions.
fn archive(output: &Path, platform: &str, program: &Path, host: &Path) -> anyhow::Result<Archive> {
    let name = format!("plimsoll-{VERSION}-{platform}");
    let folder = output.join(&name);
    let completions = folder.join("completions");
    fs::create_dir_all(&completions).with_context(|| format!("creating {}", completions.display()))?;
    fs::copy(program, folder.join("plimsoll")).with_context(|| format!("copying {}", program.display()))?;
    for link in LINKS {
        symlink("plimsoll", folder.join(link)).with_context(|| format!("linking {link}"))?;
    }
    for text in ARCHIVE_TEXTS {
        fs::copy(text, folder.join(text)).with_context(|| format!("copying {text}"))?;
    }
    for (shell, file) in COMPLETIONS {
        let script = succeed(Command::new(host).args(["completion", shell]))?;
        fs::write(completions.join(file), script).with_context(|| format!("writing {file}"))?;
    }
    write_manual(host, &folder.join("man"))?;
    let file = format!("{name}.tar.gz");
    pack(&output.join(&file), output, &[&name])?;
    fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    let digest = digest(&output.join(&file))?;
    Ok(Archive { platform: platform.to_owned(), file, digest })
}

/// Packs the OCI layout of an image, whose layers are compressed already, and copies its bill of materials.
fn pack_image(output: &Path, platform: &str, image: &Path) -> anyhow::Result<()> {
    let name = format!("plimsoll-{VERSION}-image-{platform}");
    let bill = image.join(SBOM);
    fs::copy(&bill, output.join(format!("{name}.cdx.json"))).with_context(|| {
        format!(
            "copying {}\n  remedy: make image, or cargo xtask image without --without-sbom",
            bill.display()
        )
    })?;
    pack(&output.join(format!("{name}.tar")), &image.join(LAYOUT), &["."])
}

/// Copies the plain manifests, with the image of this release.
fn copy_manifests(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_manifests(&path, &copy)?;
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let text = text.replace(&format!("{IMAGE}:VERSION"), &format!("{IMAGE}:{VERSION}"));
        fs::write(&copy, text).with_context(|| format!("writing {}", copy.display()))?;
    }
    Ok(())
}

/// Writes a manual page for the program and for each of its commands.
fn write_manual(host: &Path, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    for CommandHelp { words, text } in help_of_all(host)? {
        let name = words.join("-");
        fs::write(folder.join(format!("{name}.1")), page(&name, &text))
            .with_context(|| format!("writing {name}.1"))?;
    }
    Ok(())
}

/// A manual page with the text of `--help`, as it is.
fn page(name: &str, help: &str) -> String {
    let escaped = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A line that begins like this would be a request of the formatter.
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
    };
    let title = help.lines().next().unwrap_or_default();
    let body: Vec<String> = help.lines().map(escaped).collect();
    format!(
        ".TH {upper} 1 \"\" \"plimsoll {VERSION}\"\n.SH NAME\n{name} \\- {title}\n.SH DESCRIPTION\n.nf\n{body}\n.fi\n",
        upper = name.to_uppercase(),
        title = escaped(title),
        body = body.join("\n"),
    )
}

/// An archive whose bytes depend on nothing but the files, compressed if its name ends in `.gz`.
fn pack(archive: &Path, folder: &Path, names: &[&str]) -> anyhow::Result<()> {
    let fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"];
    let mut command = Command::new("tar");
    command.args(fixed);
    if archive.extension().is_some_and(|extension| extension == "gz") {
        command.args(["--use-compress-program", "gzip --best --no-name"]);
    }
    command.args(["--create", "--file"]).arg(archive).arg("-C").arg(folder).args(names);
    succeed(&mut command).map(drop)
}

fn succeed(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.env("LC_ALL", "C").output().with_context(|| format!("running {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

fn digest(path: &Path) -> anyhow::Result<String> {
    let content = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut text = String::new();
    for byte in Sha256::digest(content) {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

/// All files of a folder, as `sha256sum` prints them.
fn checksums(folder: &Path) -> anyhow::Result<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut lines = String::new();
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        writeln!(lines, "{}  {name}", digest(&path)?)?;
    }
    Ok(lines)
}

/// The plugin manifest of krew, with which `kubectl plimsoll` is installed.
fn plugin(url: &str, archives: &[Archive]) -> String {
    let mut text = format!(
        "apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: plimsoll
spec:
  version: v{VERSION}
  shortDescription: Explain, simulate and test autoscaling
  platforms:
"
    );
    for Archive { platform, file, digest } in archives {
        let (os, arch) = platform.split_once('-').unwrap_or((platform.as_str(), ""));
        text += &format!(
            "  - selector: {{matchLabels: {{os: {os}, arch: {arch}}}}}
    uri: {url}/{file}
    sha256: {digest}
    bin: plimsoll
    files:
    - {{from: '*/plimsoll', to: .}}
    - {{from: '*/LICENSE', to: .}}
",
            url = url.trim_end_matches('/')
        );
    }
    text
}

/// Whether a changelog describes a version.
fn has_section(changes: &str, version: &str) -> bool {
    changes.lines().filter_map(|line| line.strip_prefix("## ")).any(|title| {
        let first = title.split_whitespace().next().unwrap_or_default();
        first.trim_matches(['[', ']']).trim_start_matches('v') == version
    })
}

/// Whether a chart and the image that it installs have a version.
fn is_of_version(chart: &str, version: &str) -> bool {
    let has = |wanted: &str| chart.lines().any(|line| line == wanted);
    has(&format!("version: {version}")) && has(&format!("appVersion: {version}"))
}

fn platform(text: &str) -> anyhow::Result<(String, PathBuf)> {
    let (platform, file) = text.split_once('=').context("expected PLATFORM=FILE")?;
    let known = platform
        .split_once('-')
        .is_some_and(|(os, arch)| ["linux", "darwin"].contains(&os) && ["amd64", "arm64"].contains(&arch));
    if !known {
        bail!("unknown platform {platform:?}; write linux-amd64, linux-arm64, darwin-amd64 or darwin-arm64");
    }
    Ok((platform.to_owned(), file.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_checked() {
        assert_eq!(platform("linux-amd64=a/b").unwrap(), ("linux-amd64".to_owned(), PathBuf::from("a/b")));
        for bad in ["linux-amd64", "windows-amd64=a", "linux=a"] {
            assert!(platform(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn version_needs_a_section() {
        let changes = "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-17)\n\n## [v0.1.0]\n";
        assert!(has_section(changes, "0.2.0") && has_section(changes, "0.1.0"));
        assert!(!has_section(changes, "0.3.0") && !has_section(changes, "0.2"));
    }

    #[test]
    fn changelog_has_a_section_for_the_version_of_the_program() {
        let changes = fs::read_to_string(repository().join("CHANGELOG.md")).unwrap();
        let section = if VERSION.ends_with("-dev") { "Unreleased" } else { VERSION };
        assert!(has_section(&changes, section), "{section}");
    }

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn chart_has_the_version_of_the_program() {
        let chart = fs::read_to_string(repository().join(CHART)).unwrap();
        assert!(is_of_version(&chart, VERSION), "{chart}");
        assert!(!is_of_version("version: 1.0.0\nappVersion: 0.9.0\n", "1.0.0"));
    }

    #[test]
    fn manifests_of_a_release_name_its_image() {
        let copy = std::env::temp_dir().join(format!("plimsoll-manifests-{}", std::process::id()));
        copy_manifests(&repository().join("deploy"), &copy).unwrap();
        let controller = fs::read_to_string(copy.join("3-controller.yaml")).unwrap();
        assert!(controller.contains(&format!("image: {IMAGE}:{VERSION}\n")), "{controller}");
        let metrics = fs::read_to_string(copy.join("metrics/2-metrics.yaml")).unwrap();
        assert!(!metrics.contains(":VERSION"), "{metrics}");
        fs::remove_dir_all(&copy).unwrap();
    }

    #[test]
    fn manual_has_the_text_of_the_help() {
        let help = "Scales.\n\nCommands:\n  up    Run a cluster and watch\n        it\n  why   Explain\n  help  Print\n\n.x --at C:\\\n";
        let page = page("plimsoll", help);
        assert!(page.starts_with(".TH PLIMSOLL 1 "), "{page}");
        assert!(page.contains("\n.SH NAME\nplimsoll \\- Scales.\n"), "{page}");
        assert!(page.contains("\n\\&.x \\-\\-at C:\\e\n.fi\n"), "{page}");
    }

    #[test]
    fn plugin_manifest_names_every_archive() {
        let archive = |platform: &str| Archive {
            platform: platform.to_owned(),
            file: format!("plimsoll-{platform}.tar.gz"),
            digest: "ab".repeat(32),
        };
        let text = plugin("https://example.com/v1/", &[archive("linux-amd64"), archive("darwin-arm64")]);
        assert!(text.contains("{os: darwin, arch: arm64}"), "{text}");
        assert!(text.contains("uri: https://example.com/v1/plimsoll-linux-amd64.tar.gz\n"), "{text}");
    }
}
