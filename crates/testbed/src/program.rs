//! A program under test or a helper: it gets its own folder, and ends with this process.

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
    room: Room,
}

/// A folder for what a program reads; removed at the end unless a test fails.
pub struct Room(State);

/// A program that tests stop and start again: it runs, or its folder waits for the next start.
pub(crate) struct Restartable {
    running: Option<Program>,
    idle: Option<Room>,
}

const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Restartable {
    /// Not started yet.
    pub(crate) fn new(room: Room) -> Self {
        Self { running: None, idle: Some(room) }
    }

    /// Its folder; none while it is being started.
    pub(crate) fn room(&self) -> Option<&Room> {
        self.running.as_ref().map(Program::room).or(self.idle.as_ref())
    }

    /// Kills the program. Its folder stays.
    pub(crate) fn stop(&mut self) {
        if let Some(program) = self.running.take() {
            self.idle = Some(program.end());
        }
    }

    /// The folder for the next start; none if the program runs.
    pub(crate) fn take_idle(&mut self) -> Option<Room> {
        self.idle.take()
    }

    /// The program runs.
    pub(crate) fn started(&mut self, program: Program) {
        self.running = Some(program);
    }
}

impl Room {
    /// A new, empty one.
    pub fn new() -> Result<Self, Error> {
        State::temporary(&Cache::of_user()?).map(Self)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Writes a file that only its owner may read, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path(name);
        write_private(&path, text)?;
        Ok(path)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Program {
    /// Starts a program in a room, whose `logs` folder gets what it says.
    pub fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        room: Room,
    ) -> Result<Self, Error> {
        Self::start_with(name, program, arguments, &[], room)
    }

    /// The same with environment variables.
    pub fn start_with(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        variables: &[(&str, &str)],
        room: Room,
    ) -> Result<Self, Error> {
        let component = Component::start_with(name, program, arguments, variables, room.folder(), None)?;
        Ok(Self { component, room })
    }

    /// Its folder.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Its whole log.
    pub fn log(&self) -> String {
        read(&self.component.log).unwrap_or_default()
    }

    /// Its process (Linux only; elsewhere none).
    pub fn pid(&self) -> Option<u32> {
        // The program itself, also below a measuring script; not the supervisor shells.
        let shell = Path::new("/bin/sh").canonicalize().ok()?;
        let is_it = |id: &u32| fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|link| link != shell);
        self.component.children().into_iter().find(is_it)
    }

    /// What it has used so far (Linux only; elsewhere nothing is known).
    pub fn usage(&self) -> Option<ProcessUsage> {
        ProcessUsage::of(self.pid()?)
    }

    /// With which code it ended, if it has; 137 if it was killed.
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

    /// Waits until its log contains a text.
    pub async fn until_logged(&mut self, deadline: Duration, text: &str) -> Result<(), Error> {
        let log = self.component.log.clone();
        self.until(deadline, async || read(&log).is_ok_and(|log| log.contains(text))).await
    }

    /// Sends it the signal to end in order, as Kubernetes does.
    pub fn terminate(&self) {
        if let Some(pid) = self.pid() {
            let _ = std::process::Command::new("kill").arg(pid.to_string()).status();
        }
    }

    /// Ends it, and returns its room for another.
    pub fn end(mut self) -> Room {
        self.component.wait();
        self.room
    }
}
