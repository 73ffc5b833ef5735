//! Fetches packages of PyPI, npm and Maven Central to a separate folder, so that nothing is installed on the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::debian::command;
use super::on_path;
use crate::error::{Attempt, Error, build_failure};
use crate::parts::{PackageManager, Packages, Part};
use crate::progress::Progress;

pub(super) fn fetch(
    part: &Part,
    packages: &Packages,
    draft: &Path,
    progress: &mut Progress,
) -> Result<(), Error> {
    let package = packages.package;
    let (tool, words): (&str, Vec<&str>) = match packages.manager {
        PackageManager::Pip => {
            ("python3", vec!["-m", "pip", "install", "--quiet", "--target", "bin/root", package])
        }
        PackageManager::Npm => {
            let quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
            ("npm", [&["install", "--prefix", "bin/root"][..], &quiet, &[package]].concat())
        }
        PackageManager::Maven | PackageManager::MavenArchive => {
            let pom = draft.join("pom.xml");
            let text = project(package, packages.manager == PackageManager::MavenArchive);
            fs::write(&pom, text).attempt(|| format!("write {}", pom.display()))?;
            let copy = "dependency:copy-dependencies";
            ("mvn", vec!["--quiet", "--batch-mode", copy, "-DoutputDirectory=bin/root"])
        }
    };
    if on_path(tool).is_none() {
        let reason = format!("  {tool} is not installed\n  remedy: install it with your package manager");
        return Err(build_failure(&part.title(), reason));
    }
    crate::error::make_folder(&draft.join("bin/root"))?;
    command(part, &[&[tool][..], &words].concat(), draft, progress)?;
    if packages.manager == PackageManager::MavenArchive {
        let unpack =
            "cd bin/root && tar --extract --gzip --strip-components=1 --file *.tar.gz && rm *.tar.gz";
        command(part, &["sh", "-c", unpack], draft, progress)?;
    }
    for (name, line) in packages.programs {
        let file = draft.join("bin").join(name);
        fs::write(&file, script(line)).attempt(|| format!("write {}", file.display()))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
            .attempt(|| format!("write {}", file.display()))?;
    }
    Ok(())
}

/// An archive with a distribution contains all its dependencies.
const ARCHIVE: &str = "<type>tar.gz</type><classifier>bin</classifier><exclusions><exclusion><groupId>*</groupId>\
                       <artifactId>*</artifactId></exclusion></exclusions>";

/// A Maven project that depends on artifacts, `group:artifact:version` separated by blanks, or on archives of them.
fn project(packages: &str, archive: bool) -> String {
    let more = if archive { ARCHIVE } else { "" };
    let dependencies: Vec<String> = packages
        .split_whitespace()
        .map(|coordinates| {
            let mut words = coordinates.split(':');
            let mut tag = |name: &str| format!("<{name}>{}</{name}>", words.next().unwrap_or_default());
            let artifact = [tag("groupId"), tag("artifactId"), tag("version")].concat();
            format!("<dependency>{artifact}{more}</dependency>")
        })
        .collect();
    let dependencies = dependencies.concat();
    format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>plimsoll.dev</groupId><artifactId>testbed</artifactId>\
         <version>1</version><dependencies>{dependencies}</dependencies></project>\n"
    )
}

fn script(line: &str) -> String {
    format!("#!/bin/sh\nroot=$(dirname \"$(readlink -f \"$0\")\")/root\nexport root\nexec {line} \"$@\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_become_dependencies_of_a_project() {
        let text = project("org.example:server_2.13:4.1.0", false);
        assert!(
            text.contains(
                "<dependency><groupId>org.example</groupId><artifactId>server_2.13</artifactId>\
                 <version>4.1.0</version></dependency>"
            ),
            "{text}"
        );
        let text = project("org.example:server:1 org.example:more:2", true);
        assert!(text.contains("<version>1</version><type>tar.gz</type>"), "{text}");
        assert_eq!(text.matches("<dependency>").count(), 2, "{text}");
    }

    #[test]
    fn scripts_name_the_folder_of_the_package() {
        let text = script("node \"$root\"/a.js");
        assert!(text.ends_with("\nexec node \"$root\"/a.js \"$@\"\n"), "{text}");
    }
}
