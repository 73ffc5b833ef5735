//! Runs cases on both clusters and says where they differ.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

use super::Failure;
use super::cluster::{Cluster, LOCAL, REAL, Workloads};
use super::compare::compare;
use super::recording::{RECORD, Recording};
use super::session::Session;
use super::transcript::Transcript;

/// One case: a name and what it does on any cluster.
#[derive(Clone, Copy)]
pub struct Case {
    /// Unique in its topic.
    pub name: &'static str,
    /// What it does.
    pub run: fn(Session) -> BoxFuture<'static, ()>,
}

/// Cases that belong together.
pub struct Topic {
    /// First part of the names of its cases.
    pub name: &'static str,
    /// The cases.
    pub cases: &'static [Case],
    /// The file with what the real server answered.
    pub recording: PathBuf,
}

/// Runs only cases whose name contains this.
pub const ONLY: &str = "PLIMSOLL_CASE";
/// What the recording is called in messages.
const RECORDING_NAME: &str = "the recording";
/// How many cases run at the same time: most of the time is spent waiting for the real server.
const MAX_CONCURRENT_CASES: usize = 4;
/// A case that takes longer hangs.
const CASE_TIMEOUT: Duration = Duration::from_mins(2);

/// The table of a topic's cases: functions from a session to nothing.
#[macro_export]
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        &[$($crate::harness::Case { name: stringify!($name), run: |session| Box::pin($name(session)) }),*]
    };
}

impl Topic {
    /// Runs every case on both clusters: both must answer as recorded. Without the real cluster, localkube is compared with
    /// the recording; without a recording of this release, with the real cluster. With [`RECORD`] set, the answers of the real
    /// cluster become the recording.
    pub fn check(&self) -> Result<(), Failure> {
        let only = std::env::var(ONLY).unwrap_or_default();
        let chosen = |case: &&Case| only.is_empty() || format!("{}/{}", self.name, case.name).contains(&only);
        let cases: Vec<&Case> = self.cases.iter().filter(chosen).collect();
        let recording = std::env::var_os(RECORD).is_some();
        super::block_on(async {
            let mut failures = Vec::new();
            let real = match Cluster::real(Workloads::Off).await? {
                Some(cluster) => Some(run_all(&cluster, self.name, &cases, &mut failures).await),
                None => None,
            };
            if recording {
                let Some(transcripts) = real else {
                    return Err(Failure::text("there is no real cluster to record".into()));
                };
                fail(&failures, cases.len())?;
                let names: Vec<&str> = self.cases.iter().map(|case| case.name).collect();
                let added = Recording::add(&self.recording, self.name, &names, transcripts);
                return added.map_err(|error| file(&self.recording, &error));
            }
            let recorded = match &real {
                Some(transcripts) if !self.recording.exists() => Recording::of(transcripts),
                _ => Recording::read(&self.recording).map_err(|error| file(&self.recording, &error))?,
            };
            if let Some(transcripts) = &real {
                hold(REAL, transcripts, &recorded, &mut failures);
            }
            match Cluster::local(Workloads::Off).await {
                Ok(local) => {
                    let transcripts = run_all(&local, self.name, &cases, &mut failures).await;
                    hold(LOCAL, &transcripts, &recorded, &mut failures);
                }
                Err(failure) => failures.push(failure.to_string()),
            }
            fail(&failures, cases.len())
        })
    }
}

fn file(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(&format!("failed to read or write {}", path.display()), error)
}

fn fail(failures: &[String], of: usize) -> Result<(), Failure> {
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::text(format!("{} differences in {of} cases\n\n{}", failures.len(), failures.join("\n"))))
}

/// Compares with the recording.
fn hold(name: &'static str, transcripts: &[Transcript], recorded: &Recording, failures: &mut Vec<String>) {
    for transcript in transcripts {
        match recorded.get(&transcript.case) {
            None => {
                failures.push(format!("{}\n  is not recorded; set {RECORD}=1 to do so\n", transcript.case));
            }
            Some(wanted) => {
                let names = if name == REAL { [RECORDING_NAME, REAL] } else { [REAL, name] };
                failures.extend(compare(names, wanted, transcript).err().map(|d| d.to_string()));
            }
        }
    }
}

/// Runs cases, several at once, and returns their transcripts in order.
async fn run_all(
    cluster: &Cluster,
    topic: &str,
    cases: &[&Case],
    failures: &mut Vec<String>,
) -> Vec<Transcript> {
    let runs = cases.iter().map(|case| run(cluster, format!("{topic}/{}", case.name), **case));
    let results: Vec<_> = futures::stream::iter(runs).buffered(MAX_CONCURRENT_CASES).collect().await;
    let (transcripts, broken): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    failures.extend(broken.into_iter().flatten());
    transcripts.into_iter().flatten().collect()
}

/// Runs a case in its own namespace. A panic is a failure, and the transcript ends there.
async fn run(cluster: &Cluster, name: String, case: Case) -> (Option<Transcript>, Option<String>) {
    let session = match cluster.session("twin").await {
        Ok(session) => session,
        Err(failure) => return (None, Some(format!("{name}\n  {failure}\n"))),
    };
    let run = AssertUnwindSafe((case.run)(session.clone())).catch_unwind();
    let broken = match tokio::time::timeout(CASE_TIMEOUT, run).await {
        Ok(Ok(())) => None,
        Ok(Err(panic)) => Some(format!("broke off on {}: {}", cluster.name, super::said(panic.as_ref()))),
        Err(_) => Some(format!("took more than {CASE_TIMEOUT:?} on {}", cluster.name)),
    };
    let transcript = session.transcript(&name);
    cluster.leave(&session).await;
    (Some(transcript), broken.map(|text| format!("{name}\n  {text}\n")))
}
