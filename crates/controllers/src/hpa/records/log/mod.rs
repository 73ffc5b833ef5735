//! The decision log: lines of JSON in a file. Reconciles never wait for the disk: lines go through a bounded queue to a thread,
//! and lines that do not fit into the queue are dropped and counted.

#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::decisions::DecisionRecord;

/// How many lines may wait.
const MAX_QUEUED_LINES: usize = 4096;
/// How many lines are written with one call.
const MAX_LINES_PER_WRITE: usize = 256;
/// How long dropping the log waits for the last lines.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes decisions to a file. Cheap to clone; the last clone waits until everything is written.
#[derive(Clone, Debug)]
pub struct DecisionLog(Arc<DecisionLogState>);

#[derive(Debug)]
struct DecisionLogState {
    all: bool,
    lost: Arc<AtomicU64>,
    /// None after the log is closed.
    queue: Option<SyncSender<Line>>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// The content of a line, which the thread serializes.
type Line = Arc<DecisionRecord>;

impl DecisionLog {
    /// Appends to `file`, which is opened again after it was renamed or removed.
    pub fn open(file: &Path, all: bool) -> io::Result<Self> {
        let lost = Arc::new(AtomicU64::new(0));
        let mut writer = LogWriter::open(file, lost.clone())?;
        let (queue, lines) = sync_channel::<Line>(MAX_QUEUED_LINES);
        let (end, ended) = sync_channel(0);
        std::thread::Builder::new().name("decision-log".into()).spawn(move || {
            // Dropped when the thread ends, also by a panic.
            let _end: SyncSender<()> = end;
            while let Ok(first) = lines.recv() {
                let more = lines.try_iter().take(MAX_LINES_PER_WRITE - 1);
                let batch: Vec<Line> = std::iter::once(first).chain(more).collect();
                writer.write(&batch);
            }
        })?;
        Ok(Self(Arc::new(DecisionLogState { all, lost, queue: Some(queue), ended: Mutex::new(ended) })))
    }

    /// Whether every decision is logged, not only each that differs from the one before.
    pub(super) fn logs_repeats(&self) -> bool {
        self.0.all
    }

    /// The number of lines that were not written, because of errors or a full queue.
    pub(super) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    pub(super) fn write(&self, record: &Arc<DecisionRecord>) {
        let sent = self.0.queue.as_ref().is_some_and(|queue| queue.try_send(record.clone()).is_ok());
        if !sent {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for DecisionLogState {
    fn drop(&mut self) {
        self.queue = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nothing is sent on this channel: receiving returns when the thread has ended.
        let _ = ended.recv_timeout(CLOSE_TIMEOUT);
    }
}

/// The state of the thread.
struct LogWriter {
    path: PathBuf,
    lost: Arc<AtomicU64>,
    /// None after an error.
    file: Option<OpenLogFile>,
    /// Whether the current error was logged.
    is_failure_logged: bool,
    /// Whether the last write may have left an incomplete line.
    torn: bool,
}

struct OpenLogFile {
    file: File,
    /// Device and inode.
    identity: (u64, u64),
}

impl OpenLogFile {
    fn at(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let meta = file.metadata()?;
        Ok(Self { file, identity: (meta.dev(), meta.ino()) })
    }

    /// Whether the path still refers to this file.
    fn is_at(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity)
    }
}

impl LogWriter {
    fn open(path: &Path, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let file = Some(OpenLogFile::at(path)?);
        Ok(Self { path: path.to_owned(), lost, file, is_failure_logged: false, torn: false })
    }

    fn write(&mut self, batch: &[Line]) {
        let mut text = Vec::new();
        for record in batch {
            // Serializing numbers and strings cannot fail.
            if serde_json::to_writer(&mut text, &**record).is_ok() {
                text.push(b'\n');
            }
        }
        match self.append(&text) {
            Ok(()) => self.is_failure_logged = false,
            Err(error) => {
                self.file = None;
                self.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if !std::mem::replace(&mut self.is_failure_logged, true) {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "failed to write the decision log; trying again, lines are lost until then");
                }
            }
        }
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let opened = match self.file.take().filter(|opened| opened.is_at(&self.path)) {
            Some(opened) => opened,
            None => OpenLogFile::at(&self.path)?,
        };
        let file = &mut self.file.insert(opened).file;
        if std::mem::replace(&mut self.torn, true) {
            file.write_all(b"\n")?;
        }
        file.write_all(text)?;
        self.torn = false;
        Ok(())
    }
}
