//! Our operator: the binary as a process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use testbed::direct::{Caller, Direct};
use testbed::ports;
use testbed::program::{Program, Room};

/// Names the binary that is measured.
const PROGRAM: &str = "PLIMSOLL_PROGRAM";
/// How long it may take until it is ready.
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) struct Subject {
    program: Program,
    pub(crate) port: u16,
}

impl Subject {
    /// Starts it for one namespace, and returns when it has seen everything.
    pub(crate) async fn start(kubeconfig: &str, namespace: &str) -> Self {
        let (room, port) = (Room::new().unwrap(), ports::free().unwrap());
        let file = room.write("kubeconfig", kubeconfig).unwrap();
        let arguments = [
            "operator".to_owned(),
            format!("--kubeconfig={}", file.display()),
            format!("--watch-namespaces={namespace}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--enable-webhook-patching=false".to_owned(),
            "--enable-apiservice-patching=false".to_owned(),
        ];
        let mut program = Program::start("plimsoll", &binary(), &arguments, room).unwrap();
        let nobody = Direct::new(port, &Caller::nobody()).unwrap();
        let ready = async || nobody.get("/readyz").await.is_ok_and(|answer| answer.code == 200);
        program.until(PATIENCE, ready).await.unwrap();
        Self { program, port }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.program.pid().expect("its process is there")
    }

    /// Asks it to end, and waits for that.
    pub(crate) async fn end(&mut self, patience: Duration) {
        self.program.terminate();
        let begun = Instant::now();
        while self.program.ended().is_none() {
            assert!(begun.elapsed() < patience, "the operator does not end:\n{}", self.program.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Its process must still be there, and must not have complained.
    pub(crate) fn check(&mut self) {
        let log = self.program.log();
        if let Some(code) = self.program.ended() {
            panic!("the operator ended by itself ({code}):\n{log}");
        }
        let odd: Vec<&str> =
            log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
        if !odd.is_empty() {
            eprintln!("the operator said {} warnings, such as\n{}", odd.len(), odd[odd.len() - 1]);
        }
    }
}

fn binary() -> PathBuf {
    let program = std::env::var_os(PROGRAM).map_or_else(
        || {
            // The binary lies beside the folder of this program.
            let own = std::env::current_exe().unwrap();
            own.parent().and_then(Path::parent).unwrap().join("plimsoll")
        },
        PathBuf::from,
    );
    assert!(program.exists(), "{} is missing: run make bench-operator", program.display());
    program.canonicalize().unwrap()
}
