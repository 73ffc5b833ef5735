//! Builds programs of a Go module of this repository or of a published release.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{on_path, run};
use crate::error::{Attempt, Error, build_failure};
use crate::parts::{GoModule, GoRelease, Part, needs};
use crate::progress::Progress;

pub(super) fn build(
    part: &Part,
    module: &GoModule,
    draft: &Path,
    progress: &mut Progress,
) -> Result<(), Error> {
    let title = part.title();
    let files = module.files.iter().copied();
    for (name, text) in files.chain([("go.mod", module.manifest), ("go.sum", module.sums)]) {
        let path = draft.join(name);
        let folder = path.parent().unwrap_or(draft);
        fs::create_dir_all(folder).attempt(|| format!("write {name} of {title}"))?;
        fs::write(path, text).attempt(|| format!("write {name} of {title}"))?;
    }
    check_version(part, module.needs(), draft)?;
    if module.sums.is_empty() {
        let tidy = ["go", "mod", "tidy"].map(OsString::from).into();
        let (status, output) = run(
            tidy,
            |command| environment(command.current_dir(draft)),
            progress,
            |line| understand(line, &mut 0),
        )?;
        if !status.success() {
            return Err(build_failure(&title, output));
        }
    }
    compile(part, module.link_flags, module.programs, draft, draft, progress)
}

/// Builds a published module in the folder of Go's module cache, which is read-only, so that the pinned versions cannot change.
pub(super) fn build_release(
    part: &Part,
    release: &GoRelease,
    draft: &Path,
    progress: &mut Progress,
) -> Result<(), Error> {
    if on_path("go").is_none() {
        return Err(Error::NoGo { part: part.title(), needs: "1.26".to_owned() });
    }
    let named = format!("{}@v{}", release.module, part.version);
    let folder = download(&named, draft)?;
    let manifest = folder.join("go.mod");
    let text = fs::read_to_string(&manifest).attempt(|| format!("read {}", manifest.display()))?;
    check_version(part, needs(&text), &folder)?;
    compile(part, release.link_flags, release.programs, &folder, draft, progress)
}

/// Builds programs in `folder`, and writes them to `draft/bin`.
fn compile(
    part: &Part,
    link_flags: &[&str],
    programs: &[(&str, &str)],
    folder: &Path,
    draft: &Path,
    progress: &mut Progress,
) -> Result<(), Error> {
    let mut packages = 0_usize;
    let (status, output) = run(
        arguments(link_flags, programs, &draft.join("bin")),
        |command| environment(command.current_dir(folder)),
        progress,
        |line| understand(line, &mut packages),
    )?;
    if !status.success() {
        return Err(build_failure(&part.title(), output));
    }
    for (package, name) in programs {
        let (made, wanted) = (draft.join("bin").join(program(package)), draft.join("bin").join(name));
        fs::rename(&made, &wanted).attempt(|| format!("find {name} where Go should have put it"))?;
    }
    Ok(())
}

fn arguments(link_flags: &[&str], programs: &[(&str, &str)], into: &Path) -> Vec<OsString> {
    let mut folder = into.as_os_str().to_owned();
    // Go treats an output path that ends in a slash as a folder.
    folder.push("/");
    let mut arguments: Vec<OsString> = vec!["go".into(), "build".into(), "-v".into(), "-o".into(), folder];
    if !link_flags.is_empty() {
        arguments.extend(["-ldflags".into(), link_flags.join(" ").into()]);
    }
    arguments.extend(programs.iter().map(|(package, _)| OsString::from(*package)));
    arguments
}

/// The error of a failed module download.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct DownloadError(String);

/// The folder of a module (`path@version`) in Go's module cache, which is fetched first if it is missing. `workspace` is a folder outside of any
/// module.
pub(crate) fn download(named: &str, workspace: &Path) -> Result<PathBuf, Error> {
    let mut command = Command::new("go");
    environment(command.args(["mod", "download", "-json", named]).current_dir(workspace));
    let output = command.output().attempt(|| "run go mod download".into())?;
    downloaded(&output.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        build_failure(named, format!("  go mod download: {error}\n  {}", said.trim()))
    })
}

/// Parses the output of `go mod download -json` for one module.
fn downloaded(said: &[u8]) -> Result<PathBuf, DownloadError> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Download {
        #[serde(default)]
        dir: PathBuf,
        #[serde(default)]
        error: String,
    }
    match serde_json::from_slice::<Download>(said) {
        Ok(Download { dir, error }) if error.is_empty() && !dir.as_os_str().is_empty() => Ok(dir),
        Ok(Download { error, .. }) => Err(DownloadError(error)),
        Err(error) => Err(DownloadError(format!("unexpected output: {error}"))),
    }
}

