//! The real kubectl in the namespace of a test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use testbed::program::TempFolder;

/// kubectl for one cluster and namespace.
pub(crate) struct Kubectl {
    temp_folder: TempFolder,
    program: PathBuf,
    pub(crate) namespace: String,
}

/// A running `kubectl get --watch`, read line by line; it ends when this is dropped.
pub(crate) struct KubectlWatch {
    child: Child,
    lines: Receiver<String>,
}

impl Kubectl {
    /// Returns none if there is no kubectl, because there is no Go to build it with.
    pub(crate) fn new(kubeconfig: &str, namespace: &str) -> Option<Self> {
        Some(Self::of(testbed::Parts::ensure().ok()?.kubectl, kubeconfig, namespace))
    }

    /// kubectl at this path.
    pub(crate) fn of(program: PathBuf, kubeconfig: &str, namespace: &str) -> Self {
        let temp_folder = TempFolder::new().unwrap();
        temp_folder.write("kubeconfig", kubeconfig).unwrap();
        Self { temp_folder, program, namespace: namespace.to_owned() }
    }

    /// The folder in which kubectl runs.
    pub(crate) fn folder(&self) -> &Path {
        self.temp_folder.root()
    }

    /// Writes a file to the folder of kubectl.
    pub(crate) fn write(&self, name: &str, text: &str) {
        self.temp_folder.write(name, text).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env("KUBECONFIG", self.temp_folder.path("kubeconfig")).env("KUBERC", "off");
        command.env("KUBECACHEDIR", self.temp_folder.path("cache")).current_dir(self.folder());
        if !line.contains("--namespace") {
            command.arg("--namespace").arg(&self.namespace);
        }
        command.args(line.split(' '));
        command
    }

    /// Runs a command.
    pub(crate) fn output(&self, line: &str) -> Output {
        self.command(line).stdin(Stdio::null()).output().unwrap()
    }

    /// Starts a watch.
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

    /// Runs a command, and returns whether it succeeded, and its output.
    pub(crate) fn run(&self, line: &str) -> (bool, String) {
        outcome(&self.output(line))
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) fn run_ok(&self, line: &str) -> String {
        let (good, text) = self.run(line);
        assert!(good, "kubectl {line}: {text}");
        text
    }

    /// Runs a command that must succeed, and returns the words of each line, because the widths of columns vary.
    pub(crate) fn words(&self, line: &str) -> Vec<Vec<String>> {
        self.run_ok(line).lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    }

    /// Runs a command with an object as file, and returns whether it succeeded, and its output.
    fn run_with_file(&self, line: &str, object: &Value) -> (bool, String) {
        let mut command = self.command(line);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
        outcome(&child.wait_with_output().unwrap())
    }

    /// Applies an object, and returns whether it succeeded, and the output.
    pub(crate) fn try_apply(&self, object: &Value) -> (bool, String) {
        self.run_with_file("apply -f -", object)
    }

    /// Applies an object as a dry run.
    pub(crate) fn try_dry(&self, object: &Value) -> (bool, String) {
        self.run_with_file("apply --dry-run=server -f -", object)
    }

    /// Applies an object, which must succeed.
    pub(crate) fn apply(&self, object: &Value) {
        let (good, text) = self.try_apply(object);
        assert!(good, "kubectl apply of {object}: {text}");
    }
}

fn outcome(output: &Output) -> (bool, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
}

impl KubectlWatch {
    /// The next line; none on a timeout.
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
