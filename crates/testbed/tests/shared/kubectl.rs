//! The real kubectl in a test's namespace.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use testbed::program::Room;

/// kubectl for one cluster and namespace.
pub(crate) struct Kubectl {
    room: Room,
    program: PathBuf,
    namespace: String,
}

impl Kubectl {
    /// None where there is no kubectl, because there is no Go to build it with.
    pub(crate) fn new(kubeconfig: &str, namespace: &str) -> Option<Self> {
        let program = testbed::Parts::ensure().ok()?.kubectl;
        let room = Room::new().unwrap();
        room.write("kubeconfig", kubeconfig).unwrap();
        Some(Self { room, program, namespace: namespace.to_owned() })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env("KUBECONFIG", self.room.path("kubeconfig")).env("KUBERC", "off");
        command.env("KUBECACHEDIR", self.room.path("cache"));
        command.arg("--namespace").arg(&self.namespace).args(line.split(' '));
        command
    }

    /// What it prints, and whether it was content.
    pub(crate) fn run(&self, line: &str) -> (bool, String) {
        said(&self.command(line).stdin(Stdio::null()).output().unwrap())
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

    /// Runs it over an object; what it prints, and whether it was content.
    fn over(&self, line: &str, object: &Value) -> (bool, String) {
        let mut command = self.command(line);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
        said(&child.wait_with_output().unwrap())
    }

    /// Applies an object; what it prints, and whether it was content.
    pub(crate) fn try_apply(&self, object: &Value) -> (bool, String) {
        self.over("apply -f -", object)
    }

    /// The same, but nothing is stored.
    pub(crate) fn try_dry(&self, object: &Value) -> (bool, String) {
        self.over("apply --dry-run=server -f -", object)
    }

    /// Applies an object that is taken.
    pub(crate) fn apply(&self, object: &Value) {
        let (good, text) = self.try_apply(object);
        assert!(good, "kubectl apply of {object}: {text}");
    }
}

fn said(output: &Output) -> (bool, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
}