/// Removes settings of the user that would change what is built; Go proxies and caches of the user are kept.
fn environment(command: &mut Command) {
    command.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=readonly -buildvcs=false").env("GOWORK", "off");
    command.env_remove("GOOS").env_remove("GOARCH").env_remove("GOEXPERIMENT");
}

fn check_version(part: &Part, needs: &str, draft: &Path) -> Result<(), Error> {
    let needs = needs.to_owned();
    if on_path("go").is_none() {
        return Err(Error::NoGo { part: part.title(), needs });
    }
    // The version is queried inside the module, where Go has already switched to a newer toolchain if it may.
    let mut command = Command::new("go");
    environment(command.arg("version").current_dir(draft));
    let output = command.output().attempt(|| "run go version".into())?;
    let said = String::from_utf8_lossy(if output.status.success() { &output.stdout } else { &output.stderr });
    let found =
        said.split_whitespace().find_map(|word| word.strip_prefix("go1.")).map(|rest| format!("1.{rest}"));
    match found {
        Some(found) if output.status.success() && numbers(&found) >= numbers(&needs) => Ok(()),
        Some(found) if output.status.success() => Err(Error::OldGo { part: part.title(), needs, found }),
        _ if said.contains("requires go") => {
            Err(Error::OldGo { part: part.title(), needs, found: format!("({})", said.trim()) })
        }
        _ => Err(build_failure(&part.title(), format!("  go version: {}", said.trim()))),
    }
}

/// Parses versions such as `1.26.8` and `1.27rc1` to numbers that can be compared.
fn numbers(version: &str) -> Vec<u32> {
    let digits = |word: &str| word.chars().take_while(char::is_ascii_digit).collect::<String>();
    version.split('.').map(|word| digits(word).parse().unwrap_or(0)).collect()
}

/// The name that Go gives the program of a package.
fn program(package: &str) -> &str {
    let major = |word: &str| word.strip_prefix('v').is_some_and(|rest| rest.parse::<u32>().is_ok());
    package.rsplit('/').find(|word| !major(word)).unwrap_or(package)
}

fn understand(line: &str, packages: &mut usize) -> Option<String> {
    if let Some(module) = line.strip_prefix("go: downloading ") {
        return Some(format!("downloading {module}"));
    }
    let is_package = !line.is_empty() && !line.contains(|c: char| c.is_whitespace() || c == ':' || c == '#');
    is_package.then(|| {
        *packages += 1;
        format!("{packages} packages compiled, now {line}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::{ETCD, KUBERNETES, Source};

    fn words(part: Part) -> Vec<String> {
        let Source::Go(module) = part.source else { panic!("{} is no Go module", part.name) };
        arguments(module.link_flags, module.programs, Path::new("/draft/bin"))
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn programs_of_a_module_are_built_by_one_command_with_their_version() {
        assert_eq!(words(ETCD), ["go", "build", "-v", "-o", "/draft/bin/", "go.etcd.io/etcd/server/v3"]);
        let kubernetes = words(KUBERNETES);
        assert!(
            kubernetes.iter().any(|word| word.contains("version.gitVersion=v1.36.4 -X ")),
            "{kubernetes:?}"
        );
        assert_eq!(kubernetes.last().map(String::as_str), Some("k8s.io/kubernetes/cmd/kubectl"));
    }

    #[test]
    fn download_names_the_folder_or_the_error() {
        assert_eq!(downloaded(br#"{"Path": "a/b", "Dir": "/m/a/b@v1"}"#), Ok(PathBuf::from("/m/a/b@v1")));
        assert_eq!(
            downloaded(br#"{"Path": "a/b", "Error": "no such version"}"#),
            Err(DownloadError("no such version".to_owned()))
        );
        assert!(downloaded(b"go: no").is_err() && downloaded(b"{}").is_err());
    }

    #[test]
    fn program_names_follow_go_conventions() {
        assert_eq!(program("go.etcd.io/etcd/server/v3"), "server");
        assert_eq!(program("k8s.io/kubernetes/cmd/kubectl"), "kubectl");
        assert_eq!(program("example.com/vault"), "vault");
    }

    #[test]
    fn go_output_is_progress_or_error() {
        let mut packages = 0;
        assert_eq!(
            understand("go: downloading a.b/c v1.2.3", &mut packages).unwrap(),
            "downloading a.b/c v1.2.3"
        );
        assert_eq!(
            understand("k8s.io/api/core/v1", &mut packages).unwrap(),
            "1 packages compiled, now k8s.io/api/core/v1"
        );
        assert_eq!(understand("# k8s.io/api/core/v1", &mut packages), None);
        assert_eq!(understand("types.go:3:1: syntax error", &mut packages), None);
        assert_eq!(understand("", &mut packages), None);
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(numbers("1.26.8") >= numbers("1.26.4"));
        assert!(numbers("1.27rc1") >= numbers("1.26.4"));
        assert!(numbers("1.9") < numbers("1.26.0"));
    }
}
