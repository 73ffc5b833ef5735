//! The real kubectl in a test's namespace.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use testbed::program::Room;

/// kubectl for one cluster and namespace.
pub(crate) struct Kubectl {
    room: Room,
    program: PathBuf,
    pub(crate) namespace: String,
}

/// A watch of kubectl, line by line; it ends when this is dropped.
pub(crate) struct KubectlWatch {
    child: Child,
    lines: Receiver<String>,
}

impl Kubectl {
    /// None where there is no kubectl, because there is no Go to build it with.
    pub(crate) fn new(kubeconfig: &str, namespace: &str) -> Option<Self> {
        Some(Self::of(testbed::Parts::ensure().ok()?.kubectl, kubeconfig, namespace))
    }

    /// kubectl at this path.
    pub(crate) fn of(program: PathBuf, kubeconfig: &str, namespace: &str) -> Self {
        let room = Room::new().unwrap();
        room.write("kubeconfig", kubeconfig).unwrap();
        Self { room, program, namespace: namespace.to_owned() }
    }

    /// The folder in which it runs.
    pub(crate) fn folder(&self) -> &Path {
        self.room.folder()
    }

    /// Writes a file into its folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        self.room.write(name, text).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env("KUBECONFIG", self.room.path("kubeconfig")).env("KUBERC", "off");
        command.env("KUBECACHEDIR", self.room.path("cache")).current_dir(self.folder());
        if !line.contains("--namespace") {
            command.arg("--namespace").arg(&self.namespace);
        }
        command.args(line.split(' '));
        command
    }

    /// Runs it.
    pub(crate) fn output(&self, line: &str) -> Output {
        self.command(line).stdin(Stdio::null()).output().unwrap()
    }

    /// Begins a watch.
    pub(crate) fn watch(&self, line: &str) -> KubectlWatch {
        let mut command = self.command(line);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
        });
        KubectlWatch { child, lines }
    }

    /// What it prints, and whether it was content.
    pub(crate) fn run(&self, line: &str) -> (bool, String) {
        said(&self.output(line))
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

impl KubectlWatch {
    /// The next line; none if there is none for too long.
    pub(crate) fn next(&self) -> Option<String> {
        self.lines.recv_timeout(testbed::harness::WAIT_TIMEOUT).ok()
    }
}

impl Drop for KubectlWatch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
