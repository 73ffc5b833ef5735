//! The real kubectl in a test's namespace.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use testbed::program::Room;

use super::Plot;

/// kubectl for one cluster and namespace.
pub(crate) struct Kubectl {
    room: Room,
    program: std::path::PathBuf,
    namespace: String,
}

impl Plot {
    pub(crate) fn kubectl(&self) -> Kubectl {
        let program = testbed::Parts::ensure().unwrap().kubectl;
        let room = Room::new().unwrap();
        room.write("kubeconfig", &self.site.cluster.kubeconfig).unwrap();
        Kubectl { room, program, namespace: self.namespace.clone() }
    }
}

impl Kubectl {
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env("KUBECONFIG", self.room.path("kubeconfig")).env("KUBERC", "off");
        command.env("KUBECACHEDIR", self.room.path("cache"));
        command.arg("--namespace").arg(&self.namespace).args(line.split(' '));
        command
    }

    /// What it prints, and whether it was content.
    pub(crate) fn run(&self, line: &str) -> (bool, String) {
        let output = self.command(line).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
    }

    /// What it prints when all is well.
    pub(crate) fn say(&self, line: &str) -> String {
        let (good, text) = self.run(line);
        assert!(good, "kubectl {line}: {text}");
        text
    }

    /// The same, words alone: columns are as wide as what is in them.
    pub(crate) fn words(&self, line: &str) -> Vec<Vec<String>> {
        self.say(line).lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    }

    /// Applies an object; what it prints, and whether it was content.
    pub(crate) fn try_apply(&self, object: &Value) -> (bool, String) {
        let mut command = self.command("apply -f -");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
    }

    /// Applies an object that is taken.
    pub(crate) fn apply(&self, object: &Value) {
        let (good, text) = self.try_apply(object);
        assert!(good, "kubectl apply of {object}: {text}");
    }
}
