//! Runs `plimsoll why` on a cluster: the first line and the cause that it names.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testbed::program::TempFolder;

use super::program::program;

/// The command `plimsoll why` in one namespace.
pub(crate) struct WhyCommand {
    temp_folder: TempFolder,
    kubeconfig: PathBuf,
    namespace: String,
}

/// The output of `plimsoll why` about several autoscalers.
pub(crate) struct WhyOutput(Value);

impl WhyCommand {
    pub(crate) fn new(kubeconfig: &str, namespace: &str) -> Self {
        let temp_folder = TempFolder::new().unwrap();
        let kubeconfig = temp_folder.write("kubeconfig", kubeconfig).unwrap();
        Self { temp_folder, kubeconfig, namespace: namespace.to_owned() }
    }

    /// Explains the latest decisions about these autoscalers (`hpa/web`); an error is the error output of the program.
    pub(crate) async fn explain(&self, names: &[String]) -> Result<WhyOutput, Vec<String>> {
        let mut command = Command::new(program());
        command.arg("why").args(names).args(["--utc", "--output=json", "--namespace", &self.namespace]);
        command.arg("--kubeconfig").arg(&self.kubeconfig).current_dir(self.temp_folder.root());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        match serde_json::from_slice(&output.stdout) {
            // A single autoscaler is not printed as a list.
            Ok(Value::Array(all)) => Ok(WhyOutput(Value::Array(all))),
            Ok(one) => Ok(WhyOutput(Value::Array(vec![one]))),
            Err(_) => Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]),
        }
    }
}

impl WhyOutput {
    /// The explanation of an autoscaler, if its first line does not contain these words or the first cause is another one.
    pub(crate) fn misses(&self, name: &str, id: &str, words: &str) -> Option<String> {
        let mut all = self.0.as_array().into_iter().flatten();
        let one = all.find(|one| one["autoscaler"] == name).unwrap_or(&Value::Null);
        let (first, cause) = (&one["explanation"]["headline"], &one["causes"][0]["id"]);
        let is_named = cause == id && first.as_str().is_some_and(|first| first.contains(words));
        (!is_named).then(|| format!("{name}: {first}: {cause} instead of {id}: {words}"))
    }
}
