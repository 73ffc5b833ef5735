//! Runs cases on both clusters and reports differences.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

use super::Failure;
use super::cluster::{Cluster, LOCAL, REAL, Workloads};
use super::compare::compare;
use super::recording::{RECORD_VARIABLE, Recording};
use super::session::Session;
use super::transcript::Transcript;

/// One case: its name, and a function that runs it on a cluster.
#[derive(Clone, Copy)]
pub struct Case {
    /// The name of the case, unique in its topic.
    pub name: &'static str,
    /// The function that runs the case.
    pub run: fn(Session) -> BoxFuture<'static, ()>,
}

/// A group of cases with a common recording.
pub struct Topic {
    /// The first part of the names of its cases.
    pub name: &'static str,
    /// The cases.
    pub cases: &'static [Case],
    /// The file with the recorded responses of the real server.
    pub recording: PathBuf,
}

/// The environment variable that selects the cases whose name contains its value.
pub const CASE_VARIABLE: &str = "PLIMSOLL_CASE";
/// The name of the recording in messages.
const RECORDING_NAME: &str = "the recording";
/// How many cases run at the same time. They spend most of their time waiting for the real server.
const MAX_CONCURRENT_CASES: usize = 4;
/// The time that a case may take; one that takes longer is reported as hanging.
const CASE_TIMEOUT: Duration = Duration::from_mins(2);

/// The table of a topic's cases: async functions that take a session.
#[macro_export]
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        &[$($crate::harness::Case { name: stringify!($name), run: |session| Box::pin($name(session)) }),*]
    };
}

impl Topic {
    /// Runs every case on both clusters, whose responses must be as recorded. Without the real cluster, localkube is compared with
    /// the recording; without a recording of this release, with the real cluster. With [`RECORD_VARIABLE`] set, the responses of the real
    /// cluster become the recording.
    pub fn check(&self) -> Result<(), Failure> {
        let only = std::env::var(CASE_VARIABLE).unwrap_or_default();
        let selected =
            |case: &&Case| only.is_empty() || format!("{}/{}", self.name, case.name).contains(&only);
        let cases: Vec<&Case> = self.cases.iter().filter(selected).collect();
        let recording = std::env::var_os(RECORD_VARIABLE).is_some();
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
                failed_if_any(&failures, cases.len())?;
                let names: Vec<&str> = self.cases.iter().map(|case| case.name).collect();
                let added = Recording::add(&self.recording, self.name, &names, transcripts);
                return added.map_err(|error| file_failure(&self.recording, &error));
            }
            let recorded = match &real {
                Some(transcripts) if !self.recording.exists() => Recording::of(transcripts),
                _ => {
                    Recording::read(&self.recording).map_err(|error| file_failure(&self.recording, &error))?
                }
            };
            if let Some(transcripts) = &real {
                compare_with_recording(REAL, transcripts, &recorded, &mut failures);
            }
            match Cluster::local(Workloads::Off).await {
                Ok(local) => {
                    let transcripts = run_all(&local, self.name, &cases, &mut failures).await;
                    compare_with_recording(LOCAL, &transcripts, &recorded, &mut failures);
                }
                Err(failure) => failures.push(failure.to_string()),
            }
            failed_if_any(&failures, cases.len())
        })
    }
}

fn file_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(&format!("failed to read or write {}", path.display()), error)
}

fn failed_if_any(failures: &[String], of: usize) -> Result<(), Failure> {
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::text(format!("{} differences in {of} cases\n\n{}", failures.len(), failures.join("\n"))))
}

/// Compares transcripts with the recording.
fn compare_with_recording(
    name: &'static str,
    transcripts: &[Transcript],
    recorded: &Recording,
    failures: &mut Vec<String>,
) {
    for transcript in transcripts {
        match recorded.get(&transcript.case) {
            None => {
                failures.push(format!(
                    "{}\n  is not recorded; set {RECORD_VARIABLE}=1 to do so\n",
                    transcript.case
                ));
            }
            Some(wanted) => {
                let names = if name == REAL { [RECORDING_NAME, REAL] } else { [REAL, name] };
                failures.extend(compare(names, wanted, transcript).err().map(|d| d.to_string()));
            }
        }
    }
}

/// Runs cases, several at the same time, and returns their transcripts in order.
async fn run_all(
    cluster: &Cluster,
    topic: &str,
    cases: &[&Case],
    failures: &mut Vec<String>,
) -> Vec<Transcript> {
    let runs = cases.iter().map(|case| run(cluster, format!("{topic}/{}", case.name), **case));
    let results: Vec<_> = futures::stream::iter(runs).buffered(MAX_CONCURRENT_CASES).collect().await;
    let (transcripts, failure): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    failures.extend(failure.into_iter().flatten());
    transcripts.into_iter().flatten().collect()
}

/// Runs a case in its own namespace. A panic is a failure, and the transcript ends there.
async fn run(cluster: &Cluster, name: String, case: Case) -> (Option<Transcript>, Option<String>) {
    let session = match cluster.session("twin").await {
        Ok(session) => session,
        Err(failure) => return (None, Some(format!("{name}\n  {failure}\n"))),
    };
    let run = AssertUnwindSafe((case.run)(session.clone())).catch_unwind();
    let failure = match tokio::time::timeout(CASE_TIMEOUT, run).await {
        Ok(Ok(())) => None,
        Ok(Err(panic)) => {
            Some(format!("broke off on {}: {}", cluster.name, super::panic_message(panic.as_ref())))
        }
        Err(_) => Some(format!("took more than {CASE_TIMEOUT:?} on {}", cluster.name)),
    };
    let transcript = session.transcript(&name);
    cluster.delete_namespace(&session).await;
    (Some(transcript), failure.map(|text| format!("{name}\n  {text}\n")))
}
