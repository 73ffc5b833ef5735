//! localkube in a separate process, so that its CPU time and memory are not counted.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

/// The argument with which this program becomes the server; the file of its kubeconfig follows.
pub(crate) const SERVER: &str = "serve";

/// This program as a server process; it ends when this is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    /// The standard input of the server, with one command per line. The server ends when this is closed.
    commands: Option<ChildStdin>,
    pub(crate) kubeconfig: String,
}

impl ServerProcess {
    /// Starts the server and waits until it has called [`ready`].
    pub(crate) async fn start() -> Self {
        Self::start_as(SERVER).await
    }

    /// Starts the server with another argument instead of [`SERVER`].
    pub(crate) async fn start_as(argument: &'static str) -> Self {
        tokio::task::spawn_blocking(move || Self::spawn(argument)).await.unwrap()
    }

    fn spawn(argument: &str) -> Self {
        let file = std::env::temp_dir().join(format!("bench-{}.kubeconfig", std::process::id()));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(argument).arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let commands = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "ready", "the server ended");
        let kubeconfig = std::fs::read_to_string(&file).unwrap();
        let _ = std::fs::remove_file(&file);
        Self { child, commands, kubeconfig }
    }

    pub(crate) fn command(&mut self, command: &str) {
        writeln!(self.commands.as_mut().unwrap(), "{command}").unwrap();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.child.wait();
    }
}

/// Runs in the server process: writes the kubeconfig, prints `ready`, and handles commands until standard input ends.
pub(crate) async fn ready(file: &str, kubeconfig: &str, handle: impl Fn(&str) + Send + 'static) {
    std::fs::write(file, kubeconfig).unwrap();
    println!("ready");
    let commands = tokio::task::spawn_blocking(move || {
        std::io::stdin().lines().map_while(Result::ok).for_each(|command| handle(&command));
    });
    let _ = commands.await;
}
