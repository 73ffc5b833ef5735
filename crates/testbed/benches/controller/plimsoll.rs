//! Our controller: the release binary as a process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use testbed::ports;

/// A running controller; it ends when this is dropped.
pub(crate) struct PlimsollController {
    child: Child,
    pub(crate) port: u16,
    folder: PathBuf,
}

impl PlimsollController {
    /// Starts it with the text of a kubeconfig.
    pub(crate) fn start(kubeconfig: &str) -> Self {
        let port = ports::free().unwrap();
        let folder = std::env::temp_dir().join(format!("bench-controller-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, log) = (folder.join("kubeconfig"), folder.join("log"));
        fs::write(&file, kubeconfig).unwrap();
        let mut command = Command::new(program());
        command.arg("controller").arg("--kubeconfig").arg(&file).args([
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            &format!("--secure-port={port}"),
            "--authorization-always-allow-paths=/healthz,/metrics",
        ]);
        let child = command.stderr(File::create(log).unwrap()).spawn().unwrap();
        Self { child, port, folder }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its process must still be there.
    pub(crate) fn check(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            panic!("our controller ended by itself ({status}):\n{log}");
        }
    }
}

impl Drop for PlimsollController {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The binary lies beside the folder of this program.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().and_then(Path::parent).unwrap().join("plimsoll");
    assert!(program.exists(), "{} is missing: run make bench-controller", program.display());
    program
}
