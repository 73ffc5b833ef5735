//! Starts the console: the listener, the address with its token, and the task that polls.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use http::Request;
use jiff::Timestamp;
use serve::{ExtraListener, Route, StartError};
use tokio::task::JoinSet;
use web_console::{Access, Console, ConsoleBackend, Feed};

use super::backend::Backend;
use super::poll::Poller;
use crate::failure::Failure;
use crate::live::ClusterClient;

/// Programs that open an address in the user's browser.
const BROWSER_COMMANDS: [&str; 3] = ["xdg-open", "open", "wslview"];

/// Where to listen and what to show.
pub(crate) struct ConsoleOptions {
    pub(crate) address: SocketAddr,
    /// Whether any free port will do if that one is taken.
    pub(crate) or_any_port: bool,
    /// Only this namespace.
    pub(crate) namespace: Option<String>,
    /// Answers `/api/v1/lab`: load and faults of `plimsoll up`.
    pub(crate) lab: Option<Box<dyn ConsoleBackend>>,
}

/// A console that runs until it is stopped or dropped.
pub(crate) struct RunningConsole {
    url: String,
    console: Arc<Console>,
    listener: ExtraListener,
    /// Dropping it ends the task.
    poller: JoinSet<()>,
}

/// Starts the console.
pub(crate) async fn start(client: ClusterClient, options: ConsoleOptions) -> Result<RunningConsole, Failure> {
    let ConsoleOptions { address, or_any_port, namespace, lab } = options;
    let outside =
        |error: &dyn std::fmt::Display| Failure::Outside(format!("failed to start the console: {error}"));
    let access = Access::new().map_err(|error| outside(&error))?;
    let feed = Arc::new(Feed::new(&format!("{}-{}", std::process::id(), Timestamp::now().as_millisecond())));
    let poller = Arc::new(Poller::new(client, namespace, Arc::clone(&feed), lab.is_some()));
    let backend = Box::new(Backend::new(Arc::clone(&poller), lab));
    let console = Arc::new(Console::new(access, feed, backend));
    let listener = match ExtraListener::loopback(address, route(Arc::clone(&console))).await {
        Err(StartError::Listen { .. }) if or_any_port => {
            ExtraListener::loopback(SocketAddr::new(address.ip(), 0), route(Arc::clone(&console))).await
        }
        other => other,
    };
    let listener = listener.map_err(|error| {
        Failure::Outside(format!(
            "failed to start the console: {error}\n  remedy: choose another port with --port, or 0 for any"
        ))
    })?;
    console.access().bound(listener.address().port());
    let url = address_with(listener.address(), console.access().token());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { poller.run().await });
    Ok(RunningConsole { url, console, listener, poller: tasks })
}

/// The address of the console with a token.
fn address_with(address: SocketAddr, token: &str) -> String {
    format!("http://{address}/?token={token}")
}

fn route(console: Arc<Console>) -> Route {
    Route::new(tower::service_fn(move |request: Request<serve::Body>| {
        let console = Arc::clone(&console);
        async move { Ok::<_, Infallible>(console.answer(request).await) }
    }))
}

impl RunningConsole {
    /// The address with its token.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Opens the console in the user's browser, if there is one. The address in the arguments of the browser has a token of its own
    /// that is valid once, because every user of the machine can read them.
    pub(super) fn open_browser(&self) {
        if !has_display() {
            return;
        }
        // Without random numbers the printed address is left.
        if let Ok(token) = self.console.access().browser_token() {
            open(&address_with(self.listener.address(), &token));
        }
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        drop(self.poller);
        self.listener.stop().await;
    }
}

/// Whether there is a browser to be expected.
fn has_display() -> bool {
    cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]
            .iter()
            .any(|name| std::env::var_os(name).is_some())
}

/// Opens an address in the user's browser.
fn open(url: &str) {
    for program in BROWSER_COMMANDS {
        let command = Command::new(program)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Ok(mut child) = command {
            // The opener ends by itself; without this it would stay as a zombie.
            std::thread::spawn(move || child.wait());
            return;
        }
    }
}
