//! Our binary, and ports for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use testbed::program::Room;

/// Names another binary than the one that is built here.
const PROGRAM: &str = "PLIMSOLL_PROGRAM";
/// Names the binary of an older version.
const OLD_PROGRAM: &str = "PLIMSOLL_OLD_PROGRAM";

/// Our binary, which is built if need be.
pub(crate) fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(program) = std::env::var_os(PROGRAM) {
            return program.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        let mut command = Command::new(cargo);
        // With the features that tests have (see the Makefile): it is there already, and not built once more with fewer.
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

/// Runs a command of our binary that prints JSON about a cluster; the exit code and what it printed.
pub(crate) fn json_of(kubeconfig: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let room = Room::new().unwrap();
    let config = room.write("kubeconfig", kubeconfig).unwrap();
    let mut command = Command::new(program());
    command.args(arguments).args(["-o", "json", "--kubeconfig"]).arg(config);
    let output = tokio::task::block_in_place(|| command.output().unwrap());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = serde_json::from_slice(&output.stdout);
    (output.status.code(), printed.unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said}")))
}

/// A port that nobody listens on, and that nobody else here is given.
pub(crate) fn free_port() -> u16 {
    testbed::ports::free().unwrap()
}

/// The binary of an older version, which `make test-upgrade` builds.
pub(crate) fn old_program() -> PathBuf {
    let named = std::env::var_os(OLD_PROGRAM).filter(|path| !path.is_empty());
    named.map_or_else(|| panic!("{OLD_PROGRAM} names no binary: run make test-upgrade"), PathBuf::from)
}
