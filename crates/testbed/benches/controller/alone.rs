//! 10,000 autoscalers on localkube, which runs in a process of its own so that its memory is counted apart.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;

use localkube::metrics::{MetricsApi, MetricsSettings};
use localkube::{Cluster, Options};

use crate::figures::{Measured, Subject};
use crate::load::Load;
use crate::plimsoll::PlimsollController;
use crate::workloads::Workloads;
use crate::{PERIOD, WINDOW, table};

/// The word with which this program becomes the server.
pub(crate) const SERVER: &str = "serve";

const WORKLOADS: Workloads = Workloads { autoscalers: 10_000, namespaces: 100 };
const MEMORY_LIMIT: f64 = 250.0;
/// The bucket of the histogram that is nearest to a second.
const IN_TIME: &str = "plimsoll_pass_delay_seconds_bucket{le=\"1.024\"}";
const PASSES: &str = "plimsoll_pass_delay_seconds_count";

/// The other process.
struct Server {
    child: Child,
    /// Words to it, one a line; when this is closed, it ends.
    words: Option<ChildStdin>,
    kubeconfig: String,
}

/// The other process: serves until nobody speaks to it any more.
pub(crate) async fn serve(file: &str) {
    let running = Cluster::start(Options { workloads: false, ..Options::default() }).await.unwrap();
    let client = running.client();
    let begun = Instant::now();
    WORKLOADS.make(&client).await;
    eprintln!("made in {:.0} s", begun.elapsed().as_secs_f64());
    let metrics = MetricsApi::start(MetricsSettings::default()).await.unwrap();
    metrics.register(&client, "kube-system").await.unwrap();
    let load = Load::start(WORKLOADS, metrics.script());
    let server = running.serve().await.unwrap();
    std::fs::write(file, &server.kubeconfig).unwrap();
    println!("ready");
    let words = tokio::task::spawn_blocking(move || {
        for word in std::io::stdin().lines().map_while(Result::ok) {
            load.changes(word == "change");
        }
    });
    let _ = words.await;
}

impl Server {
    fn start() -> Self {
        let file = std::env::temp_dir().join(format!("bench-controller-{}.kubeconfig", std::process::id()));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(SERVER).arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let words = child.stdin.take();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said.trim(), "ready", "the server ended");
        let kubeconfig = std::fs::read_to_string(&file).unwrap();
        let _ = std::fs::remove_file(&file);
        Self { child, words, kubeconfig }
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.words.as_mut().unwrap(), "{word}").unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.words.take());
        let _ = self.child.wait();
    }
}

pub(crate) async fn run() -> bool {
    eprintln!("making {} autoscalers and their pods on localkube", WORKLOADS.autoscalers);
    let mut server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let mut ours = PlimsollController::start(&server.kubeconfig);
    let subject = Subject::new(ours.pid(), ours.port, None);
    subject.warm(WORKLOADS.autoscalers).await;
    let steady = subject.measure(WINDOW).await;
    ours.check();
    server.tell("change");
    tokio::time::sleep(PERIOD * 2).await;
    let changing = subject.measure(WINDOW).await;
    ours.check();
    println!("\n{} autoscalers × 10 pods on localkube, our controller alone", WORKLOADS.autoscalers);
    [("values stay as they are", steady), ("values change at every look", changing)]
        .iter()
        .fold(true, |good, (variant, measured)| show(variant, measured) && good)
}

fn show(variant: &str, measured: &Measured) -> bool {
    println!("\n{variant}");
    let periods = measured.took.as_secs_f64() / PERIOD.as_secs_f64();
    let per_period = measured.syncs as f64 / periods;
    let between =
        |name: &str| measured.after.get(name).unwrap_or(0.0) - measured.before.get(name).unwrap_or(0.0);
    let writes = measured.after.sum("plimsoll_writes_total") - measured.before.sum("plimsoll_writes_total");
    table::told("syncs per period", per_period, 0);
    table::told("status writes per sync", writes / measured.syncs.max(1) as f64, 3);
    table::told("CPU per sync, µs", measured.cpu_per_sync(), 0);
    let kept = [
        table::at_most(
            "autoscalers left out per period, percent",
            100.0 - per_period * 100.0 / WORKLOADS.autoscalers as f64,
            1,
            1.0,
        ),
        table::at_most("passes late by more than a second", between(PASSES) - between(IN_TIME), 0, 0.0),
        table::at_most(
            "one core, percent",
            measured.cpu.as_secs_f64() * 100.0 / measured.took.as_secs_f64(),
            1,
            100.0,
        ),
        table::at_most("resident memory, MiB", table::mebibytes(measured.resident), 1, MEMORY_LIMIT),
        table::at_most("… at most since the start, MiB", table::mebibytes(measured.peak), 1, MEMORY_LIMIT),
    ];
    kept.into_iter().all(|kept| kept)
}
