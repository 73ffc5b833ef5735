//! The bill of materials of the image: crates in the binary and packages of Debian, as CycloneDX 1.5.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use super::output;
use super::rootfs::DebianPackage;

/// The document for an image with this digest.
pub(super) fn document(name: &str, digest: &str, packages: &[DebianPackage]) -> anyhow::Result<String> {
    let tree =
        ["tree", "--locked", "--package", "plimsoll", "--no-default-features", "--features", "jemalloc"];
    let shown = ["--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let listed = output(Command::new("cargo").args(tree).args(shown))?;
    Ok(serde_json::to_string_pretty(&bill(name, digest, &listed, packages))? + "\n")
}

/// The bill of an image with the crates that `cargo tree` listed.
fn bill(name: &str, digest: &str, listed: &str, packages: &[DebianPackage]) -> Value {
    let mut components: Vec<Value> = crates(listed)
        .into_iter()
        .map(|(name, version)| component("library", "cargo", &name, &version))
        .collect();
    components.extend(
        packages.iter().map(|package| component("library", "deb/debian", &package.name, &package.version)),
    );
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "container", "name": name, "version": env!("CARGO_PKG_VERSION"),
            "hashes": [{"alg": "SHA-256", "content": digest.trim_start_matches("sha256:")}],
        }},
        "components": components,
    })
}

fn component(type_: &str, source: &str, name: &str, version: &str) -> Value {
    json!({"type": type_, "name": name, "version": version, "purl": format!("pkg:{source}/{name}@{version}")})
}

/// Names and versions in the output of `cargo tree`: `serde v1.0.228 (proc-macro) (*)`.
fn crates(listed: &str) -> BTreeSet<(String, String)> {
    let split = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some((name.to_owned(), version.to_owned()))
    };
    listed.lines().filter_map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sbom_names_crates_packages_and_the_digest() {
        let libc = DebianPackage { name: "libc6".to_owned(), version: "2.41-12".to_owned() };
        let bill = bill("plimsoll:1", "sha256:0a1b", "serde v1.0.228\n", &[libc]);
        assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&json!("CycloneDX"), &json!("1.5")));
        assert_eq!(bill["metadata"]["component"]["hashes"][0]["content"], "0a1b");
        let urls: Vec<&Value> =
            bill["components"].as_array().unwrap().iter().map(|component| &component["purl"]).collect();
        assert_eq!(urls, ["pkg:cargo/serde@1.0.228", "pkg:deb/debian/libc6@2.41-12"]);
    }

    #[test]
    fn crates_are_listed_once() {
        let listed = "plimsoll v0.1.0 (/src/crates/cli)\nserde v1.0.228\nserde v1.0.228 (*)\nserde_derive v1.0.228 (proc-macro)\n";
        let names: Vec<String> = crates(listed).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["plimsoll", "serde", "serde_derive"]);
    }
}
