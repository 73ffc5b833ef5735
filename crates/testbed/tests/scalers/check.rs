//! `plimsoll scalers check`, the binary.

use std::process::Command;

use serde_json::Value;
use testbed::program::TempFolder;

use crate::program::program;

/// Checks manifests, and returns the exit code and the JSON output.
pub(crate) async fn check(manifests: &Value, more: &[String]) -> (i32, String) {
    let (manifests, more) = (manifests.clone(), more.to_vec());
    let run = move || {
        let temp_folder = TempFolder::new().unwrap();
        let documents: Vec<String> = manifests.as_array().unwrap().iter().map(Value::to_string).collect();
        let file = temp_folder.write("manifests.yaml", &documents.join("\n---\n")).unwrap();
        let mut command = Command::new(program());
        command.args(["scalers", "check", "-o", "json"]).args(more).arg(file);
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}
