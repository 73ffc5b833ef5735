//! A program under test or a helper. It has its own folder, and ends when this process ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cache::Cache;
use crate::error::{Error, read};
use crate::pki::write_private;
use crate::process::Component;
use crate::process::ProcessUsage;
use crate::state::State;

/// A running program; it ends when this is dropped, and also when the process that holds it is killed.
pub struct Program {
    component: Component,
    temp_folder: TempFolder,
}

/// A temporary folder with the files of a program. It is removed at the end unless a test fails.
pub struct TempFolder(State);

/// A program that tests stop and start again: either it runs, or its folder is kept for the next start.
pub(crate) struct Restartable {
    running: Option<Program>,
    idle: Option<TempFolder>,
}

const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Restartable {
    /// A program that is not started yet.
    pub(crate) fn new(temp_folder: TempFolder) -> Self {
        Self { running: None, idle: Some(temp_folder) }
    }

    /// The folder of the program; none while it is being started.
    pub(crate) fn temp_folder(&self) -> Option<&TempFolder> {
        self.running.as_ref().map(Program::temp_folder).or(self.idle.as_ref())
    }

    /// Kills the program. Its folder is kept.
    pub(crate) fn stop(&mut self) {
        if let Some(program) = self.running.take() {
            self.idle = Some(program.end());
        }
    }

    /// Takes the folder for the next start; none if the program runs.
    pub(crate) fn take_idle(&mut self) -> Option<TempFolder> {
        self.idle.take()
    }

    /// Records that the program was started.
    pub(crate) fn started(&mut self, program: Program) {
        self.running = Some(program);
    }
}

impl TempFolder {
    /// Creates an empty folder.
    pub fn new() -> Result<Self, Error> {
        State::temporary(&Cache::of_user()?).map(Self)
    }

    /// The path of the folder.
    pub fn root(&self) -> &Path {
        self.0.folder()
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file that only its owner may read, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path(name);
        write_private(&path, text)?;
        Ok(path)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Program {
    /// Starts a program in a folder; its output is written to the subfolder `logs`.
    pub fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        temp_folder: TempFolder,
    ) -> Result<Self, Error> {
        Self::start_with(name, program, arguments, &[], temp_folder)
    }

    /// Starts a program with environment variables.
    pub fn start_with(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        variables: &[(&str, &str)],
        temp_folder: TempFolder,
    ) -> Result<Self, Error> {
        let component = Component::start_with(name, program, arguments, variables, temp_folder.root(), None)?;
        Ok(Self { component, temp_folder })
    }

    /// The folder of the program.
    pub fn temp_folder(&self) -> &TempFolder {
        &self.temp_folder
    }

    /// The whole log of the program.
    pub fn log(&self) -> String {
        read(&self.component.log).unwrap_or_default()
    }

    /// The id of the process (Linux only; elsewhere none).
    pub fn pid(&self) -> Option<u32> {
        // The children include the shells of the supervisor and possibly a measuring script, so the program is the one that is no shell.
        let shell = Path::new("/bin/sh").canonicalize().ok()?;
        let is_it = |id: &u32| fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|link| link != shell);
        self.component.children().into_iter().find(is_it)
    }

    /// The resource usage so far (Linux only; elsewhere none).
    pub fn usage(&self) -> Option<ProcessUsage> {
        ProcessUsage::of(self.pid()?)
    }

    /// The exit code, if the program has ended; 137 if it was killed.
    pub fn ended(&mut self) -> Option<i32> {
        self.component.ended().map(|status| status.code().unwrap_or(137))
    }

    /// Waits until `ready` returns true; the end of the program and a timeout are errors.
    pub async fn until(&mut self, deadline: Duration, ready: impl AsyncFn() -> bool) -> Result<(), Error> {
        let until = Instant::now() + deadline;
        while !ready().await {
            if let Some(status) = self.component.ended() {
                return Err(self.component.failure(format!("ended by itself ({status})")));
            }
            if Instant::now() > until {
                return Err(self.component.failure(format!("was not ready after {} s", deadline.as_secs())));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Waits until the log contains a text.
    pub async fn until_logged(&mut self, deadline: Duration, text: &str) -> Result<(), Error> {
        let log = self.component.log.clone();
        self.until(deadline, async || read(&log).is_ok_and(|log| log.contains(text))).await
    }

    /// Sends SIGTERM, as Kubernetes does.
    pub fn terminate(&self) {
        if let Some(pid) = self.pid() {
            let _ = std::process::Command::new("kill").arg(pid.to_string()).status();
        }
    }

    /// Kills the program, and returns its folder for the next start.
    pub fn end(mut self) -> TempFolder {
        self.component.wait();
        self.temp_folder
    }
}
