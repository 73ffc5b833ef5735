//! The files of a release, as `cargo xtask release` writes them.

use std::fs::read_to_string;
use std::process::Command;

use testbed::program::TempFolder;

use crate::shared::manifests::{objects, repository};
use crate::shared::program::program;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PLATFORMS: [&str; 2] = ["linux-amd64", "darwin-arm64"];
/// Writes a script that starts our program, which itself takes long to compress when it is not optimized. A shell writes it: a file that
/// this process writes could not be started (`Text file busy`) while another test, which forked meanwhile, holds it open.
const WRITE_STARTER: &str = r#"printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" >"$2" && chmod 755 "$2""#;
const URL: &str = "https://example.com/releases";

/// What a command prints; it must succeed.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn development_version_is_released_only_as_a_snapshot() {
    if !VERSION.ends_with("-dev") {
        return;
    }
    let temp_folder = TempFolder::new().unwrap();
    let output = temp_folder.path("release");
    let mut release = Command::new(program().with_file_name("xtask"));
    release.current_dir(repository()).arg("release").arg("--output").arg(&output);
    let refused = release.arg(format!("--program=linux-amd64={}", program().display())).output().unwrap();
    assert!(!refused.status.success() && !output.exists());
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("CHANGELOG.md has no section") && error.contains("--snapshot"), "{error}");
}

#[test]
fn release_has_archives_images_chart_manifests_checksums_and_a_plugin() {
    let temp_folder = TempFolder::new().unwrap();
    let starter = temp_folder.path("plimsoll");
    printed(Command::new("sh").args(["-c", WRITE_STARTER, "sh"]).arg(program()).arg(&starter));
    let image = temp_folder.path("image");
    std::fs::create_dir_all(image.join("oci")).unwrap();
    std::fs::write(image.join("oci/index.json"), "{}").unwrap();
    std::fs::write(image.join("sbom.cdx.json"), "{}").unwrap();
    let output = temp_folder.path("release");
    let mut release = Command::new(program().with_file_name("xtask"));
    release.current_dir(repository()).arg("release").arg(format!("--url={URL}"));
    release.args(PLATFORMS.map(|platform| format!("--program={platform}={}", starter.display())));
    release.arg("--snapshot").arg(format!("--image=linux-arm64={}", image.display()));
    let sums = printed(release.arg("--output").arg(&output));

    let mut files: Vec<&str> = sums.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    files.sort_unstable();
    let archives = PLATFORMS.map(|platform| format!("plimsoll-{VERSION}-{platform}.tar.gz"));
    let mut expected: Vec<String> = archives.to_vec();
    expected.extend(["krew.yaml".to_owned(), format!("plimsoll-{VERSION}.tgz")]);
    expected.push(format!("plimsoll-{VERSION}-manifests.tar.gz"));
    let image_files =
        ["tar", "cdx.json"].map(|ending| format!("plimsoll-{VERSION}-image-linux-arm64.{ending}"));
    expected.extend(image_files.clone());
    expected.sort_unstable();
    assert_eq!(files, expected);
    printed(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&output));

    let listed =
        |archive: &str| printed(Command::new("tar").arg("--list").arg("--file").arg(output.join(archive)));
    for (archive, platform) in archives.iter().zip(PLATFORMS) {
        let held = listed(archive);
        for file in [
            "plimsoll",
            "kubectl-plimsoll",
            "kubectl_complete-plimsoll",
            "LICENSE",
            "README.md",
            "CHANGELOG.md",
            "completions/plimsoll.bash",
            "completions/_plimsoll",
            "completions/plimsoll.fish",
            "man/plimsoll.1",
            "man/plimsoll-why.1",
            "man/plimsoll-migrate-plan.1",
        ] {
            let path = format!("plimsoll-{VERSION}-{platform}/{file}");
            assert!(held.lines().any(|line| line == path), "{archive} lacks {path}: {held}");
        }
    }
    let chart = listed(&format!("plimsoll-{VERSION}.tgz"));
    // `files/crds` is a link in the repository, and without its files the chart would install no definitions.
    for file in [
        "values.schema.json",
        "files/crds/autoscalers.plimsoll.dev.yaml",
        "files/crds/keda/scaledobjects.keda.sh.yaml",
    ] {
        let path = format!("plimsoll/{file}");
        assert!(chart.lines().any(|line| line == path), "the chart lacks {path}: {chart}");
    }
    assert!(listed(&format!("plimsoll-{VERSION}-manifests.tar.gz")).contains("deploy/3-controller.yaml"));

    assert!(listed(&image_files[0]).lines().any(|line| line == "./index.json"));

    let plugin = objects("krew.yaml", &read_to_string(output.join("krew.yaml")).unwrap()).remove(0);
    assert_eq!(plugin["spec"]["version"], format!("v{VERSION}"));
    let platforms = plugin["spec"]["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), PLATFORMS.len());
    for (platform, archive) in platforms.iter().zip(&archives) {
        assert_eq!(platform["uri"], format!("{URL}/{archive}"));
        let sum = format!("{}  {archive}", platform["sha256"].as_str().unwrap());
        assert!(sums.lines().any(|line| line == sum), "{sum} is not in\n{sums}");
    }
}
