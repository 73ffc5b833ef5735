//! `plimsoll scalers check`, the binary.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use testbed::program::Room;

/// Names another binary than the one that is built here.
const PROGRAM: &str = "PLIMSOLL_PROGRAM";

/// Checks manifests; the code, and what was said as JSON.
pub(crate) async fn check(manifests: &Value, more: &[String]) -> (i32, String) {
    let (manifests, more) = (manifests.clone(), more.to_vec());
    let run = move || {
        let room = Room::new().unwrap();
        let documents: Vec<String> = manifests.as_array().unwrap().iter().map(Value::to_string).collect();
        let file = room.write("manifests.yaml", &documents.join("\n---\n")).unwrap();
        let mut command = Command::new(program());
        command.args(["scalers", "check", "-o", "json"]).args(more).arg(file);
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(program) = std::env::var_os(PROGRAM) {
            return program.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        let mut command = Command::new(cargo);
        command
            .args(["build", "--locked", "--quiet", "--package", "plimsoll", "--manifest-path"])
            .arg(manifest);
        assert!(command.status().unwrap().success(), "our binary cannot be built");
        // …/debug/deps/scalers-0123: the binary lies beside the folder of this program.
        let own = std::env::current_exe().unwrap();
        own.parent().and_then(Path::parent).unwrap().join("plimsoll")
    })
}
