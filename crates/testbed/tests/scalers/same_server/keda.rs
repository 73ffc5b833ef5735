//! The program that runs KEDA's scalers and fills servers.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};
use testbed::servers::KEDA_SCALER;
use testbed::{Cache, Progress};

use super::script::ScriptTrigger;

/// The running program; it ends when this is dropped.
pub(super) struct KedaProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// The result of a scaler, KEDA's or ours.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ScalerAnswer {
    pub(super) metric: String,
    pub(super) values: Vec<String>,
    pub(super) active: bool,
    pub(super) error: String,
}

impl KedaProcess {
    pub(super) fn start(environment: &BTreeMap<String, String>) -> Self {
        let folder = Cache::of_user().unwrap().ensure(&KEDA_SCALER, &mut Progress::stderr()).unwrap();
        let mut command = Command::new(folder.join("keda-scaler"));
        // The environment of the user must not lead the scalers to other servers.
        command.env("AWS_EC2_METADATA_DISABLED", "true").envs(environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    /// Queries the source with KEDA's scaler, which is kept for the next query.
    pub(super) fn read(&mut self, trigger: &ScriptTrigger) -> ScalerAnswer {
        let ScriptTrigger { type_, metadata, auth } = trigger;
        self.exchange(&json!({"type": type_, "metadata": metadata, "auth": auth}))
    }

    /// Fills a server with data, and returns the error if there is one.
    pub(super) fn fill(&mut self, filling: &Value) -> Option<String> {
        Some(self.exchange(&json!({"fill": filling})).error).filter(|error| !error.is_empty())
    }

    fn exchange(&mut self, request: &Value) -> ScalerAnswer {
        writeln!(self.input, "{request}").unwrap();
        self.input.flush().unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

impl Drop for KedaProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
