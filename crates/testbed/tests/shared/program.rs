//! The plimsoll binary, and free ports for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use testbed::program::TempFolder;

/// The environment variable with the path of another binary than the one that is built here.
const PROGRAM: &str = "PLIMSOLL_PROGRAM";
/// The environment variable with the path of the binary of an older version.
const OLD_PROGRAM: &str = "PLIMSOLL_OLD_PROGRAM";

/// The path of the binary, which is built if it is missing.
pub(crate) fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(program) = std::env::var_os(PROGRAM) {
            return program.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        let mut command = Command::new(cargo);
        // The binary is built with the features of tests (see the Makefile), so that it usually exists and is not built again with fewer features.
        command
            .args(["build", "--locked", "--quiet", "--workspace", "--bin", "plimsoll", "--test", "servers"])
            .arg("--manifest-path")
            .arg(manifest);
        assert!(command.status().unwrap().success(), "our binary cannot be built");
        // This program is …/debug/deps/name-0123; the binary is in …/debug.
        let own = std::env::current_exe().unwrap();
        own.parent().and_then(Path::parent).unwrap().join("plimsoll")
    })
}

/// Runs a command of our binary that prints JSON about a cluster, and returns the exit code and the output.
pub(crate) fn json_of(kubeconfig: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let temp_folder = TempFolder::new().unwrap();
    let config = temp_folder.write("kubeconfig", kubeconfig).unwrap();
    let mut command = Command::new(program());
    command.args(arguments).args(["-o", "json", "--kubeconfig"]).arg(config);
    let output = tokio::task::block_in_place(|| command.output().unwrap());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = serde_json::from_slice(&output.stdout);
    (output.status.code(), printed.unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}")))
}

/// A port on which no program listens, and which no other caller in this process gets.
pub(crate) fn free_port() -> u16 {
    testbed::ports::free().unwrap()
}

/// The binary of an older version, which `make test-upgrade` builds.
pub(crate) fn old_program() -> PathBuf {
    let named = std::env::var_os(OLD_PROGRAM).filter(|path| !path.is_empty());
    named.map_or_else(|| panic!("{OLD_PROGRAM} names no binary: run make test-upgrade"), PathBuf::from)
}
