//! Child processes that end with this process.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::error::{Attempt, Error};

/// The supervisor: runs a program until it ends or until its own standard input is closed, which the kernel does however
/// this process ends. The program is killed with SIGKILL, because its data need not be kept. The folder with its data, if it is given
/// one, is removed afterwards, after a script that cleans up.
const SUPERVISOR: &str = r#"exec 3<&0 </dev/null
"$@" 3<&- &
program=$!
( read -r _ <&3; kill -KILL "$program" ) 2>/dev/null &
watch=$!
exec 3<&-
{ wait "$program"; } 2>/dev/null
code=$?
{ kill -KILL "$watch"; wait "$watch"; } 2>/dev/null
[ -z "$TESTBED_CLEANUP" ] || sh "$TESTBED_CLEANUP"
[ -z "$TESTBED_DATA" ] || rm -rf -- "$TESTBED_DATA"
exit "$code"
"#;

/// The environment variable with the folder that the supervisor removes.
const DATA_VARIABLE: &str = "TESTBED_DATA";
/// The environment variable with the script that the supervisor runs after the program has ended.
pub(crate) const CLEANUP_VARIABLE: &str = "TESTBED_CLEANUP";

/// The unit of CPU times in /proc, which is a hundredth of a second.
const CLOCK_TICK: Duration = Duration::from_millis(10);

/// The number of log lines that an error shows.
const TAIL_LINES: usize = 20;
const TAIL_BYTES: u64 = 64 * 1024;

/// A program that runs under the supervisor and writes a log.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) name: &'static str,
    pub(crate) log: PathBuf,
    child: Child,
}

/// The resource usage of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUsage {
    /// The CPU time in user and kernel mode.
    pub cpu: Duration,
    /// The resident memory in bytes.
    pub resident: u64,
    /// The maximum of the resident memory in bytes.
    pub peak: u64,
}

/// A command that ends when this process ends. The supervisor watches its standard input: the child's `stdin` must be kept open for as long
/// as the command shall run.
pub(crate) fn supervised(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", SUPERVISOR, "testbed-supervisor"]).arg(program).args(arguments);
    // The child has its own process group, so that Ctrl-C in a terminal reaches only this process. The supervisor ends the program in every case.
    command.stdin(Stdio::piped()).process_group(0);
    command.env_remove(DATA_VARIABLE).env_remove(CLEANUP_VARIABLE);
    command
}

impl Component {
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        folder: &Path,
        data: Option<&Path>,
    ) -> Result<Self, Error> {
        Self::start_with(name, program, arguments, &[], folder, data)
    }

    /// Does the same with environment variables.
    pub(crate) fn start_with(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        variables: &[(&str, &str)],
        folder: &Path,
        data: Option<&Path>,
    ) -> Result<Self, Error> {
        let logs = folder.join("logs");
        let log = logs.join(format!("{name}.log"));
        let out = File::create(&log).attempt(|| format!("write {}", log.display()))?;
        let err = out.try_clone().attempt(|| format!("write {}", log.display()))?;
        let mut command = supervised(program, arguments);
        command.current_dir(folder).stdout(out).stderr(err);
        if let Some(data) = data {
            command.env(DATA_VARIABLE, data);
        }
        // The environment of the user must not change the behaviour of components.
        for variable in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"] {
            command.env_remove(variable);
        }
        for variable in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(variable);
        }
        command.envs(variables.iter().copied());
        let child = command.spawn().attempt(|| format!("start {name}"))?;
        Ok(Self { name, log, child })
    }

    /// The exit status, if the program has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The ids of the processes under the supervisor (Linux only; elsewhere none).
    pub(crate) fn children(&self) -> Vec<u32> {
        let id = self.child.id();
        let list = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        list.split_whitespace().filter_map(|id| id.parse().ok()).collect()
    }

    /// Closing standard input makes the supervisor kill the program; `wait` returns when it has ended.
    pub(crate) fn release(&mut self) {
        drop(self.child.stdin.take());
    }

    pub(crate) fn wait(&mut self) {
        self.release();
        // Waiting fails only if the child has ended already.
        let _ = self.child.wait();
    }

    pub(crate) fn failure(&self, happened: impl Into<String>) -> Error {
        Error::Component {
            component: self.name,
            happened: happened.into(),
            log: self.log.clone(),
            tail: tail(&self.log),
        }
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        self.wait();
    }
}

impl ProcessUsage {
    /// The resource usage of a process so far (Linux only; elsewhere none).
    pub fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Self::parse(&stat, &status)
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The name in parentheses may contain any character. The 12th and 13th fields after it are the two CPU times.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |place: usize| fields.get(place)?.parse::<u32>().ok();
        let size = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
        };
        Some(Self {
            cpu: CLOCK_TICK * (ticks(11)? + ticks(12)?),
            resident: size("VmRSS:")?,
            peak: size("VmHWM:")?,
        })
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let mut text = Vec::new();
    let read = || -> std::io::Result<()> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        file.take(TAIL_BYTES).read_to_end(&mut text)?;
        Ok(())
    };
    let mut read = read;
    if let Err(error) = read() {
        return format!("  (cannot be read: {error})");
    }
    last_lines(&String::from_utf8_lossy(&text), TAIL_LINES)
}

pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(count);
    let kept: Vec<String> = lines.iter().skip(from).map(|line| format!("  {line}")).collect();
    if kept.is_empty() { "  (nothing was written)".into() } else { kept.join("\n") }
}

/// The ids of all other processes of this machine whose command line contains `word` (Linux only; elsewhere none).
pub fn processes_mentioning(word: &Path) -> Vec<u32> {
    let word = word.as_os_str().as_encoded_bytes();
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| *id != std::process::id())
        .filter(|id| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            line.windows(word.len().max(1)).any(|window| window == word)
        })
        .collect()
}

#[cfg(test)]
mod tests;
