//! The binary that is measured, as a process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use testbed::direct::{Caller, DirectClient};
use testbed::program::{Program, TempFolder};

/// The environment variable that names the measured binary.
const PROGRAM_VARIABLE: &str = "PLIMSOLL_PROGRAM";
/// How long the shell may take to start the program.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may take to become ready.
const READY_TIMEOUT: Duration = Duration::from_mins(5);

/// The path of the measured binary. Without the environment variable it is `plimsoll` in the parent of this program's folder.
pub(crate) fn binary() -> PathBuf {
    let beside = || {
        let own = std::env::current_exe().unwrap();
        own.parent().and_then(Path::parent).unwrap().join("plimsoll")
    };
    let program = std::env::var_os(PROGRAM_VARIABLE).map_or_else(beside, PathBuf::from);
    assert!(program.exists(), "{} is missing: build it with make", program.display());
    program.canonicalize().unwrap()
}

/// Waits until `/readyz` of the server on this port returns 200.
pub(crate) async fn until_ready(program: &mut Program, port: u16) {
    let anonymous = DirectClient::new(port, &Caller::anonymous()).unwrap();
    let ready = async || anonymous.get("/readyz").await.is_ok_and(|answer| answer.code == 200);
    program.until(READY_TIMEOUT, ready).await.unwrap();
}

/// Sends SIGTERM to a program, and waits until it has ended.
pub(crate) async fn end(program: &mut Program, timeout: Duration) {
    program.terminate();
    let begun = Instant::now();
    while program.ended().is_none() {
        assert!(begun.elapsed() < timeout, "plimsoll does not end:\n{}", program.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A subcommand of the measured binary that runs as a process; it ends when this is dropped.
pub(crate) struct PlimsollProcess {
    program: Program,
    pub(crate) port: u16,
}

impl PlimsollProcess {
    /// Starts a subcommand with a kubeconfig and a free port.
    pub(crate) fn start(subcommand: &str, kubeconfig: &str, flags: &[String]) -> Self {
        Self::start_program(&binary(), subcommand, kubeconfig, flags)
    }

    /// Starts a subcommand of another binary.
    pub(crate) fn start_program(
        program: &Path,
        subcommand: &str,
        kubeconfig: &str,
        flags: &[String],
    ) -> Self {
        let (temp_folder, port) = (TempFolder::new().unwrap(), testbed::ports::free().unwrap());
        let file = temp_folder.write("kubeconfig", kubeconfig).unwrap();
        let mut arguments = vec![subcommand.to_owned(), format!("--kubeconfig={}", file.display())];
        arguments.extend(["--bind-address=127.0.0.1".to_owned(), format!("--secure-port={port}")]);
        arguments.extend_from_slice(flags);
        Self { program: Program::start("plimsoll", program, &arguments, temp_folder).unwrap(), port }
    }

    pub(crate) async fn until_ready(&mut self) {
        until_ready(&mut self.program, self.port).await;
    }

    /// The id of the process. This waits for the process, because a shell starts the program.
    pub(crate) fn pid(&self) -> u32 {
        let begun = Instant::now();
        loop {
            if let Some(pid) = self.program.pid() {
                return pid;
            }
            assert!(begun.elapsed() < START_TIMEOUT, "plimsoll does not start:\n{}", self.program.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends SIGTERM to the process, and waits until it has ended.
    pub(crate) async fn end(&mut self, timeout: Duration) {
        end(&mut self.program, timeout).await;
    }

    /// Fails if the process has ended, and prints how many warnings it logged, with the last one.
    pub(crate) fn check(&mut self) {
        let log = self.program.log();
        if let Some(code) = self.program.ended() {
            panic!("plimsoll ended by itself ({code}):\n{log}");
        }
        let warnings: Vec<&str> =
            log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
        if let Some(last) = warnings.last() {
            eprintln!("plimsoll logged {} warnings, such as\n{last}", warnings.len());
        }
    }
}
