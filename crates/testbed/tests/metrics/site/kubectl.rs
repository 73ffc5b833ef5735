//! The real kubectl in a test's namespace.

use std::process::{Command, Stdio};

use testbed::program::Room;

use super::Plot;

/// kubectl for one cluster and namespace.
pub(crate) struct Kubectl {
    room: Room,
    program: std::path::PathBuf,
    namespace: String,
}

impl Kubectl {
    /// None where there is no kubectl, because there is no Go to build it with.
    pub(crate) fn new(plot: &Plot) -> Option<Self> {
        let program = testbed::Parts::ensure().ok()?.kubectl;
        let room = Room::new().unwrap();
        room.write("kubeconfig", &plot.site.cluster.kubeconfig).unwrap();
        Some(Self { room, program, namespace: plot.namespace.clone() })
    }

    /// What it prints, and whether it was content.
    pub(crate) fn run(&self, line: &str) -> (bool, String) {
        let mut command = Command::new(&self.program);
        command.env("KUBECONFIG", self.room.path("kubeconfig")).env("KUBERC", "off");
        command.env("KUBECACHEDIR", self.room.path("cache")).stdin(Stdio::null());
        let output = command.arg("--namespace").arg(&self.namespace).args(line.split(' ')).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
    }

    /// What it prints when all is well, words alone: columns are as wide as what is in them.
    pub(crate) fn words(&self, line: &str) -> Vec<Vec<String>> {
        let (good, text) = self.run(line);
        assert!(good, "kubectl {line}: {text}");
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    }
}
