//! `plimsoll why` on a cluster: the first line and the cause that it names.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testbed::program::Room;

use super::program::program;

/// `plimsoll why` in one namespace.
pub(crate) struct Why {
    room: Room,
    kubeconfig: PathBuf,
    namespace: String,
}

/// What it printed about several autoscalers.
pub(crate) struct Explained(Value);

impl Why {
    pub(crate) fn new(kubeconfig: &str, namespace: &str) -> Self {
        let room = Room::new().unwrap();
        let kubeconfig = room.write("kubeconfig", kubeconfig).unwrap();
        Self { room, kubeconfig, namespace: namespace.to_owned() }
    }

    /// Explains the latest decisions about these autoscalers (`hpa/web`); an error is what the program complains about.
    pub(crate) async fn explain(&self, names: &[String]) -> Result<Explained, Vec<String>> {
        let mut command = Command::new(program());
        command.arg("why").args(names).args(["--utc", "--output=json", "--namespace", &self.namespace]);
        command.arg("--kubeconfig").arg(&self.kubeconfig).current_dir(self.room.folder());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        match serde_json::from_slice(&output.stdout) {
            // One autoscaler is not printed as a list.
            Ok(Value::Array(all)) => Ok(Explained(Value::Array(all))),
            Ok(one) => Ok(Explained(Value::Array(vec![one]))),
            Err(_) => Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]),
        }
    }
}

impl Explained {
    /// What it says about an autoscaler, if its first line does not contain these words or the first cause is another one.
    pub(crate) fn misses(&self, name: &str, id: &str, words: &str) -> Option<String> {
        let mut all = self.0.as_array().into_iter().flatten();
        let one = all.find(|one| one["autoscaler"] == name).unwrap_or(&Value::Null);
        let (first, cause) = (&one["explanation"]["headline"], &one["causes"][0]["id"]);
        let is_named = cause == id && first.as_str().is_some_and(|first| first.contains(words));
        (!is_named).then(|| format!("{name}: {first}: {cause} instead of {id}: {words}"))
    }
}
